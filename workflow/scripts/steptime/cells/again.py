"""Prints what of the grid was disturbed on this machine, so that it can be measured again.

    snakemake --force $(workflow/scripts/launch cells.again --grid desktop)

Disturbed is what was measured while something else was at work, beyond the limits of `machine.interference`.
"""

import argparse
import json
import sys
from pathlib import Path

from steptime import machine, project
from steptime.cells import shard
from steptime.machine import interference
from steptime.plan import cell, grid, written
from steptime.reading import read_yaml


def main() -> None:
    """Prints one path a line; a sentence on standard error where there is none."""
    parser = argparse.ArgumentParser(description="Print what was measured under disturbance.")
    parser.add_argument("--grid", help="the grid, if it is not the one of config/config.yaml")
    chosen = parser.parse_args().grid or read_yaml(project.path("config/config.yaml"))["grid"]
    here = machine.own_id()
    plan = written.read(written.path_of(Path(chosen).stem))
    paths = [path for path in planned(plan) if path.exists() and disturbed(path, here)]
    for path in paths:
        print(path)
    if not paths:
        what = "Nothing was measured under disturbance on this machine"
        print(f"{what}: there is nothing to measure again.", file=sys.stderr)


def planned(plan: grid.Plan) -> list[Path]:
    platforms = dict.fromkeys(each.platform for each in plan.cells.values())
    peaks = [f"results/peaks/{platform}.json" for platform in platforms]
    return [Path(path) for path in (*peaks, *map(cell.shard_path, plan.cells))]


def disturbed(path: Path, here: str) -> bool:
    """Tells whether a peak or a shard of the machine `here` was disturbed beyond `machine.interference`'s limits."""
    if path.suffix == ".json":
        peak = json.loads(path.read_text())
        marks = [rows.get("disturbed") for rows in peak["threads"].values()]
        return peak["machine_id"] == here and any(marks)
    row, _, _ = shard.read_parts(path)
    return row["machine_id"] == here and row["status"] == "ok" and interference.disturbed(row)


if __name__ == "__main__":
    main()
