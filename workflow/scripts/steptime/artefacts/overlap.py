"""Steps of several devices as calculation and exchange one after the other would be, beside the measured ones."""

from typing import Any

import numpy as np
import pandas as pd

from shared.operations import BYTES, SUM
from steptime.artefacts import common, exchange, speedup
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import IDENTITY
from steptime.reading import InputError
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, processes, raw_data, significant, status_reason

COLUMNS = [*IDENTITY, "network_label", "framework", "framework_label", "status", "reason"]
COLUMNS += ["seconds", "gradient_bytes", "compute", "basis", "exchange_alone", "predicted"]
COLUMNS += ["ratio", "hidden", "exchange_seconds"]
OF_SHARE, OF_ALL = "of the share", "of all, divided"
HEADINGS = ["Gradients", "Calculation alone, ms", "Exchange alone, ms", "Both, ms"]
HEADINGS += [
    "Measured, ms",
    "Measured ÷ both",
    "Exchange hidden",
    "Exchange, as the framework tells, ms",
]
# Whose sums are those of a cell: all but the network and its mini-batch.
PLACE = ["platform", "environment", "mode", "precision", "devices", "exchange", "threads"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS), one for each cell of ranks that wait for one another, and the layout.

    Raises InputError where there is none.
    """
    measured = inputs.measured
    cells = measured.cells.assign(variant=measured.cells["variant"].fillna(""))
    cells["network"] = [common.whole_name(cell) for cell in cells.to_dict("records")]
    rows = common.labelled(cells, inputs.frameworks, inputs.networks)
    alone = sums_of(inputs)
    counts = measured.rows.assign(variant=measured.rows["variant"].fillna(""))
    counts["network"] = [common.whole_name(row) for row in counts.to_dict("records")]
    parameters = counts.groupby("network")["parameters"].max().to_dict()
    found = [
        _row(row, alike[alike["devices"] == 1], alone, parameters[row["network"]])
        for _, alike in rows.groupby(speedup.ALIKE, sort=False, dropna=False)
        for row in alike[alike["exchange"] == "sync"].to_dict("records")
    ]
    if not found:
        raise InputError(
            "The grid has no cell whose ranks wait for one another: write `exchange: [sync]` into it."
        )
    inputs.page.facts = facts(measured)
    inputs.page.notes = [
        "Calculation alone: a step on one device with as many threads, of the share of a rank; where none of that "
        "mini-batch was timed, of all of it, divided by the number of devices (marked). Exchange alone: one sum over "
        "the ranks of an array as long as the gradients (steptime_exchange), where needed on the straight line "
        "between the two nearest sizes, both as logarithms.",
        "Exchange hidden: the share of the exchange by which the measured step is shorter than both one after the "
        "other. Below 0 %, it takes longer than both; above 100 %, it is shorter than the calculation alone.",
        "A framework that sends gradients in pieces, or by a server, does not send them as one sum.",
        processes(measured.cells),
        *inputs.page.notes,
        raw_data(measured),
    ]
    data = pd.DataFrame(found, columns=COLUMNS)
    return data, _layout(data)


def sums_of(inputs: Inputs) -> pd.DataFrame:
    """The median seconds of every sum that was timed: PLACE, `bytes` and `seconds`."""
    rows = [each.rows for each in inputs.parts if (each.rows["way"] == SUM).any()]
    if not rows:
        return pd.DataFrame(columns=[*PLACE, "bytes", "seconds"])
    known = pd.concat(rows)
    known = known[known["seconds"].notna() & (known["way"] == SUM)]
    known = known.assign(bytes=[int(part.split()[0]) for part in known["part"]])
    named = [*PLACE, "bytes"]
    # Of processes, then of what they came to.
    medians = known.groupby([*named, "repeat"])["seconds"].median().reset_index()
    return medians.groupby(named)["seconds"].median().reset_index()


def seconds_of(sums: pd.DataFrame, size: int) -> float | None:
    """What a sum of so many bytes takes, by those (`bytes`, `seconds`) that were timed; None beyond them."""
    known = sums.sort_values("bytes")
    if known.empty or not known["bytes"].iloc[0] <= size <= known["bytes"].iloc[-1]:
        return None
    line = np.interp(np.log(size), np.log(known["bytes"]), np.log(known["seconds"].astype(float)))
    return float(np.exp(line))


def _row(
    row: dict[str, Any], one_device: pd.DataFrame, sums: pd.DataFrame, parameters: float
) -> dict[str, Any]:
    found = {name: row.get(name) for name in COLUMNS}
    devices, threads, batch = row["devices"], row["threads"], row["batch"]
    found["gradient_bytes"] = BYTES * int(parameters) if pd.notna(parameters) else None
    share = speedup.one_device(one_device, threads, batch // devices)
    whole = speedup.one_device(one_device, threads, batch)
    if share is not None:
        found |= {"compute": share["seconds"], "basis": OF_SHARE}
    elif whole is not None:
        found |= {"compute": whole["seconds"] / devices, "basis": OF_ALL}
    own = sums[(sums[PLACE] == pd.Series({name: row[name] for name in PLACE})).all(axis=1)]
    if found["gradient_bytes"]:
        found["exchange_alone"] = seconds_of(own, found["gradient_bytes"])
    if found["compute"] and found["exchange_alone"]:
        found["predicted"] = found["compute"] + found["exchange_alone"]
        if row["status"] == "ok":
            saved = found["predicted"] - row["seconds"]
            found["ratio"] = row["seconds"] / found["predicted"]
            found["hidden"] = saved / found["exchange_alone"]
    return found


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    index = [
        (
            f"{row['network_label']}, batch {row['batch']}",
            row["framework_label"],
            f"{row['devices']} x {plural(row['threads'], 'thread')}",
        )
        for row in data.to_dict("records")
    ]
    names = ["Network", "Framework", "Devices"]
    return pd.DataFrame(
        [_entries(row) for row in data.to_dict("records")],
        index=pd.MultiIndex.from_tuples(index, names=names),
        columns=HEADINGS,
        dtype=object,
    )


def _entries(row: dict[str, Any]) -> list[Entry]:
    failed = status_reason(row["status"], row["reason"]) if row["status"] != "ok" else ""
    no_step = "no step on one device of this kind was timed"
    no_sum = "no sum over these ranks was timed ('sums' under 'parts' of the grid)"
    both = failed or (no_step if pd.isna(row["compute"]) else no_sum)
    size = row["gradient_bytes"]
    compute = _milliseconds(row["compute"], no_step)
    if row["basis"] == OF_ALL:
        compute = Entry(
            compute.text, ("a step of all, divided by the number of devices",), kind="ours"
        )
    told = "the framework does not tell"
    return [
        common.dash("not known") if pd.isna(size) else Entry(exchange.size_text(size)),
        compute,
        _milliseconds(row["exchange_alone"], no_sum),
        _milliseconds(row["predicted"], both),
        _milliseconds(row["seconds"] if not failed else None, failed),
        common.dash(both) if pd.isna(row["ratio"]) else Entry(f"{row['ratio']:.2f}"),
        common.dash(both)
        if pd.isna(row["hidden"])
        else Entry(f"{100 * row['hidden']:.0f} %".replace("-", "−")),
        _milliseconds(row["exchange_seconds"], failed or told),
    ]


def _milliseconds(seconds: Any, why_not: str) -> Entry:
    return (
        common.dash(why_not) if pd.isna(seconds) else Entry(significant(1e3 * seconds), kind="ours")
    )
