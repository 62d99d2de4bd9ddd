"""Tells on the terminal which cell of how many is being measured, and about how long the rest will take."""

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from steptime import run
from steptime.plan.cell import key_of, shard_path
from steptime.say import say

# A line for each cell that was measured: its seconds, and the parts of the grid that it is of, as JSON.
FINISHED = run.FOLDER / "finished"
# A line for each process that was measured again, since something else had disturbed the one before: its seconds.
AGAIN = run.FOLDER / "again"
# There while a page is to be made of the cells so far: the part of the grid that has ended, if one has.
DUE = run.FOLDER / "due"
# Of the time that all cells of a run take, what may be spent on such processes.
MOST_AGAIN = 0.1


def begin() -> None:
    """Forgets the cells of the run before."""
    FINISHED.parent.mkdir(parents=True, exist_ok=True)
    FINISHED.write_text("")
    AGAIN.write_text("")


def parts_of(cell: Mapping[str, Any], shown: Collection[str]) -> list[str]:
    """The parts of the grid, in words, that are told of when their last cell was measured: of a cell whose time is
    `shown` in the table so far, its trial, and of the first trial each column.
    """
    if key_of(cell) not in shown:
        return []
    trial = f"trial {cell['repeat']}"
    threads = "1 thread" if cell["threads"] == 1 else f"{cell['threads']} threads"
    where = f"{threads} of {cell['platform']}" if cell["device"] == "cpu" else cell["platform"]
    return [*([f"{trial} at {where}"] if cell["repeat"] == 1 else []), trial]


def expect(cells: Sequence[Mapping[str, Any]]) -> None:
    """Counts cells that this run measures besides those that it has begun with."""
    known = run.facts()
    counted, shown = known["parts"], known["shown"].get("cells", [])
    if counted is not None:
        counted = Counter(counted) + Counter(
            part for cell in cells for part in parts_of(cell, shown)
        )
    run.begin(**known | {"cells": known["cells"] + len(cells), "parts": counted})


def announce(title: str) -> None:
    """Prints what is going to be measured, as which cell of how many, and the time left."""
    say(f"{_position()}{title}{_left()}")


def report(title: str, result: str, seconds: float, parts: Sequence[str]) -> None:
    """Prints what came out, and counts the cell, which is of these parts of the grid."""
    # A disk that is full by now has room for the shard and must not cost it.
    with suppress(OSError), FINISHED.open("a") as file:
        file.write(f"{json.dumps([round(seconds, 1), parts])}\n")
    say(f"    {title}: {result}")


def finished() -> list[tuple[float, list[str]]]:
    """Seconds and parts of the grid of each cell that this run has measured."""
    try:
        lines = FINISHED.read_text().splitlines()
        return [(float(seconds), parts) for seconds, parts in map(json.loads, lines)]
    except (OSError, ValueError):
        return []


def allows_another(seconds: float) -> bool:
    """Whether this run has the time to measure a process again that took so long."""
    cells, took = run.facts().get("cells", 0), [each for each, _ in finished()] or [seconds]
    try:
        spent = sum(map(float, AGAIN.read_text().split()))
    except (OSError, ValueError):
        return False
    return spent + seconds <= MOST_AGAIN * cells * sum(took) / len(took)


def count_another(seconds: float) -> None:
    """Counts a process that was measured again."""
    with suppress(OSError), AGAIN.open("a") as file:
        file.write(f"{seconds:.1f}\n")


def began_at() -> float:
    """When this run began, as files bear their times."""
    return time.time() - (time.monotonic() - run.facts().get("began", 0.0))


def measured(keys: Iterable[str]) -> list[str]:
    """Those cells, given by their keys, that have a row which this run does not measure anew."""
    waiting, began = set(run.facts().get("waiting", [])), began_at()
    paths = {key: Path(shard_path(key)) for key in keys}
    return [
        key
        for key, path in paths.items()
        if path.exists() and (key not in waiting or path.stat().st_mtime >= began)
    ]


def goes_on() -> bool:
    """Whether this run measures cells one by one, and others after those that it has measured."""
    told = run.facts()
    return told.get("parts") is not None and len(finished()) < told["cells"]


def ended() -> str:
    """The largest part of the grid that ended with the last cell, where others follow; '' elsewhere."""
    if not goes_on():
        return ""
    parts, done = run.facts()["parts"], [parts for _, parts in finished()]
    counted = Counter(part for each in done for part in each)
    whole = [part for part in (done or [[]])[-1] if counted[part] == parts.get(part)]
    return whole[-1] if whole else ""


def duration(seconds: float) -> str:
    """A number of seconds as people say it: 42 s, 7 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _position() -> str:
    cells = run.facts().get("cells", 0)
    return f"cell {min(len(finished()) + 1, cells)} of {cells}: " if cells else ""


def _left() -> str:
    cells, took = run.facts().get("cells", 0), [seconds for seconds, _ in finished()]
    if not took or cells <= len(took):
        return ""
    return f" (about {duration(sum(took) / len(took) * (cells - len(took)))} left)"
