"""Seconds that the harness adds to a cell, beyond the framework's import, the build, the warm-up and the samples.

    .venv/bin/python benchmarks/overhead.py

Measures one small cell of each environment of the grid `ci` from the outside: the wall time of the whole job's command
less what the worker says it needed. Limit of the project: 0.5 s a cell.
"""

import json
import os
import tempfile
import time
from pathlib import Path

import cells
import pyarrow.parquet as pq
from cells import configuration, grid


def main() -> None:
    """Prints one line per environment."""
    loaded = configuration.load(cells.ROOT, {"grid": "ci"})
    plan = grid.expand(loaded, len(os.sched_getaffinity(0)))
    chosen = [
        next(plan.cells[key] for key in plan.artefacts["shi2016_fig1a"] if environment in key)
        for environment in loaded.grid["environments"]
    ]
    cells.prove(chosen)
    for cell in chosen:
        job = cells.job_of(loaded, cell)
        seconds, framework_seconds, start_values = measured(cell, job)
        rest = seconds - framework_seconds - start_values
        print(
            f"{cell.environment}: {seconds:.2f} s = framework {framework_seconds:.2f} s"
            f" + start values {start_values:.2f} s (in the place of its own) + overhead {rest:.2f} s"
        )


def measured(cell: grid.Cell, job: dict) -> tuple[float, float, float]:
    """Wall seconds of the job's command, and of them the framework's and those of start values and mini-batch."""
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder) / "local-cpu/step/shard.parquet"
        before = time.monotonic()
        cells.measure(cell, job, shard)
        seconds = time.monotonic() - before
        worker = json.loads(pq.read_schema(shard).metadata[b"steptime"])["worker"]
    ready = worker["ready"]
    needed = ready["import_seconds"] + ready["build_seconds"] + worker["warmup"]["seconds"]
    return seconds, needed + worker["done"]["wall_seconds"], ready["prepare_seconds"]


if __name__ == "__main__":
    main()
