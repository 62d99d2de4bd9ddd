"""Seconds that the harness adds to a cell, beyond the framework's import, the build, the warm-up and the samples.

    .venv/bin/python benchmarks/overhead.py

Measures one small cell of each environment of the grid `ci` from the outside: the wall time of the whole job's command
less what the worker says it needed. Limit of the project: 0.5 s a cell.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow" / "scripts"))

import configuration  # noqa: E402
import grid  # noqa: E402


def main() -> None:
    """Prints one line per environment."""
    loaded = configuration.load(ROOT, {"grid": "ci"})
    plan = grid.expand(loaded, len(os.sched_getaffinity(0)))
    cells = [
        next(plan.cells[key] for key in plan.artefacts["shi2016_fig1a"] if environment in key)
        for environment in loaded.grid["environments"]
    ]
    snakemake = [str(Path(sys.executable).with_name("snakemake")), "--cores", "all", "--quiet", "all"]
    subprocess.run([*snakemake, "--config", "grid=ci", "--", *map(proof_path, cells)], cwd=ROOT, check=True)
    for cell in cells:
        framework = loaded.frameworks[cell.framework]
        job = {
            "cell": cell.facts(),
            "adapter": framework["adapter"],
            "variables": framework["variables"],
            "sampling": loaded.grid["sampling"],
            "limits": loaded.grid["limits"],
        }
        seconds, framework_seconds, start_values = measured(cell, job)
        rest = seconds - framework_seconds - start_values
        print(
            f"{cell.environment}: {seconds:.2f} s = framework {framework_seconds:.2f} s"
            f" + start values {start_values:.2f} s (in the place of its own) + overhead {rest:.2f} s"
        )


def proof_path(cell: grid.Cell) -> str:
    """Path of the proof that a cell needs."""
    return f"results/proofs/{cell.environment}.{cell.adapter_mode}-{cell.network}.json"


def measured(cell: grid.Cell, job: dict) -> tuple[float, float, float]:
    """Wall seconds of the job's command, and of them the framework's and those of start values and mini-batch."""
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder) / "shard.parquet"
        command = [
            "workflow/scripts/steptime",
            "measure.cell",
            *("--job", json.dumps(job), "--networks", "config/networks.yaml"),
            *("--manifest", f"results/environments/{cell.environment}.json"),
            *("--proof", proof_path(cell)),
            *("--shard", str(shard), "--log", str(Path(folder) / "log")),
        ]
        before = time.monotonic()
        subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"STEPTIME_PYTHON": sys.executable})
        seconds = time.monotonic() - before
        worker = json.loads(pq.read_schema(shard).metadata[b"steptime"])["worker"]
    ready = worker["ready"]
    needed = ready["import_seconds"] + ready["build_seconds"] + worker["warmup"]["seconds"]
    return seconds, needed + worker["done"]["wall_seconds"], ready["prepare_seconds"]


if __name__ == "__main__":
    main()
