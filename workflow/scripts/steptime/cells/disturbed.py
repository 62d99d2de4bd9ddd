"""Prints what of the grid was measured on this machine while something else was at work, for measuring it again.

snakemake --force $(workflow/scripts/launch cells.disturbed --grid quick)
"""

import argparse
import json
import os
import sys
from pathlib import Path

import yaml

from steptime import machine, project
from steptime.cells import shard
from steptime.machine import interference
from steptime.plan import configuration, grid
from steptime.plan import trainings as trainings

RESULTS = Path("results")


def main() -> None:
    """Prints one path a line, and a sentence beside them when there is none."""
    parser = argparse.ArgumentParser(
        description="Print what was measured while something else was at work."
    )
    parser.add_argument("--grid", help="the grid, if it is not the one of config/config.yaml")
    chosen = parser.parse_args().grid
    try:
        config = yaml.safe_load(project.path("config/config.yaml").read_text()) | (
            {"grid": chosen} if chosen else {}
        )
        loaded, cores = configuration.load(project.ROOT, config), len(os.sched_getaffinity(0))
        here = machine.identify(machine.describe())
        paths = planned(grid.expand(loaded, cores))
        paths += [
            RESULTS / "training" / f"{key}.parquet" for key in trainings.expand(loaded, cores)
        ]
        paths = [path for path in paths if path.exists() and disturbed(path, here)]
    except (configuration.ConfigurationError, shard.ShardError) as error:
        sys.exit(str(error))
    if not paths:
        print(
            "Nothing was measured under disturbance on this machine: there is nothing to measure again.",
            file=sys.stderr,
        )
    for path in paths:
        print(path)


def planned(plan: grid.Plan) -> list[Path]:
    """The peaks and shards of a plan."""
    peaks = dict.fromkeys(
        RESULTS / "peaks" / f"{cell.platform}.json" for cell in plan.cells.values()
    )
    return [*peaks, *(RESULTS / "shards" / f"{key}.parquet" for key in plan.cells)]


def disturbed(path: Path, here: str) -> bool:
    """Whether a peak, a shard or a training was measured on the machine `here`, beyond the limits of
    `measure.interference`.
    """
    if path.suffix == ".json":
        peak = json.loads(path.read_text())
        return peak["machine_id"] == here and any(
            found.get("disturbed") for found in peak["threads"].values()
        )
    row = shard.read(path)[0].slice(0, 1).to_pylist()[0]
    return row["machine_id"] == here and row["status"] == "ok" and interference.disturbed(row)


if __name__ == "__main__":
    main()
