"""The kinds of rows of a shard: samples of steps, epochs, and samples of single operations."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.statistics import median
from steptime.plain import plural

if TYPE_CHECKING:
    from steptime.outcome import Outcome

Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A kind of rows: its columns with Arrow's types, and how an outcome becomes rows."""

    columns: dict[str, str]
    of: "Callable[[Outcome], list[Row]]"


def says_median(outcome: "Outcome") -> str:
    """Says the median of an outcome's samples. Samples of one process say nothing of another, so no interval."""
    milliseconds = 1000 * median([seconds for _, seconds in outcome.samples])
    decimals = max(0, 3 - math.floor(math.log10(milliseconds)))
    return f"{milliseconds:7.{decimals}f} ms"


def says_accuracy(outcome: "Outcome") -> str:
    """Says what a training has reached."""
    last, epochs = outcome.epochs[-1], plural(len(outcome.epochs), "epoch")
    seconds = sum(epoch["seconds"] for epoch in outcome.epochs)
    accuracy = last["accuracy"]
    reached = f"loss {last['test_loss']:.4g}" if accuracy is None else f"{100 * accuracy:.1f} %"
    return f"{reached} in {epochs}, {seconds:.3g} s"


def says_count(outcome: "Outcome") -> str:
    """Says how many operations were timed."""
    timed = [part for part in outcome.parts if part["samples"]]
    return f"{len(timed)} of {len(outcome.parts)} operations timed, each proven right before"


def _numbered(samples: list[tuple[int, float]]) -> list[Row]:
    rows = enumerate(samples, 1)
    return [{"sample": at, "steps": steps, "seconds": seconds} for at, (steps, seconds) in rows]


def _operations(outcome: "Outcome") -> list[Row]:
    rows = []
    for part in outcome.parts:
        named = {name: value for name, value in part.items() if name not in ("event", "samples")}
        rows += [named | each for each in _numbered(part["samples"])] or [named]
    return rows


STEPS = Rows(
    {"sample": "int32", "steps": "int32", "seconds": "float64"},
    lambda outcome: _numbered(outcome.samples),
)
NUMBERS = ["seconds", "feed_seconds", "cpu_seconds"]
NUMBERS += ["loss", "test_loss", "accuracy", "test_seconds"]
EPOCHS = Rows(
    {"epoch": "int32", "steps": "int32"} | dict.fromkeys(NUMBERS, "float64"),
    lambda outcome: outcome.epochs,
)
# A row for each sample of each operation, or one that says why there is none.
OPERATIONS = Rows(
    dict.fromkeys(("part", "role", "way"), "string")
    | {"flops": "int64", "error": "float64", "cpus": "float64", "lacking": "string"}
    | STEPS.columns,
    _operations,
)
