"""What the proof at full size sees: defects planted in real PyTorch, and how far right frameworks are from the limits.

    python benchmarks/full_size --environment torch-2.13 --networks alexnet lstm32 --threads 2 --defects

For each network, at its mini-batch of Table 4, the cell's own proof is run in the framework's environment, right and
with each defect (of PyTorch alone). A row is what came nearest to its limit, or passed it, and the CPU seconds of the
proof. References are those of results/references; one that is missing is computed.
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

from steptime import networks  # noqa: E402
from steptime.cells.measure import fill  # noqa: E402
from steptime.environments import interpreter  # noqa: E402
from steptime.prove import reference  # noqa: E402

DEFECTS = [
    "bfloat16 products",
    "TF32, first layer",
    "TF32, middle layer",
    "TF32, last layer",
    "a sample left out",
    "a class left out",
    "largest weight kept",
    "first vector kept",
    "every 2nd update",
    "every 20th update",
    "another batch",
    "first product kept",
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Show what the proof at full size sees.")
    parser.add_argument("--environment", required=True)
    parser.add_argument("--networks", nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode")
    parser.add_argument("--defects", nargs="*", help="all, or these; PyTorch only")
    options = parser.parse_args()
    for network in options.networks:
        for row in prove(options, network):
            print(line(options, network, row), flush=True)


def prove(options: argparse.Namespace, network: str):
    """What `inside.py` says of a network, right and with each defect."""
    known = configuration.load(ROOT, {})
    spec = networks.specify(network, known.networks)
    batch = networks.resolve(network, known.networks)["batch"]
    path = ROOT / f"results/references/{network}-b{batch}.npz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **reference.compute(spec, batch))
    entry = known.entry_of(options.environment)
    mode, defects = options.mode or entry["modes"][0], ["right"]
    if options.defects is not None:
        defects += options.defects or DEFECTS
        if not options.defects and any(node["op"] == "lstm" for node in spec["nodes"]):
            defects.append("a time step less")
    job = {
        "task": "step",
        "adapter": entry["adapter"],
        "spec": spec,
        "mode": mode,
        "precision": "float32",
        "batch": batch,
        "threads": options.threads,
        "device": "cpu",
        "rank": 0,
        "ranks": 1,
        "exchange": "",
        "reference": str(path),
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
    worker.stdin.write(json.dumps(job))
    worker.stdin.close()
    for said in worker.stdout:
        if said.startswith("{"):
            yield json.loads(said)
    if worker.wait():
        sys.exit(f"{options.environment}, {network}: exit code {worker.returncode}")


def line(options: argparse.Namespace, network: str, row: dict) -> str:
    """A row of the table: what is nearest to its limit of each kind, and the verdict."""
    nearest = {}
    for kind, what, off, limit in row["held"]:
        if kind not in nearest or off / limit > nearest[kind][1] / nearest[kind][2]:
            nearest[kind] = (what, off, limit)
    told = [
        f"{what}: {off:.1e} of {limit:.1e}"
        if kind != "next loss"
        else f"next {off:.1e} of {limit:.1e}"
        for kind, (what, off, limit) in nearest.items()
    ]
    verdict = f"refused ({row['refused'][0]})" if row["refused"] else "passes"
    cells = [options.environment, network, f"{options.threads}", row["defect"], *told, verdict]
    return "| " + " | ".join([*cells, f"{row['cpu_seconds']:.1f} s"]) + " |"


if __name__ == "__main__":
    main()
