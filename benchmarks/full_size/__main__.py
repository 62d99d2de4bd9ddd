"""How far right frameworks are from the limits of the proof at full size, and what it sees of planted defects.

    python benchmarks/full_size --environment mxnet-1.9 --networks alexnet --threads 2 --defects --rows rows.json
    python benchmarks/full_size --tables rows.json

For each network, at its mini-batch of Table 4 or the one that is given, the cell's own proof is run in the framework's
environment, right and with each defect. A row is what came nearest to each limit, or passed it, and the CPU seconds of
what is built after the samples. References are those of results/references; one that is missing is computed. Rows that
were kept make the tables of docs/evidence/proofs.md.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Beside this folder, and the workflow's packages.
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "workflow" / "scripts")]

import numpy as np  # noqa: E402
from cells import ROOT, configuration  # noqa: E402
from planted import DEFECTS, RECURRENT_ONLY  # noqa: E402
from tables import print_tables  # noqa: E402

from shared.precisions import PRECISIONS, USUAL, marked  # noqa: E402
from steptime import networks  # noqa: E402
from steptime.cells.measure import fill  # noqa: E402
from steptime.environments import interpreter  # noqa: E402
from steptime.prove import reference  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description="Show what the proof at full size sees.")
    parser.add_argument("--environment")
    parser.add_argument("--networks", nargs="+", default=[])
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode")
    parser.add_argument("--precision", choices=PRECISIONS, default=USUAL)
    parser.add_argument("--defects", nargs="*", help="all, or these: see planted.py")
    parser.add_argument("--rows", type=Path, help="a file to add the rows to")
    parser.add_argument(
        "--tables", type=Path, nargs="+", help="make the tables of such files, and nothing else"
    )
    options = parser.parse_args()
    if options.tables:
        lines = [line for path in options.tables for line in path.read_text().splitlines()]
        print_tables([json.loads(line) for line in lines])
    for network in options.networks:
        for row in prove(options, network):
            print(as_line(row), flush=True)
            if options.rows:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def prove(options: argparse.Namespace, network: str):
    """What `inside.py` says of a network, right and with each defect."""
    known = configuration.load(ROOT, {})
    spec = networks.specify(network, known.networks)
    batch = options.batch or networks.resolve(network, known.networks)["batch"]
    rounded = marked(options.precision, "-")
    path = ROOT / f"results/references/{network}-b{batch}{rounded}.npz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **reference.compute(spec, batch, options.precision))
    entry = known.entry_of(options.environment)
    mode, defects = options.mode or entry["modes"][0], ["right"]
    if options.defects is not None:
        recurrent = any(node["op"] == "lstm" for node in spec["nodes"])
        possible = [name for name in DEFECTS if recurrent or name not in RECURRENT_ONLY]
        defects += options.defects or possible
    job = {
        "task": "step",
        "adapter": entry["adapter"],
        "spec": spec,
        "mode": mode,
        "precision": options.precision,
        "batch": batch,
        "threads": options.threads,
        "device": "cpu",
        "rank": 0,
        "ranks": 1,
        "exchange": "",
        "reference": str(path),
        "gradients": True,
        "defects": defects,
    }
    prefix = interpreter.prefix_of(options.environment)
    variables = fill(entry.get("variables", {}), options.threads, mode, prefix)
    worker = subprocess.Popen(
        [str(prefix / "bin/python"), str(HERE / "inside.py")],
        env=os.environ | variables | {"PYTHONPATH": str(ROOT / "workflow/scripts")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    worker.stdin.write(json.dumps([job]))
    worker.stdin.close()
    about = {
        "environment": options.environment,
        "mode": mode,
        "precision": options.precision,
        "network": network,
        "batch": batch,
        "threads": options.threads,
    }
    for said in worker.stdout:
        if said.startswith("{"):
            yield about | json.loads(said)
    if worker.wait():
        sys.exit(f"{options.environment}, {network}: exit code {worker.returncode}")


def as_line(row: dict) -> str:
    """A row in words: what is nearest to its limit of each kind, and the verdict."""
    nearest = {}
    for kind, what, off, limit in row["held"]:
        if kind not in nearest or off / limit > nearest[kind][1] / nearest[kind][2]:
            nearest[kind] = (what, off, limit)
    told = [f"{what}: {off:.1e} of {limit:.1e}" for what, off, limit in nearest.values()]
    verdict = f"refused ({row['refused'][0]})" if row["refused"] else "passes"
    about = ("environment", "mode", "precision", "network", "batch", "threads", "defect")
    lacking = [row["lacking"]] if row["lacking"] else []
    cells = [*(str(row[name]) for name in about), *told, verdict, *lacking]
    return "| " + " | ".join([*cells, f"{row['process_seconds']:.1f} s"]) + " |"


if __name__ == "__main__":
    main()
