"""Prints the table of times of the cells that are there, when a trial of the grid has ended and others follow.

launch render.so_far 1
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from steptime.artefacts.inputs import Inputs
from steptime.cells.shard import ShardError
from steptime.merge import MixedRowsError, cells
from steptime.plan import run
from steptime.plan.cell import shard_path
from steptime.render import terminal


def main() -> None:
    """Command line: the trial that has ended."""
    told = run.facts()
    if told["shown"]:
        trial, *_ = sys.argv[1:]
        print(f"\nSo far, after trial {trial} of the grid:", flush=True)
        try:
            show(told["shown"])
        except (MixedRowsError, ShardError) as error:
            sys.exit(str(error))


def show(shown: dict[str, Any]) -> None:
    """Prints a table of the shards that are there, made as the whole one is; `shown` says how, and of which cells."""
    keys = [key for key in shown["cells"] if Path(shard_path(key)).exists()]
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder) / "merged.parquet"
        pq.write_table(cells.merge(keys), merged)
        job = json.loads(shown["job"])
        files = job["data"] | {"cells": [str(merged)]}
        Inputs(job["artefact"], files, job["facts"]).write(Path(folder))
        terminal.show(Path(folder) / "tables" / f"{job['artefact']}.parquet", whole=False)


if __name__ == "__main__":
    main()
