"""A first answer, in one line: who is fastest at a place, as soon as one process of each cell there was measured."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from shared.statistics import median
from steptime.cells import shard
from steptime.plan.cell import PLACE, axes_of, shard_path
from steptime.supervisor import progress

# What names a place in a key.
AXES = [name for name in PLACE if name not in ("variant", "device")]

# Besides the fastest.
MOST_NAMED = 5


def answer(cell: Mapping[str, Any], keys: Collection[str]) -> str:
    """The times of the cells of one place and repeat, as one line; '' until all of them are there, and of one alone.

    `keys` are those of the cells that are compared.
    """
    place = [cell[name] for name in (*AXES, "repeat")]
    here = [
        key
        for key, axes in ((key, axes_of(key)) for key in keys)
        if [axes[name] for name in (*AXES, "repeat")] == place
    ]
    if len(here) < 2 or progress.measured(here) != here:
        return ""
    try:
        times = dict(sorted(map(_time, here), key=lambda each: each[1]))
    except shard.ShardError:
        # Who makes the tables names it.
        return ""
    timed = {name: seconds for name, seconds in times.items() if seconds < float("inf")}
    if not timed:
        return ""
    (first, fastest), *others = timed.items()
    words = [f"{name} takes {seconds / fastest:.2f} times as long" for name, seconds in others]
    words += [f"{name} has no time" for name in times if name not in timed]
    rest = [f"{len(words) - MOST_NAMED} more in the table"] if len(words) > MOST_NAMED else []
    said = ", ".join(words[:MOST_NAMED] + rest)
    return f"So far, by one process of each: {first} takes {fastest:.3g} s; {said}"


def _time(key: str) -> tuple[str, float]:
    """Environment and mode of a cell, and its median in seconds, endless of one without."""
    row, rows, _ = shard.read_parts(Path(shard_path(key)))
    samples = [each for each in rows["seconds"].to_pylist() if each is not None]
    seconds = median(samples) if row["status"] == "ok" and samples else float("inf")
    return f"{row['environment']} {row['mode']}", seconds
