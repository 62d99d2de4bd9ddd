"""What a row of a shard may be: a sample of steps, an epoch, or a sample of a single operation."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.statistics import ENOUGH, median, median_interval
from steptime.plain import plural

if TYPE_CHECKING:
    # The inspection of a shard alone needs it.
    from rich.tree import Tree

    from steptime.outcome import Outcome

STOPPED = {
    "accuracy": "the accuracy was reached",
    "epochs": "all epochs were trained",
    "seconds": "the time was over",
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A kind of rows: its columns with Arrow's types, what they are of an outcome, how `make inspect` shows them."""

    columns: dict[str, str]
    of: "Callable[[Outcome], list[Row]]"
    show: "Callable[[Tree, Row, list[Row]], None]"


def right(epoch: Row) -> str:
    """Says how many test images were right after an epoch; of what has no classes, the loss on them."""
    accuracy = epoch["accuracy"]
    # None in a worker's event, and NaN in a shard.
    if accuracy is None or accuracy != accuracy:
        return f"a loss of {epoch['test_loss']:.4g} on the test images"
    return f"{100 * accuracy:.2f} % of the test images right"


def says_median(outcome: "Outcome") -> str:
    """The median of the samples of an outcome. Samples of one process say nothing of another, so no interval."""
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


def _show_samples(root: "Tree", row: Row, samples: list[Row]) -> None:
    if samples[0]["seconds"] is None:
        return
    seconds = [sample["seconds"] for sample in samples]
    low, high = median_interval(seconds)
    few = "too few samples for an interval, they lie in"
    what = "its 95 % interval is" if len(seconds) >= ENOUGH else few
    text = f"{median(seconds):.6g} s per mini-batch, the median; {what} {low:.6g} to {high:.6g} s"
    branch = root.add(text if row["status"] == "ok" else f"not to be used: {text}")
    values = " ".join(f"{value:.6g}" for value in seconds)
    branch.add(f"{len(samples)} samples of {samples[0]['steps']} steps: {values}")


def _show_epochs(root: "Tree", row: Row, epochs: list[Row]) -> None:
    if epochs[0]["seconds"] is None:
        return
    seconds = sum(epoch["seconds"] for epoch in epochs)
    text = f"{seconds:.6g} s of training, {right(epochs[-1])}"
    is_ok = row["status"] == "ok"
    branch = root.add(f"{text}: {STOPPED[row['stopped']]}" if is_ok else f"not to be used: {text}")
    for epoch in epochs:
        trained = f"{epoch['steps']} steps in {epoch['seconds']:.6g} s, of them {epoch['feed_seconds']:.3g} s to feed"
        seen = f"loss {epoch['test_loss']:.6g}, in {epoch['test_seconds']:.3g} s"
        if epoch["accuracy"] is not None:
            seen = f"{100 * epoch['accuracy']:.2f} % right, {seen}"
        words = f"{trained}, {epoch['cpu_seconds']:.6g} CPU seconds, loss {epoch['loss']:.6g}"
        branch.add(f"epoch {epoch['epoch']}: {words}; of the test images {seen}")


def _show_operations(root: "Tree", row: Row, rows: list[Row]) -> None:
    """Shows each operation with its time and speed, or why it has none."""
    operations: dict[tuple[str, str, str], list[Row]] = {}
    for each in rows:
        if each["part"] is not None:
            operations.setdefault((each["part"], each["role"], each["way"]), []).append(each)
    for name, samples in operations.items():
        first, middle = samples[0], median([each["seconds"] or 0.0 for each in samples])
        speed = f"{middle:.6g} s, {first['flops'] / 1e9 / middle:.4g} GFLOP/s" if middle else ""
        off = f"; off by {first['error']:.2g}" if first["error"] is not None else ""
        root.add(f"{', '.join(name)}: {speed or first['lacking']}{off}")


STEPS = Rows(
    {"sample": "int32", "steps": "int32", "seconds": "float64"},
    lambda outcome: _numbered(outcome.samples),
    _show_samples,
)
NUMBERS = ["seconds", "feed_seconds", "cpu_seconds"]
NUMBERS += ["loss", "test_loss", "accuracy", "test_seconds"]
EPOCHS = Rows(
    {"epoch": "int32", "steps": "int32"} | dict.fromkeys(NUMBERS, "float64"),
    lambda outcome: outcome.epochs,
    _show_epochs,
)
# Of each operation a row for each sample, or one that says why there is none.
OPERATIONS = Rows(
    dict.fromkeys(("part", "role", "way"), "string")
    | {"flops": "int64", "error": "float64", "cpus": "float64", "lacking": "string"}
    | STEPS.columns,
    _operations,
    _show_operations,
)
