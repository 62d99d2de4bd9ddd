"""What the layer above costs: trainings through a framework that stands on another one, beside those without it."""

from typing import Any

import pandas as pd

from shared.statistics import median
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import Trained, by_cell, cpus_at_work, read
from steptime.merge import intervals
from steptime.plan.cell import PLACE
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, Entry
from steptime.render.words import facts, plural, significant, status_reason

# Of what stands above, and of what is below it.
MEASURED = ["runner", "label", "seconds", "cpus", "peak_memory_bytes"]
COLUMNS = [
    *PLACE,
    "network_label",
    *(f"{side}_{name}" for side in ("above", "below") for name in MEASURED),
]
COLUMNS += ["ratio", "low", "high", "reason"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    trained = read(inputs.paths("trainings")[0])
    return build(trained, inputs.entry["pairs"], inputs.frameworks, inputs.page)


def build(
    trained: Trained, pairs: dict[str, str], frameworks: Frameworks, page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout; fills the page's facts and notes.

    `pairs` have, for an environment and mode, those that it stands on: the same software in the same version.
    `above_seconds` and `below_seconds` are those of an epoch: of each seed the median, of these the median. `ratio` is
    the geometric mean over the seeds that both have, `low` and `high` its 95 % interval.
    """
    cells: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
    for row, runs, epochs in by_cell(trained, frameworks):
        name = f"{row['environment']}.{row['mode']}"
        place = tuple(row[key] for key in PLACE)
        cells.setdefault(name, {})[place] = _measured(name, row, runs, epochs)
    rows = []
    for above, below in pairs.items():
        upper, lower = cells.get(above, {}), cells.get(below, {})
        both = [place for place in upper if place in lower]
        rows += [dict(zip(PLACE, at, strict=True)) | _beside(upper[at], lower[at]) for at in both]
        if not both:
            reason = f"this grid does not train a network both with {above} and with {below}"
            rows.append({"above_runner": above, "below_runner": below, "reason": reason})
    data = pd.DataFrame(rows, columns=COLUMNS)
    page.facts = facts(trained.times)
    page.notes[:0] = [
        "Seconds of an epoch are the median of each seed's epochs, and of these the median. A ratio is the geometric "
        "mean over the seeds, with its 95 % interval where there are two or more: both had the same images in the same "
        "order. CPUs at work are those of the epochs. Memory is the most of the whole process.",
        *trained.notes,
        f"All epochs: {trained.times.source}; one file for each training: results/cells/.",
    ]
    return data, _layout(data)


def _measured(
    name: str, row: dict[str, Any], runs: pd.DataFrame, epochs: pd.DataFrame
) -> dict[str, Any]:
    """What one cell took, by seed and of all of them; a reason where no seed has an epoch."""
    failed = runs[runs["epochs"] == 0]
    seconds = epochs.groupby("repeat")["seconds"].median().to_dict()
    found = {
        "runner": name,
        "label": row["environment_label"],
        "network_label": row["label"],
        "by_seed": seconds,
        "reason": ""
        if seconds
        else status_reason(failed.iloc[0]["status"], failed.iloc[0]["reason"]),
    }
    if seconds:
        memory = runs["peak_memory_bytes"].dropna()
        found |= {
            "seconds": median(list(seconds.values())),
            "cpus": median(list(cpus_at_work(epochs))),
            "peak_memory_bytes": max(memory, default=None),
        }
    return found


def _beside(above: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
    row = {"network_label": above["network_label"], "reason": above["reason"] or below["reason"]}
    for side, cell in (("above", above), ("below", below)):
        row |= {f"{side}_{name}": cell.get(name) for name in MEASURED}
    if not row["reason"]:
        found = intervals.of_ratio(above["by_seed"], below["by_seed"])
        ratio = above["seconds"] / below["seconds"]
        interval = found.interval if found else (ratio, None, None)
        row |= dict(zip(("ratio", "low", "high"), interval, strict=True))
    return row


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    body, names = [], []
    for row in data.to_dict("records"):
        dash = Entry(DASH, (row["reason"],))
        texts = {
            "seconds": significant,
            "cpus": significant,
            "peak_memory_bytes": lambda value: f"{value / 2**30:.2f} GiB",
        }
        told = [
            Entry(text(row[f"{side}_{name}"])) if pd.notna(row[f"{side}_{name}"]) else dash
            for name, text in texts.items()
            for side in ("above", "below")
        ]
        body.append([*told[:2], _ratio(row) if pd.notna(row["ratio"]) else dash, *told[2:]])
        known = isinstance(row["network_label"], str)
        where = f"{row['platform']}, {plural(int(row['threads']), 'thread')}" if known else ""
        names.append(
            (
                row["network_label"] if known else "",
                row["above_label"] if known else row["above_runner"],
                row["below_label"] if known else row["below_runner"],
                where,
            )
        )
    index = pd.MultiIndex.from_tuples(names, names=["Network", "With", "Without", "Here"])
    columns = [("Seconds of an epoch", kind) for kind in ("with", "without", "ratio")]
    columns += [
        (what, side) for what in ("CPUs at work", "Peak memory") for side in ("with", "without")
    ]
    return pd.DataFrame(body, index=index, columns=pd.MultiIndex.from_tuples(columns), dtype=object)


def _ratio(row: dict[str, Any]) -> Entry:
    if pd.isna(row["low"]):
        return Entry(significant(row["ratio"]), ("fewer than two seeds of both, so no interval",))
    limits = f"{significant(row['low'])} to {significant(row['high'])}"
    return Entry(f"{significant(row['ratio'])} ({limits})")
