"""Cells with several seeds: their order and names, what a table shows over the seeds, and how their lines are drawn."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd

from shared.statistics import median
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.machine import interference
from steptime.merge.trainings import CELL, Trained
from steptime.render.columns import Column, Row
from steptime.render.frameworks import Frameworks
from steptime.render.words import environment_labels, significant, version_order, why

# What names the lines of a table of trainings.
HERE = {"Network": "label", "Framework": "environment_label", "Here": common.place_of}


def gibibytes(size: float) -> str:
    """Writes bytes as GiB with two decimals: '1.25 GiB'."""
    return f"{size / 2**30:.2f} GiB"


def by_cell(
    trained: Trained, frameworks: Frameworks
) -> list[tuple[Row, pd.DataFrame, pd.DataFrame]]:
    """Returns, for each cell in the order of tables: what names it, its runs (one a seed), and all their epochs."""
    labels = list(dict.fromkeys(trained.runs["label"]))
    cells = []
    named = trained.runs.assign(environment_label=environment_labels(frameworks, trained.runs))
    for _, runs in named.groupby(CELL, sort=False, dropna=False):
        row = runs.iloc[0][[*CELL, "label", "environment_label", "target_accuracy"]].to_dict()
        epochs = trained.epochs[trained.epochs["key"].isin(runs["key"])]
        cells.append((row | {"seeds": len(runs)}, runs, epochs))

    def place(cell: tuple[Row, pd.DataFrame, pd.DataFrame]) -> tuple[Any, ...]:
        row, *_ = cell
        order = labels.index(row["label"]), frameworks[row["framework"]].order
        rest = (row[name] for name in ("mode", "platform", "threads"))
        return *order, version_order(row["environment"]), *rest

    return sorted(cells, key=place)


def describe(inputs: Inputs, trained: Trained, *notes: str) -> None:
    common.describe(inputs, *notes, *trained.notes, measured=trained.times)


def marks_of(runs: pd.DataFrame) -> str:
    """Says 'disturbed' where any of these runs was, else ''."""
    return "disturbed" if any(map(interference.disturbed, runs.to_dict("records"))) else ""


def spread(values: dict[str, pd.Series]) -> dict[str, float]:
    """Returns median, least and most over the seeds of each name; nothing of a name without values."""
    row: dict[str, float] = {}
    for name, series in values.items():
        terms = [float(value) for value in series.dropna()]
        if terms:
            row |= {name: median(terms), f"least_{name}": min(terms), f"most_{name}": max(terms)}
    return row


def column(
    heading: str,
    name: str,
    text: Callable[[float], str] = significant,
    why_not: Callable[[Row], str] = why,
    remarks: Callable[[Row], Sequence[str]] | None = None,
) -> Column:
    """Returns a column of what `spread` gives: the median, and '(least to most)' where these are not written alike."""

    def shown(row: Row) -> str | None:
        if pd.isna(row[name]):
            return None
        middle, least, most = (text(row[part + name]) for part in ("", "least_", "most_"))
        return middle if least == most else f"{middle} ({least} to {most})"

    return Column(heading, shown, str, why_not, "ours", remarks)


def with_spreads(columns: Sequence[str], names: Iterable[str]) -> list[str]:
    return [*columns, *(f"{part}{name}" for name in names for part in ("", "least_", "most_"))]
