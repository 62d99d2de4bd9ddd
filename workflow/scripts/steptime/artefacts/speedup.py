"""How much faster several devices are than one, with intervals, as a table."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge import ratios
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY, without
from steptime.reading import InputError
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    facts,
    plural,
    processes,
    raw_data,
    significant,
    size,
    status_reason,
)

Row = dict[str, Any]
# A number of times, with its interval.
Factor = tuple[float | None, float | None, float | None]

# What a cell on several devices has in common with the cells that it is compared with.
ALIKE = without("devices", "exchange", "threads", "batch")
COLUMNS = [*IDENTITY, "network_label", "framework", "framework_label", "status", "reason", "marks"]
COLUMNS += ["seconds", "repeats", "bytes_exchanged", "exchange_seconds", "staleness", "scaling"]
COLUMNS += ["speedup", "low", "high", "efficiency", "whole", "whole_low", "whole_high"]
NONE_ALONE = "no cell on one device of this kind was timed"
NONE_AS_LARGE = "no mini-batch as large as that of all devices together was timed on one device"
NO_INTERVAL = "fewer than two repeats of both were measured, so there is no interval"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(inputs.measured, inputs.frameworks, inputs.networks, inputs.page)


def build(
    measured: Measured, frameworks: Frameworks, catalogue: dict[str, Any], page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS), one for each cell on several devices, and the layout; fills the page's facts and notes.

    `speedup` is samples per second divided by those of one device with as many threads, `efficiency` that divided by
    the number of devices, `whole` the same against one device with the threads of all. `scaling` says whether the
    devices share the mini-batch of the one (`strong`) or each has one as large (`weak`). Raises InputError where no
    cell has several devices.
    """
    cells = measured.cells.assign(variant=measured.cells["variant"].fillna(""))
    cells["network"] = [common.whole_name(cell) for cell in cells.to_dict("records")]
    rows = common.labelled(cells, frameworks, catalogue)
    several = [
        (row, alike[alike["devices"] == 1])
        for _, alike in rows.groupby(ALIKE, sort=False, dropna=False)
        for row in alike[alike["devices"] > 1].to_dict("records")
    ]
    if not several:
        raise InputError(
            "The grid has no cell on several devices: write `devices: [1, 2]` into it."
        )
    data = pd.DataFrame(_compared(several), columns=COLUMNS)
    page.facts = facts(measured)
    page.notes = [
        "Speed-up: samples per second, divided by those of one device with as many threads; in brackets its 95 % "
        "interval, Student's, of the repeats' logarithms, with a variance that is moderated by those of all such cells "
        "on as many devices and threads. Efficiency: speed-up divided by the number of devices.",
        "Against one device with the threads of all: the same machine without any exchange. Above 1, several "
        "processes are faster than several threads.",
        "Strong: the devices share the mini-batch of the one. Weak: each has one as large. Its seconds are those of "
        "all their samples, and 100 % is a step that takes as long as on one device.",
        "async: devices do not wait for one another, and a mini-batch is an update of each of them. mixed: groups of "
        "two do not, and it is an update of each group. Missed updates: those of others between the reading of weights "
        "and the update that follows, in the mean.",
        "Exchanged: what went over the network, of all devices together. Those that have their weights in memory in "
        "common only tell one another there when to go on.",
        processes(measured.cells),
        raw_data(measured),
    ]
    return data, _layout(data)


