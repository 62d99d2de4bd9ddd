"""Table of forward passes beside training steps: seconds of each, samples a second, and the wait for an answer."""

from typing import Any

import numpy as np
import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import without
from steptime.render.columns import Column, Row, columns
from steptime.render.words import milliseconds, percent, processes, significant, why, why_or

# What a pass has in common with the step that it is shown beside, and with the pass of a single sample.
RUNNER = without("task", "dataset", "batch")
COLUMNS = [*common.NAMED, "seconds", "step_seconds", "share", "samples_per_second"]
COLUMNS += ["latency", "latency_99"]
# Fewer samples do not tell where the slowest hundredth begins.
ENOUGH = 100
FEW = f"fewer than {ENOUGH} samples were taken"
NO_STEP = "no training step of this network and mini-batch was timed"
NO_SAMPLE = "no mini-batch of 1 was timed"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; seconds) and the layout."""
    steps, waits, cells = _steps(inputs), _waits(inputs.measured.rows), inputs.measured.cells
    passes = [_row(cell, steps, waits) for cell in cells.to_dict("records")]
    # A mini-batch of 1 has a line of its own where the grid has no other.
    sizes = cells.groupby(RUNNER, dropna=False)["batch"].transform("max")
    rows = pd.DataFrame(passes, columns=[*COLUMNS, "framework_version"])
    rows = rows[sizes.eq(cells["batch"]) | (cells["batch"] > 1)]
    data = common.labelled(rows, inputs.frameworks, inputs.networks)[COLUMNS]
    common.describe(
        inputs,
        "In use: nothing is dropped, batch normalisation takes statistics that a training has left, and there is no "
        "gradient. Outputs are compared with those of float64 before and after the samples.",
        "One sample: a mini-batch of 1, and each sample is one pass until its outputs are there: the median of all, "
        "and the time within which 99 of 100 are done.",
        processes(cells),
    )
    return data, columns(data, SHOWN, INDEX)


def _steps(inputs: Inputs) -> dict[tuple[Any, ...], float]:
    """Returns seconds of training steps, by the RUNNER and the mini-batch."""
    every = inputs.every_measured if inputs.has("every_cell") else []
    return {
        _key(cell): cell["seconds"]
        for each in every
        for cell in each.cells.to_dict("records")
        if pd.notna(cell["seconds"])
    }


def _waits(rows: pd.DataFrame) -> dict[tuple[Any, ...], tuple[float, float | None]]:
    """Returns median and 99th percentile of the passes of single samples, by RUNNER and a mini-batch of 1."""
    alone = rows[(rows["batch"] == 1) & rows["seconds"].notna() & (rows["status"] == "ok")]
    alone = alone.assign(variant=alone["variant"].fillna(""))
    waits = {}
    for _, group in alone.groupby(RUNNER, dropna=False):
        seconds = group["seconds"].astype(float)
        slowest = float(np.quantile(seconds, 0.99)) if len(seconds) >= ENOUGH else None
        waits[_key(group.iloc[0].to_dict())] = float(seconds.median()), slowest
    return waits


def _key(row: Row, batch: int = 0) -> tuple[Any, ...]:
    return (*(row[name] for name in RUNNER), batch or row["batch"])


def _row(
    cell: Row,
    steps: dict[tuple[Any, ...], float],
    waits: dict[tuple[Any, ...], tuple[float, float | None]],
) -> Row:
    row = cell | {"network": cell["variant"] or cell["network"]}
    step, seconds = steps.get(_key(cell)), cell["seconds"]
    row["latency"], row["latency_99"] = waits.get(_key(cell, 1), (None, None))
    row["step_seconds"] = step
    if pd.notna(seconds):
        row["samples_per_second"] = cell["batch"] / seconds
        row["share"] = seconds / step if step else None
    return row


def _why_no_step(row: Row) -> str:
    return NO_STEP if pd.isna(row["step_seconds"]) else why(row)


NO_LATENCY = why_or(lambda row: NO_SAMPLE if pd.isna(row["latency"]) else FEW)
SHOWN = [
    Column(("A mini-batch", "training step, s"), "step_seconds", significant, NO_STEP, "ours"),
    Column(("A mini-batch", "in use, s"), "seconds", significant, why, "ours"),
    Column(("A mini-batch", "share of the step"), "share", percent, _why_no_step),
    Column(("A mini-batch", "samples/s"), "samples_per_second", significant, why, "ours"),
    Column(("One sample", "median, ms"), "latency", milliseconds, NO_LATENCY, "ours"),
    Column(("One sample", "99 % within, ms"), "latency_99", milliseconds, NO_LATENCY, "ours"),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label", "Place": common.place_of}
