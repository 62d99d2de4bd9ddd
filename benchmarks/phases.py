"""Where the time of a run goes: seconds of all its timed steps by phase, from the shards of a results folder.

    .venv/bin/python benchmarks/phases.py FOLDER

Between cells is what Snakemake and the cells' own programs take, and whatever else the run did there: a gap of more
than a minute is left out, since something else was made meanwhile.
"""

import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
from cells import ROOT  # noqa: F401  (puts the project's packages on the path)

from steptime.cells import shard

LONGEST_GAP = 60


def main() -> None:
    """Prints seconds a cell and shares, in all and by environment."""
    parts = [shard.read_parts(path) for path in Path(sys.argv[1]).glob("cells/*/step/*.parquet")]
    timed = [(row, footer) for row, _, footer in parts if row["status"] == "ok"]
    if not timed:
        sys.exit(f"{sys.argv[1]} has no timed step.")
    cells = pd.DataFrame([phases(row, footer["worker"]) for row, footer in timed])
    print(told(cells.drop(columns="environment").mean(), len(cells)))
    for name, own in cells.groupby("environment"):
        print(f"\n{name}\n{told(own.drop(columns='environment').mean(), len(own))}")
    spans = sorted((row["started_at"], row["ended_at"]) for row, _, _ in parts)
    gaps = [(after[0] - before[1]).total_seconds() for before, after in pairwise(spans)]
    short = [gap for gap in gaps if gap < LONGEST_GAP]
    if short:
        print(f"\nbetween cells: {sum(short) / len(short):.2f} s ({len(short)} gaps)")


def phases(row: dict, worker: dict[str, dict]) -> dict[str, float | str]:
    """Seconds of each phase of a cell; what the worker does not tell of is the rest."""
    ready, proven = worker.get("ready", {}), worker.get("proven", {})
    found: dict[str, float] = {
        "import": row["import_seconds"],
        "start values": ready.get("prepare_seconds", 0.0),
        "build": row["build_seconds"],
        "warm-up": row["warmup_seconds"],
        "samples": row["wall_seconds"],
        "proof": proven.get("seconds", 0.0),
    }
    whole = (row["ended_at"] - row["started_at"]).total_seconds()
    return {"environment": row["environment"], **found, "rest": whole - sum(found.values())}


def told(means: pd.Series, count: int) -> str:
    """Means of a cell's phases as text."""
    words = [
        f"{name} {value:.1f} s ({100 * value / means.sum():.0f} %)" for name, value in means.items()
    ]
    return f"{count} cells of {means.sum():.1f} s: {', '.join(words)}"


if __name__ == "__main__":
    main()
