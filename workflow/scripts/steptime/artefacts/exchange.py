"""What ranks exchange, alone: sums of arrays over the ranks of a cell, by each framework's own way, beside copies."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from shared.operations import COPY, ROLES, SUM
from steptime.artefacts import common, parts
from steptime.artefacts.inputs import Inputs
from steptime.render import figures
from steptime.render.columns import laid_out
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, raw_data, significant

COLUMNS = [*parts.COLUMNS, "bytes", "algbw", "busbw"]
GIGA = 1e9
HEADINGS = ("Milliseconds", "algbw, GB/s", "busbw, GB/s", "CPUs of a rank", "a copy, GB/s")


def read(inputs: Inputs) -> pd.DataFrame:
    """One row (COLUMNS and `medians`) for each sum and copy; algbw and busbw in GB/s."""
    data = parts.read(inputs)
    # To wait for the others is no fault of a sum's.
    marks = [[mark for mark in row.split(", ") if mark != "idle threads"] for row in data["marks"]]
    return with_rates(data.assign(marks=[", ".join(kept) for kept in marks]))


def with_rates(data: pd.DataFrame) -> pd.DataFrame:
    """The rows with `bytes` of the array, `algbw` and `busbw`.

    algbw is bytes of the array by seconds; busbw is algbw * 2 (n - 1) / n, which is what each of n ranks sends at the
    least (the words are those of NVIDIA's nccl-tests). A copy has its algbw alone.
    """
    size = [int(part.split()[0]) if part else None for part in data["part"]]
    algbw = pd.Series(size, data.index, dtype=float) / data["seconds"].astype(float) / GIGA
    ranks = data["devices"]
    busbw = (algbw * 2 * (ranks - 1) / ranks).where(data["way"] == SUM)
    return data.assign(bytes=size, algbw=algbw, busbw=busbw).sort_values(
        ["devices", "bytes"], kind="stable"
    )


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout."""
    data = read(inputs)
    inputs.page.facts = facts(inputs.measured)
    inputs.page.notes = [
        "algbw: bytes of the array divided by the seconds until every rank has the sum. busbw: algbw × 2 (n − 1) ÷ n, "
        "what each of n ranks must send at the least; of two ranks it is the same. A copy: as many bytes from one "
        "place of a rank's memory to another, by NumPy, while the other ranks rest.",
        "The ranks are processes of one machine, which speak over the loopback interface.",
        parts.off_by(data),
        *inputs.page.notes,
        raw_data(inputs.measured),
    ]
    return data[COLUMNS], _layout(data)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing: GB/s against the size of the array."""
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
        for label, line in drawn.groupby(named, sort=False):
            look = inputs.frameworks[line["framework"].iloc[0]].look
            axes.plot(line["bytes"], line["algbw"], **look, zorder=3)
            handles.append(figures.key(_label(label, several.max() > 1), **look))
        if len(copies):
            grey = {"color": figures.GREY, "linestyle": ":"}
            fastest = copies.groupby("bytes")["algbw"].median()
            axes.plot(fastest.index, fastest, zorder=2, **grey)
            handles.append(figures.key("a copy in memory", **grey))
        figures.headings(axes, inputs.entry["title"], [inputs.entry["axis"]])
    notes = [inputs.entry["caption"], *parts.remarks(data), *facts(inputs.measured)]
    figures.notes_below(drawing, [*notes, raw_data(inputs.measured)], handles, 2)
    return timed[COLUMNS], drawing


def size_text(size: float) -> str:
    """'4 KiB', '512 MiB'; gradients, which are of any size, to three digits."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= length:
            return f"{significant(size / length) if size % length else int(size // length)} {unit}"
    return f"{int(size)} B"


def _label(place: Any, several: bool) -> str:
    framework, platform, threads, devices = place
    return (
        f"{framework}, {platform}, {devices} x {plural(threads, 'thread')}"
        if several
        else framework
    )


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    lines: dict[tuple[str, str, str, str], list[Entry]] = {}
    named = ["platform", "threads", "devices", "framework_label"]
    for (platform, *_, label), rows in data.groupby(named, sort=False):
        ranks = f"{platform}, {common.ranks_of(rows.iloc[0].to_dict() | {'exchange': ''})}"
        failed = rows[rows["part"] == ""]
        if len(failed):
            lacking = parts.entry(None, failed.iloc[0].to_dict(), "")
            lines["", "", label, ranks] = [lacking] * len(HEADINGS)
        for part, ways in rows[rows["part"] != ""].groupby("part", sort=False):
            found = {row["way"]: row for row in ways.to_dict("records")}
            size, role = int(part.split()[0]), found[SUM]["role"]
            what = role if role == ROLES[False] else f"{role} of {found[SUM]['network_label']}"
            lines[size_text(size), what, label, ranks] = _entries(found)
    order = {text: at for at, text in enumerate(dict.fromkeys(key[0] for key in lines))}
    ordered = sorted(lines, key=lambda key: order[key[0]])
    body = [(key, dict(zip(HEADINGS, lines[key], strict=True))) for key in ordered]
    return laid_out(body, ["Size", "What", "Framework", "Ranks"])


def _entries(found: dict[str, dict[str, Any]]) -> list[Entry]:
    sent, copied = found[SUM], found.get(COPY)
    if not sent["repeats"]:
        lacking = parts.entry(sent, None, "")
        texts = [lacking] * 4
    else:
        texts = [parts.entry(sent, None, parts.milliseconds(sent))]
        texts += [Entry(significant(sent[name])) for name in ("algbw", "busbw")]
        texts += [Entry(f"{sent['cpus']:.2f}")]
    known = copied is not None and copied["repeats"]
    return [*texts, Entry(significant(copied["algbw"]) if copied and known else "")]
