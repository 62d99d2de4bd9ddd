"""Tells on the terminal which cell of how many is being measured, and about how long the rest will take."""

import json
import time
from contextlib import suppress
from pathlib import Path

from steptime.say import say

RUN = Path(".snakemake/steptime")


def begin(cells: int) -> None:
    """Notes the start of a run that will measure `cells` cells."""
    RUN.mkdir(parents=True, exist_ok=True)
    (RUN / "finished").write_text("")
    (RUN / "run.json").write_text(json.dumps({"cells": cells, "began": time.time()}))


def announce(title: str) -> None:
    """Prints what is going to be measured, as which cell of how many, and the time left."""
    say(f"{_position()}{title}{_left()}")


def report(title: str, result: str, seconds: float) -> None:
    """Prints what came out, and counts the cell."""
    # A disk that is full by now has room for the shard and must not cost it.
    with suppress(OSError), (RUN / "finished").open("a") as file:
        file.write(f"{seconds:.1f}\n")
    say(f"    {title}: {result}")


def duration(seconds: float) -> str:
    """A number of seconds as people say it: 42 s, 7 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _state() -> tuple[int, list[float]]:
    """Cells of the run under way, and the seconds that each finished one took; (0, []) outside a run."""
    try:
        cells = json.loads((RUN / "run.json").read_text())["cells"]
        return cells, [float(line) for line in (RUN / "finished").read_text().split()]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, []


def _position() -> str:
    cells, finished = _state()
    return f"cell {min(len(finished) + 1, cells)} of {cells}: " if cells else ""


def _left() -> str:
    cells, finished = _state()
    if not finished or cells <= len(finished):
        return ""
    return f" (about {duration(sum(finished) / len(finished) * (cells - len(finished)))} left)"
