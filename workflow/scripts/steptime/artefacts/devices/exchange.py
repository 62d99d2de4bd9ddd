"""Times of sums over ranks, with no training around them, by each framework's own way, beside copies in memory."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from shared.operations import COPY, ROLES, SUM
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import parts
from steptime.merge.measured import Measured
from steptime.render import figures
from steptime.render.columns import Column, Row, columns
from steptime.render.words import machine_name, marked, milliseconds, origin, plural, significant

COLUMNS = [*parts.COLUMNS, "bytes", "algbw", "busbw"]
TYPES = parts.TYPES
GIGA = 1e9


def read(inputs: Inputs) -> pd.DataFrame:
    """Returns one row (COLUMNS and `medians`) for each sum and copy.

    In GB/s, algbw = bytes / seconds, and busbw = algbw * 2 (n - 1) / n for n ranks, as in NVIDIA's nccl-tests.
    """
    data = parts.read(inputs)
    # To wait for the others is no fault of a sum's.
    marks = [
        ", ".join(mark for mark in row.split(", ") if mark != "idle threads")
        for row in data["marks"]
    ]
    size = [int(part.split()[0]) if part else None for part in data["part"]]
    algbw = pd.Series(size, data.index, dtype=float) / data["seconds"].astype(float) / GIGA
    ranks = data["devices"]
    busbw = (algbw * 2 * (ranks - 1) / ranks).where(data["way"] == SUM)
    rated = data.assign(marks=marks, bytes=size, algbw=algbw, busbw=busbw)
    return rated.sort_values(["devices", "bytes"], kind="stable")


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    data = read(inputs)
    common.describe(
        inputs,
        "algbw: bytes of the array divided by the seconds until every rank has the sum. busbw: algbw × 2 (n − 1) ÷ n, "
        "what each of n ranks must send at the least; of two ranks it is the same. A copy: as many bytes from one "
        "place of a rank's memory to another, by NumPy, while the other ranks rest.",
        "The ranks are processes of one machine, which speak over the loopback interface.",
        parts.off_by(data),
    )
    place = ["platform", "threads", "devices", "framework_label", "part"]
    rows = data.drop_duplicates([*place, "way"], keep="last")
    copies = rows[rows["way"] == COPY].set_index(place)["algbw"].rename("copied")
    sums = rows[rows["way"] != COPY].join(copies, on=place)
    sums = sums.sort_values("bytes", kind="stable", na_position="first")
    return data[COLUMNS], columns(sums, SHOWN, INDEX)


def timed_sums(alone: Iterable[Measured]) -> pd.DataFrame:
    """Returns the samples of every timed sum over ranks, with the array's `bytes`; an empty frame where none was."""
    samples = [each.rows for each in alone]
    known = [rows[(rows["way"] == SUM) & rows["seconds"].notna()] for rows in samples]
    rows = pd.concat(known) if known else pd.DataFrame(columns=["part"])
    return rows.assign(bytes=[int(part.split()[0]) for part in rows["part"]])


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: GB/s against the size of the array."""
    data = read(inputs)
    timed = data[data["repeats"] > 0]
    drawn = timed[(timed["way"] == SUM) & (timed["role"] != ROLES[True])]
    copies = timed[(timed["way"] == COPY) & (timed["role"] != ROLES[True])]
    several = drawn.groupby("framework_label")[["platform", "threads", "devices"]].nunique().max()
    with figures.canvas() as (drawing, axes):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(drawn["bytes"]))[::2]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))
        figures.plain_logarithms(axes.yaxis)
        axes.set_xlabel("size of the array")
        axes.set_ylabel("algbw (GB/s), more is better")
        handles = []
        named = ["framework_label", "platform", "threads", "devices"]
        for (name, platform, threads, devices), line in drawn.groupby(named, sort=False):
            style = inputs.frameworks[line["framework"].iloc[0]].style
            axes.plot(line["bytes"], line["algbw"], **style, zorder=3)
            figures.stars(axes, line, "bytes", "algbw")
            where = f", {machine_name(platform)}, {devices} x {plural(threads, 'thread')}"
            handles.append(figures.key(name + (where if several.max() > 1 else ""), **style))
        if len(copies):
            grey = {"color": figures.GREY, "linestyle": ":"}
            fastest = copies.groupby("bytes")["algbw"].median()
            axes.plot(fastest.index, fastest, zorder=2, **grey)
            handles.append(figures.key("a copy in memory", **grey))
        figures.headings(axes, inputs.entry["title"], [inputs.entry["axis"]])
    notes = [inputs.entry["caption"], *parts.remarks(data), *origin(inputs.measured)]
    figures.caption(drawing, figures.starred(drawn), notes, handles, 2)
    return timed[COLUMNS], drawing


def size_text(size: float) -> str:
    """Writes a size: '4 KiB', '512 MiB'; sizes between, as gradients have, to three digits."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= length:
            return f"{significant(size / length) if size % length else int(size // length)} {unit}"
    return f"{int(size)} B"


def _why(row: Row) -> str:
    return row["lacking"] or "it was not asked for"


def _what(row: Row) -> str:
    of_network = f"{row['role']} of {row['network_label']}"
    return row["role"] if row["role"] in ("", ROLES[False]) else of_network


# A result that failed as a whole has one line, of no size.
SHOWN = [
    Column("Milliseconds", "seconds", milliseconds, _why, "ours", marked),
    Column("algbw, GB/s", "algbw", significant, _why),
    Column("busbw, GB/s", "busbw", significant, _why),
    Column("CPUs of a rank", "cpus", lambda cpus: f"{cpus:.2f}", _why),
    Column("a copy, GB/s", "copied", significant, lambda row: "" if row["part"] else _why(row)),
]
INDEX: dict[str, Any] = {
    "Size": lambda row: size_text(row["bytes"]) if row["part"] else "",
    "What": _what,
    "Framework": "framework_label",
    "Ranks": lambda row: (
        f"{machine_name(row['platform'])}, {common.ranks_of(row | {'exchange': ''})}"
    ),
}
