"""Every framework beside every network, as a table and a picture: time, share of the peak, start, memory."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from steptime.artefacts import common, efficiency, startup
from steptime.artefacts.inputs import Inputs
from steptime.environments.libraries import registers
from steptime.merge.measured import ARITHMETIC, Measured
from steptime.plan.cell import IDENTITY, PLACE
from steptime.render import figures, tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    STATUS_WORDS,
    facts,
    plural,
    processes,
    raw_data,
    significant,
    spread,
    status_reason,
)

COLUMNS = [*IDENTITY, "network_label", "framework", "framework_label", "status", "reason", "marks"]
COLUMNS += ["seconds", "low", "high", "ratio", "share_of_peak", "startup_seconds"]
COLUMNS += ["peak_memory_bytes", *ARITHMETIC]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    starts = startup.read_starts(inputs)
    made = inputs.measured, inputs.peaks, starts, inputs.frameworks, inputs.networks
    return build(*made, inputs.page)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing."""
    return draw(inputs.table[0])


def build(
    measured: Measured,
    peaks: dict[str, Any],
    starts: pd.DataFrame,
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    page: tables.Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS; seconds, bytes) and the layout; fills the page's facts and notes.

    Rows are of each platform's highest thread count; `starts` is what `startup.read_starts` returns.
    """
    shares = efficiency.shares(measured, peaks, frameworks, catalogue)
    begun = startup.medians(starts, frameworks, catalogue)
    cells = measured.cells.assign(
        network=[common.whole_name(cell) for cell in measured.cells.to_dict("records")]
    )
    data = shares.merge(cells[[*IDENTITY, "peak_memory_bytes", *ARITHMETIC]], on=IDENTITY)
    data = data.merge(begun[[*IDENTITY, "total_seconds"]], on=IDENTITY, how="left")
    data = data.rename(columns={"total_seconds": "startup_seconds"})
    data = data[data["threads"] == data.groupby("platform")["threads"].transform("max")]
    place = data.groupby(PLACE, dropna=False)["seconds"]
    data = data.assign(ratio=data["seconds"].astype(float) / place.transform("min").astype(float))
    data = data.reindex(columns=COLUMNS).reset_index(drop=True)
    page.facts = facts(measured)
    page.notes = [
        "Registers: the widest that the framework's compiled libraries multiply in, counted in those that the process "
        "had loaded (SSE: 128 bits, AVX and AVX2: 256, AVX-512: 512); `at run time`: some of them can make code for "
        "the processor at hand while they run. Linear algebra: the libraries that are in them.",
        "Start: seconds from the import to the end of the warm-up. Memory: the most that the process and those below "
        "it had at a time, with data and start values.",
        processes(measured.cells),
        raw_data(measured),
    ]
    return data, _layout(data)


def _time(row: dict[str, Any]) -> Entry:
    texts = [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]
    remarks = tuple(texts + ([row["reason"].rstrip(".")] if row["reason"] else []))
    if pd.isna(row["seconds"]):
        return Entry(STATUS_WORDS.get(row["status"], row["status"]), remarks, kind="ours words")
    text = f"{significant(row['seconds'])} {spread(row['seconds'], row['low'], row['high'])}"
    return Entry(text, remarks, row["ratio"] == 1, "ours")


def _number(
    name: str, scale: float, digits: int, unit: str = ""
) -> Callable[[dict[str, Any]], Entry]:
    def entry(row: dict[str, Any]) -> Entry:
        if row["status"] != "ok" or pd.isna(row[name]):
            return Entry()
        return Entry(significant(row[name] * scale, digits) + unit, kind="ours")

    return entry


LINES: dict[str, Callable[[dict[str, Any]], Entry]] = {
    "time per mini-batch (s)": _time,
    "times the fastest": _number("ratio", 1, 2),
    "share of peak": _number("share_of_peak", 100, 2, " %"),
    "start (s)": _number("startup_seconds", 1, 2),
    "memory (MiB)": _number("peak_memory_bytes", 2**-20, 3),
}


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    several = data["platform"].nunique() > 1
    runners = ["framework_label", "environment", "mode", "platform"]
    columns = list(dict.fromkeys(_column(row) for row in data.to_dict("records")))
    body, index = [], []
    for _, rows in _in_order(data).groupby(runners, sort=False, dropna=False):
        records = rows.to_dict("records")
        known = next((row for row in records if row["vector"]), records[0])
        threads = plural(int(known["threads"]), "thread")
        label = (
            f"{known['framework_label']}, {known['platform']}"
            if several
            else known["framework_label"]
        )
        heading = (label, threads, registers(known), known["blas"])
        cells = {_column(row): row for row in records}
        for line, entry in LINES.items():
            entries = [entry(cells[column]) if column in cells else Entry() for column in columns]
            # Where nothing ran, one line says so.
            if line == next(iter(LINES)) or any(each.text for each in entries):
                body.append(entries)
                index.append((*heading, line))
    names = ["Framework", "Threads", "Registers", "Linear algebra", ""]
    return pd.DataFrame(
        body, index=pd.MultiIndex.from_tuples(index, names=names), columns=columns, dtype=object
    )


def _in_order(data: pd.DataFrame) -> pd.DataFrame:
    """Framework by framework, in the order in which they stand for the first network."""
    order = {label: at for at, label in enumerate(dict.fromkeys(data["framework_label"]))}
    return data.sort_values("framework_label", key=lambda labels: labels.map(order), kind="stable")


def _column(row: dict[str, Any]) -> str:
    return f"{row['network_label']}, batch {row['batch']}"


ROW_INCHES = 0.3
COLOURS = colormaps["YlGnBu"]
# Colours go by the logarithm of the ratio and end at this one: what is slower still is as dark.
DARKEST = 30
# From here on a time is in seconds, as it says then: five digits have no room.
LONG_SECONDS = 10
NOT_TIMED = "#ECECEC"
# What stands beside the tiles, with its width in tiles.
BESIDE = {"start": 0.8, "memory": 0.9, "registers": 2.2}
SHORT = {
    "unsupported": "unsupported",
    "install_failed": "not installed",
    "not_equivalent": "not equivalent",
    "out_of_memory": "out of memory",
}


def draw(data: pd.DataFrame) -> tuple[pd.DataFrame, Figure]:
    """The rows of the table, as they are, and the figure."""
    several = data["platform"].nunique() > 1
    networks = list(dict.fromkeys(zip(data["network_label"], data["batch"], strict=True)))
    labels = data["framework_label"] + (", " + data["platform"] if several else "")
    runners = list(dict.fromkeys(labels))
    with figures.canvas(height=1.5 + ROW_INCHES * len(runners)) as (drawing, axes):
        for label, row in zip(labels, data.to_dict("records"), strict=True):
            _tile(
                axes,
                networks.index((row["network_label"], row["batch"])),
                runners.index(label),
                row,
            )
        for height, label in enumerate(runners):
            _beside(axes, len(networks), height, data[labels == label])
        right = len(networks) + sum(BESIDE.values())
        ticks = [at + 0.5 for at in range(len(networks))]
        headings = [f"{label}\nbatch {batch}" for label, batch in networks]
        at = float(len(networks))
        for name, width in BESIDE.items():
            ticks.append(at + width / 2)
            headings.append(name)
            at += width
        axes.set_xticks(ticks, headings, fontsize=8)
        axes.xaxis.tick_top()
        axes.set_yticks([height + 0.5 for height in range(len(runners))], runners, fontsize=8)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.set(xlim=(0, right), ylim=(len(runners), 0))
        for spine in axes.spines.values():
            spine.set_visible(False)
        places = data[["platform", "threads"]].drop_duplicates().to_dict("records")
        where = ", ".join(
            f"{place['platform']} with {plural(int(place['threads']), 'thread')}"
            for place in places
        )
        title = f"Times slower than the fastest, and ms per mini-batch: {where}"
        figures.title(drawing, title)
        figures.notes_below(drawing, _notes(data))
    return data, drawing


def _tile(axes: Axes, left: int, top: int, row: dict[str, Any]) -> None:
    timed = pd.notna(row["seconds"])
    shade = min(math.log(row["ratio"]) / math.log(DARKEST), 1) if timed else 0
    colour = COLOURS(0.08 + 0.84 * shade) if timed else NOT_TIMED
    axes.add_patch(Rectangle((left + 0.02, top + 0.04), 0.96, 0.92, color=colour, linewidth=0))
    ink = "white" if shade > 0.55 else "#222222"
    if not timed:
        word = SHORT.get(row["status"], row["status"])
        axes.text(
            left + 0.5, top + 0.5, word, fontsize=6.5, color="#777777", ha="center", va="center"
        )
        return
    weight = "bold" if row["ratio"] == 1 else "normal"
    marked = "*" if row["marks"] else ""
    ratio = f"{significant(row['ratio'], 2) if row['ratio'] > 1 else 1}×{marked}"
    axes.text(
        left + 0.05, top + 0.5, ratio, fontsize=7, color=ink, ha="left", va="center", weight=weight
    )
    long = row["seconds"] >= LONG_SECONDS
    time = f"{significant(row['seconds'], 3)} s" if long else significant(1000 * row["seconds"], 3)
    axes.text(left + 0.96, top + 0.52, time, fontsize=6, color=ink, ha="right", va="center")


def _beside(axes: Axes, left: float, top: int, rows: pd.DataFrame) -> None:
    timed = rows[rows["status"] == "ok"]
    words = dict.fromkeys(BESIDE, "")
    if len(timed):
        words["start"] = f"{significant(timed['startup_seconds'].median(), 2)} s"
        words["memory"] = f"{significant(timed['peak_memory_bytes'].max() / 2**30, 2)} GiB"
        row = timed.iloc[0]
        words["registers"] = f"{row['vector']}{' + at run time' if row['at_run_time'] else ''}"
    for name, width in BESIDE.items():
        axes.text(
            left + width / 2,
            top + 0.5,
            words[name],
            fontsize=7,
            color="#444444",
            ha="center",
            va="center",
        )
        left += width


def _notes(data: pd.DataFrame) -> list[str]:
    notes = [
        f"Colours go by the logarithm of the ratio and end at {DARKEST}. Start: seconds from import to the end of the "
        "warm-up, median of the networks. Memory: the most of any network. Registers: the widest that the framework's "
        "compiled libraries multiply in; at run time: some of them can make code for the processor while they run."
    ]
    reasons: dict[str, list[str]] = {}
    marked: dict[str, dict[str, list[str]]] = {}
    for row in data.to_dict("records"):
        label, network = row["framework_label"], row["network_label"]
        if pd.isna(row["seconds"]):
            reason = status_reason(row["status"], row["reason"]).rstrip(".")
            reasons.setdefault(f"{label}: {reason}", []).append(network)
        for mark in filter(None, row["marks"].split(", ")):
            marked.setdefault(mark, {}).setdefault(label, []).append(network)
    every = list(data["network_label"].unique())
    for mark, labels in marked.items():
        named = [
            label if names == every else f"{label} ({', '.join(names)})"
            for label, names in labels.items()
        ]
        notes.append(f"* {MARK_WORDS[mark]}: {'; '.join(named)}.")
    return notes + [f"{reason} ({', '.join(networks)})." for reason, networks in reasons.items()]
