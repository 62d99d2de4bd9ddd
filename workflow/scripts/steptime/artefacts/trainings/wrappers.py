"""Table of what a layer above costs: trainings through a framework that uses another one, beside those without it."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from shared.statistics import median
from steptime.artefacts.common import place_of, ratio_of
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.over_seeds import by_cell, describe, gibibytes
from steptime.plan.cell import PLACE
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import TEXT
from steptime.render.words import significant, why
from steptime.statistics import intervals

# What is measured both with the layer above and without it.
MEASURED = ["runner", "label", "seconds", "cpus", "peak_memory_bytes"]
COLUMNS = [*PLACE, "network_label"]
COLUMNS += [f"{side}_{name}" for side in ("above", "below") for name in MEASURED]
COLUMNS += ["ratio", "low", "high", "reason"]
TYPES = dict.fromkeys(["above_runner", "above_label", "below_runner", "below_label"], TEXT)


def _sides(heading: str, name: str, text: Callable[[float], str] = significant) -> list[Column]:
    return [
        Column((heading, word), f"{side}_{name}", text, lambda row: row["reason"])
        for side, word in (("above", "with"), ("below", "without"))
    ]


def _trained(row: Row) -> bool:
    return isinstance(row["network_label"], str)


SHOWN = [
    *_sides("Seconds of an epoch", "seconds"),
    Column(
        ("Seconds of an epoch", "ratio"),
        ratio_of,
        why_not=lambda row: row["reason"],
        remarks=lambda row: ["fewer than two seeds of both, so no interval"] * pd.isna(row["low"]),
    ),
    *_sides("CPUs at work", "cpus"),
    *_sides("Peak memory", "peak_memory_bytes", gibibytes),
]
# A pair that nobody trains is named by its environments.
INDEX: dict[str, Callable[[Row], Any]] = {
    "Network": lambda row: row["network_label"] if _trained(row) else "",
    "With": lambda row: row["above_label" if _trained(row) else "above_runner"],
    "Without": lambda row: row["below_label" if _trained(row) else "below_runner"],
    "Here": lambda row: place_of(row) if _trained(row) else "",
}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout; `pairs` of the entry are environments of the same version."""
    cells: dict[str, dict[tuple[Any, ...], Row]] = {}
    trained = inputs.trained
    for row, runs, epochs in by_cell(trained, inputs.frameworks):
        name = f"{row['environment']}.{row['mode']}"
        place = tuple(row[key] for key in PLACE)
        cells.setdefault(name, {})[place] = _measured(name, row, runs, epochs)
    rows = []
    for above, below in inputs.entry["pairs"].items():
        upper, lower = cells.get(above, {}), cells.get(below, {})
        both = [place for place in upper if place in lower]
        rows += [dict(zip(PLACE, at, strict=True)) | _compared(upper[at], lower[at]) for at in both]
        if not both:
            reason = f"this grid does not train a network both with {above} and with {below}"
            rows.append({"above_runner": above, "below_runner": below, "reason": reason})
    data = pd.DataFrame(rows, columns=COLUMNS)
    describe(
        inputs,
        trained,
        "Seconds of an epoch are the median of each seed's epochs, and of these the median. A ratio is the geometric "
        "mean over the seeds, with its 95 % interval where there are two or more: both had the same images in the same "
        "order. CPUs at work are those of the training with its judging. Memory is the most of the whole process.",
    )
    return data, columns(data, SHOWN, INDEX)


def _measured(name: str, row: Row, runs: pd.DataFrame, epochs: pd.DataFrame) -> Row:
    """Says what one cell took, for each seed and over all; a reason where no seed has an epoch."""
    failed = runs[runs["epochs"] == 0]
    seconds = epochs.groupby("repeat")["seconds"].median().to_dict()
    cell = {
        "runner": name,
        "label": row["environment_label"],
        "network_label": row["label"],
        "by_seed": seconds,
        "reason": "" if seconds else why(failed.iloc[0]),
    }
    if seconds:
        cell |= {
            "seconds": median(list(seconds.values())),
            "cpus": runs["effective_threads"].median(),
            "peak_memory_bytes": runs["peak_memory_bytes"].max(),
        }
    return cell


def _compared(above: Row, below: Row) -> Row:
    row = {"network_label": above["network_label"], "reason": above["reason"] or below["reason"]}
    for side, cell in (("above", above), ("below", below)):
        row |= {f"{side}_{name}": cell.get(name) for name in MEASURED}
    if not row["reason"]:
        estimate = intervals.of_ratio(above["by_seed"], below["by_seed"])
        ratio = above["seconds"] / below["seconds"]
        interval = estimate.interval if estimate else (ratio, None, None)
        row |= dict(zip(("ratio", "low", "high"), interval, strict=True))
    return row
