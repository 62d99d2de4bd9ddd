"""How much faster several devices are than one, with intervals, as a table."""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import without
from steptime.reading import InputError
from steptime.render import words
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import TEXT
from steptime.render.words import percent, processes, ranged, remarks, significant, size, why
from steptime.statistics import ratios
from steptime.statistics.spreads import Spreads

# A number of times, with its interval.
Factor: TypeAlias = list[float] | list[None]
# What a cell on several devices has in common with the cells that it is compared with.
ALIKE = without("devices", "exchange", "threads", "batch")
COLUMNS = [*common.NAMED, "marks", "seconds", "repeats", "bytes_exchanged", "exchange_seconds"]
COLUMNS += ["staleness", "scaling"]
COLUMNS += ["speedup", "low", "high", "efficiency", "whole", "whole_low", "whole_high"]
TYPES = {"scaling": TEXT}
NONE_ALONE = "no result on one device of this kind was timed"
NONE_AS_LARGE = "no mini-batch as large as that of all devices together was timed on one device"
NO_INTERVAL = "fewer than two repeats of both were measured, so there is no interval"
WAITS, UNTOLD = "they wait for one another", "the framework does not tell"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS), one for each cell on several devices, and the layout.

    `speedup` is against one device with the threads of one rank, `whole` against one device with the threads of all.
    `scaling` is `strong` where the devices share one mini-batch, `weak` where each has one as large. Raises InputError
    where there are no such cells.
    """
    rows, measured = common.cells_of(inputs), inputs.measured
    several = [
        (row, alike[alike["devices"] == 1])
        for _, alike in rows.groupby(ALIKE, sort=False, dropna=False)
        for row in alike[alike["devices"] > 1].to_dict("records")
    ]
    if not several:
        raise InputError(
            "The grid has no cell on several devices: write `devices: [1, 2]` into it."
        )
    compared = _compared(several, measured.statistics.ratios)
    data = pd.DataFrame(compared, columns=COLUMNS)
    common.describe(
        inputs,
        "Speed-up: samples per second, divided by those of one device with as many threads; in brackets its 95 % "
        "interval, Student's, of the repeats' logarithms, with a variance that all ratios of the run on as many "
        "devices and threads help to estimate. Efficiency: speed-up divided by the number of devices.",
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
    )
    return data, columns(data, SHOWN, INDEX)


def _compared(several: list[tuple[Row, pd.DataFrame]], spreads: Spreads) -> list[Row]:
    """Returns a row for each cell on several devices, compared with the cells like it on one."""
    rows, bases, wholes = [], [], []
    for row, alone in several:
        devices, threads, batch = row["devices"], row["threads"], row["batch"]
        # By what was asked for: the one device may have failed.
        batches, share = set(alone["batch"]), batch // devices
        weak = batch not in batches and share in batches
        scaling = "weak" if weak else "strong" if batch in batches else None
        own = {name: row.get(name) for name in COLUMNS} | {"marks": ", ".join(row["marks"])}
        rows.append(own | {"scaling": scaling})
        timed = row["status"] == "ok"
        base = one_device(alone, threads, share if weak else batch) if timed else None
        bases.append(base)
        wholes.append(one_device(alone, devices * threads, batch) if timed else None)
    cells = [row for row, _ in several]
    both = zip(_faster(cells, bases, spreads), _faster(cells, wholes, spreads), strict=True)
    for own, (speedup, whole) in zip(rows, both, strict=True):
        own["speedup"], own["low"], own["high"] = speedup
        own["whole"], own["whole_low"], own["whole_high"] = whole
        own["efficiency"] = own["speedup"] and own["speedup"] / own["devices"]
    return rows


def one_device(alone: pd.DataFrame, threads: int, batch: int) -> Row | None:
    """Returns the timed cell on one device with so many threads and this mini-batch; None where there is none."""
    chosen = alone["threads"].eq(threads) & alone["batch"].eq(batch) & alone["status"].eq("ok")
    alike = alone[chosen].to_dict("records")
    return alike[0] if alike else None


def _faster(cells: list[Row], bases: list[Row | None], spreads: Spreads) -> Iterator[Factor]:
    """Yields how many times as many samples per second a cell has as its base, with the interval, or None."""
    known = ratios.to_bases(cells, bases, spreads)
    for cell, base, ratio in zip(cells, bases, known, strict=True):
        if base is None:
            yield [None] * 3
        else:
            alone = base["seconds"] / cell["seconds"], math.nan, math.nan
            factor = cell["batch"] / base["batch"]
            yield [factor * each for each in (ratio.interval if ratio else alone)]


def _factor(heading: str, name: str, low: str, high: str, none: Callable[[Row], str]) -> Column:
    def shown(row: Row) -> str | None:
        return None if pd.isna(row[name]) else ranged(row[name], row[low], row[high])

    def remarks(row: Row) -> list[str]:
        return [NO_INTERVAL] if pd.isna(row[low]) else []

    return Column(heading, shown, str, none, "ours", remarks)


NO_BASE = words.why_or(NONE_ALONE)
NO_WHOLE = words.why_or(lambda row: NONE_AS_LARGE if row["scaling"] == "weak" else NONE_ALONE)
NONE_MISSED = words.why_or(lambda row: WAITS if row["exchange"] == "sync" else UNTOLD)
WHOLE = "Against one device with the threads of all"
SHOWN = [
    Column("Scaling", "scaling", kind="words"),
    Column("Seconds per mini-batch", "seconds", significant, why, "ours", remarks),
    _factor("Speed-up", "speedup", "low", "high", NO_BASE),
    Column("Efficiency", "efficiency", percent, NO_BASE),
    _factor(WHOLE, "whole", "whole_low", "whole_high", NO_WHOLE),
    Column("Exchanged in a step", "bytes_exchanged", size, words.why_or("not known")),
    Column("Missed updates", "staleness", lambda count: significant(count, 2), NONE_MISSED),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label", "Devices": common.ranks_of}