def _compared(several: list[tuple[Row, pd.DataFrame]]) -> list[Row]:
    """A row of each cell on several devices beside the cells like it on one."""
    found, bases, wholes = [], [], []
    for row, alone in several:
        devices, threads, batch = row["devices"], row["threads"], row["batch"]
        # By what was asked for: the one device may have failed.
        asked, share = set(alone["batch"]), batch // devices
        weak = batch not in asked and share in asked
        scaling = "weak" if weak else "strong" if batch in asked else None
        own = {name: row.get(name) for name in COLUMNS} | {"marks": ", ".join(row["marks"])}
        found.append(own | {"scaling": scaling})
        timed = row["status"] == "ok"
        base = one_device(alone, threads, share if weak else batch) if timed else None
        bases.append(base)
        wholes.append(one_device(alone, devices * threads, batch) if timed else None)
    cells = [row for row, _ in several]
    for own, speedup, whole in zip(
        found, _faster(cells, bases), _faster(cells, wholes), strict=True
    ):
        own["speedup"], own["low"], own["high"] = speedup
        own["whole"], own["whole_low"], own["whole_high"] = whole
        times = own["speedup"]
        own["efficiency"] = None if times is None else times / own["devices"]
    return found


def one_device(alone: pd.DataFrame, threads: int, batch: int) -> Row | None:
    """The timed cell on one device with so many threads and this mini-batch; None where there is none."""
    chosen = alone["threads"].eq(threads) & alone["batch"].eq(batch) & alone["status"].eq("ok")
    found = alone[chosen].to_dict("records")
    return found[0] if found else None


def _faster(cells: list[Row], bases: list[Row | None]) -> Iterator[Factor]:
    """How many times as many samples per second each cell has as its base, with the interval; None where not known."""
    known = ratios.to_bases(cells, bases)
    for cell, base, ratio in zip(cells, bases, known, strict=True):
        if base is None:
            yield None, None, None
            continue
        factor = cell["batch"] / base["batch"]
        if ratio is None:
            yield factor * base["seconds"] / cell["seconds"], None, None
        else:
            middle, low, high = ratio.interval
            yield factor * middle, factor * low, factor * high


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    index = [
        (
            f"{row['network_label']}, batch {row['batch']}",
            row["framework_label"],
            f"{row['devices']} x {plural(row['threads'], 'thread')}, {row['exchange']}",
        )
        for row in data.to_dict("records")
    ]
    headings = ["Scaling", "Seconds per mini-batch", "Speed-up", "Efficiency"]
    headings += ["Against one device with the threads of all", "Exchanged in a step"]
    headings += ["Missed updates"]
    return pd.DataFrame(
        [_entries(row) for row in data.to_dict("records")],
        index=pd.MultiIndex.from_tuples(index, names=["Network", "Framework", "Devices"]),
        columns=headings,
        dtype=object,
    )


def _entries(row: dict[str, Any]) -> list[Entry]:
    scaling = Entry(row["scaling"] or "", kind="words")
    if row["status"] != "ok":
        reason = status_reason(row["status"], row["reason"])
        return [scaling, *(common.dash(reason) for _ in range(6))]
    texts = [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]
    texts += [row["reason"].rstrip(".")] if row["reason"] else []
    efficiency, sent, missed = row["efficiency"], row["bytes_exchanged"], row["staleness"]
    waits = (
        "they wait for one another" if row["exchange"] == "sync" else "the framework does not tell"
    )
    as_large = NONE_AS_LARGE if row["scaling"] == "weak" else NONE_ALONE
    return [
        scaling,
        Entry(significant(row["seconds"]), tuple(texts), kind="ours"),
        _with_interval(row["speedup"], row["low"], row["high"], NONE_ALONE),
        common.dash(NONE_ALONE) if pd.isna(efficiency) else Entry(f"{100 * efficiency:.0f} %"),
        _with_interval(row["whole"], row["whole_low"], row["whole_high"], as_large),
        common.dash("not known") if pd.isna(sent) else Entry(size(sent)),
        common.dash(waits) if pd.isna(missed) else Entry(significant(missed, 2)),
    ]


def _with_interval(value: Any, low: Any, high: Any, none: str) -> Entry:
    if pd.isna(value):
        return common.dash(none)
    if pd.isna(low):
        return Entry(significant(value), (NO_INTERVAL,), kind="ours")
    return Entry(f"{significant(value)} ({significant(low)} to {significant(high)})", kind="ours")
