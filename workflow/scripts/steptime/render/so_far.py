"""Prints the table of times of the cells that are there, when a part of the grid has ended and others follow.

launch render.so_far "trial 1"
"""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from steptime.artefacts.inputs import Inputs
from steptime.cells.shard import ShardError
from steptime.merge import MixedRowsError, cells
from steptime.plan import run
from steptime.plan.cell import shard_path
from steptime.render import terminal
from steptime.render.words import processes

# Until the run has made the whole tables.
FOLDER = Path("results/so_far")


def main() -> None:
    """Command line: the part of the grid that has ended."""
    told = run.facts()
    if told["shown"]:
        part, *_ = sys.argv[1:]
        print(f"\nSo far, after {part}:", flush=True)
        try:
            show(told["shown"], told["looks"])
        except (MixedRowsError, ShardError) as error:
            sys.exit(str(error))


def show(shown: dict[str, Any], looked: list[int]) -> None:
    """Prints a table of the shards that are there, made as the whole one is; `shown` says how, and of which cells, and
    `looked` after which trials was looked (`plan.looks`).
    """
    keys = [key for key in shown["cells"] if Path(shard_path(key)).exists()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    merged = FOLDER / "merged.parquet"
    pq.write_table(cells.merge(keys, looked=looked), merged)
    job = json.loads(shown["job"])
    files = job["data"] | {"cells": [str(merged)]}
    inputs = Inputs(job["artefact"], files, job["facts"])
    inputs.write(FOLDER)
    terminal.show(FOLDER / "tables" / f"{job['artefact']}.parquet")
    print(processes(inputs.measured.cells), flush=True)


if __name__ == "__main__":
    main()
