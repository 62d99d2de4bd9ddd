"""Table that compares the steps of several devices with the sum of calculation and exchange, one after the other."""

from typing import Any

import numpy as np
import pandas as pd

from shared.operations import BYTES
from steptime.artefacts import common
from steptime.artefacts.devices import exchange, speedup
from steptime.artefacts.inputs import Inputs
from steptime.reading import InputError
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import milliseconds, percent, processes, why_or

COLUMNS = [*common.NAMED, "seconds", "gradient_bytes", "compute", "basis", "exchange_alone"]
COLUMNS += ["predicted", "ratio", "hidden", "exchange_seconds"]
TYPES = {"basis": TEXT, "gradient_bytes": COUNT}
OF_SHARE, OF_ALL = "of the share", "of all, divided"
NO_STEP = "no step on one device of this kind was timed"
NO_SUM = "no sum over these ranks was timed ('sums' under 'parts' of the grid)"
# What a cell has in common with its sums: all but the network and its mini-batch.
PLACE = ["platform", "environment", "mode", "precision", "devices", "exchange", "threads"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS), one for each cell whose ranks wait, and the layout. Raises InputError."""
    measured, rows, alone = inputs.measured, common.cells_of(inputs), sums_of(inputs)
    counts = common.whole(measured.rows)
    parameters = counts.groupby("network")["parameters"].max().to_dict()
    results = [
        _row(row, alike[alike["devices"] == 1], alone, parameters[row["network"]])
        for _, alike in rows.groupby(speedup.ALIKE, sort=False, dropna=False)
        for row in alike[alike["exchange"] == "sync"].to_dict("records")
    ]
    if not results:
        raise InputError(
            "The grid has no cell whose ranks wait for one another: write `exchange: [sync]` into it."
        )
    common.describe(
        inputs,
        "Calculation alone: a step on one device with as many threads, of the share of a rank; where none of that "
        "mini-batch was timed, of all of it, divided by the number of devices (marked). Exchange alone: one sum over "
        "the ranks of an array as long as the gradients (steptime_exchange), where needed on the straight line "
        "between the two nearest sizes, both as logarithms.",
        "Exchange hidden: the share of the exchange by which the measured step is shorter than both one after the "
        "other. Below 0 %, it takes longer than both; above 100 %, it is shorter than the calculation alone.",
        "A framework that sends gradients in pieces, or by a server, does not send them as one sum.",
        processes(measured.cells),
    )
    data = pd.DataFrame(results, columns=COLUMNS)
    return data, columns(data, SHOWN, INDEX)


def sums_of(inputs: Inputs) -> pd.DataFrame:
    """Returns the median seconds of every sum that was timed: PLACE, `bytes` and `seconds`."""
    known = exchange.timed_sums(inputs.parts)
    if known.empty:
        return pd.DataFrame(columns=[*PLACE, "bytes", "seconds"])
    named = [*PLACE, "bytes"]
    # First the median of each process, then over processes.
    medians = known.groupby([*named, "repeat"])["seconds"].median().reset_index()
    return medians.groupby(named)["seconds"].median().reset_index()


def seconds_of(sums: pd.DataFrame, size: int) -> float | None:
    """Says how long a sum of `size` bytes takes, by the timed ones (`bytes`, `seconds`); None beyond their sizes."""
    known = sums.sort_values("bytes")
    if known.empty or not known["bytes"].iloc[0] <= size <= known["bytes"].iloc[-1]:
        return None
    line = np.interp(np.log(size), np.log(known["bytes"]), np.log(known["seconds"].astype(float)))
    return float(np.exp(line))


def _row(row: Row, one_device: pd.DataFrame, sums: pd.DataFrame, parameters: float) -> Row:
    result = {name: row.get(name) for name in COLUMNS}
    devices, threads, batch = row["devices"], row["threads"], row["batch"]
    result["gradient_bytes"] = BYTES * int(parameters) if pd.notna(parameters) else None
    share = speedup.one_device(one_device, threads, batch // devices)
    whole = speedup.one_device(one_device, threads, batch)
    if share is not None:
        result |= {"compute": share["seconds"], "basis": OF_SHARE}
    elif whole is not None:
        result |= {"compute": whole["seconds"] / devices, "basis": OF_ALL}
    own = sums[(sums[PLACE] == pd.Series({name: row[name] for name in PLACE})).all(axis=1)]
    if result["gradient_bytes"]:
        result["exchange_alone"] = seconds_of(own, result["gradient_bytes"])
    if result["compute"] and result["exchange_alone"]:
        result["predicted"] = result["compute"] + result["exchange_alone"]
        if row["status"] == "ok":
            saved = result["predicted"] - row["seconds"]
            result["ratio"] = row["seconds"] / result["predicted"]
            result["hidden"] = saved / result["exchange_alone"]
    return result


def _divided(row: Row) -> list[str]:
    return ["a step of all, divided by the number of devices"] if row["basis"] == OF_ALL else []


NO_BOTH = why_or(lambda row: NO_STEP if pd.isna(row["compute"]) else NO_SUM)
UNTOLD = why_or("the framework does not tell")
SHOWN = [
    Column("Gradients", "gradient_bytes", exchange.size_text, "not known"),
    Column("Calculation alone, ms", "compute", milliseconds, NO_STEP, "ours", _divided),
    Column("Exchange alone, ms", "exchange_alone", milliseconds, NO_SUM, "ours"),
    Column("Both, ms", "predicted", milliseconds, NO_BOTH, "ours"),
    Column("Measured, ms", "seconds", milliseconds, why_or(""), "ours"),
    Column("Measured ÷ both", "ratio", lambda ratio: f"{ratio:.2f}", NO_BOTH),
    Column("Exchange hidden", "hidden", lambda part: percent(part).replace("-", "−"), NO_BOTH),
    Column(
        "Exchange, as the framework tells, ms", "exchange_seconds", milliseconds, UNTOLD, "ours"
    ),
]
INDEX: dict[str, Any] = {
    "Network": common.of_network,
    "Framework": "framework_label",
    "Devices": lambda row: common.ranks_of(row | {"exchange": ""}),
}
