"""Table and picture of every framework beside every network: time, share of the peak, start, memory."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import efficiency, ratios, startup
from steptime.environments.libraries import registers
from steptime.merge.measured import ARITHMETIC
from steptime.plan.cell import IDENTITY
from steptime.render import figures
from steptime.render.columns import Column, Row
from steptime.render.tables import FLAG, TEXT, Entry
from steptime.render.words import (
    STATUS_WORDS,
    machine_name,
    mark_notes,
    origin,
    plural,
    processes,
    remarks,
    significant,
    spread,
)
from steptime.statistics.pairs import both_ways
from steptime.statistics.words import FASTEST

COLUMNS = [*common.NAMED, "marks", "word", "seconds", "low", "high", "ratio", "share_of_peak"]
COLUMNS += ["startup_seconds", "peak_memory_bytes", *ARITHMETIC]
TYPES = {"vector": TEXT, "blas": TEXT, "at_run_time": FLAG}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; seconds, bytes) of each platform's highest thread count, and the layout."""
    measured = inputs.measured
    shares, begun = efficiency.shares(inputs), startup.medians(inputs)
    cells = common.whole(measured.cells)
    pairs = both_ways(measured.statistics.pairs)
    by_shortest = ratios.to_shortest(cells, pairs)
    cells["ratio"] = pd.Series({at: row["ratio"] for at, row in by_shortest.items()})
    kept = [*IDENTITY, "word", "ratio", "peak_memory_bytes", *ARITHMETIC]
    data = shares.merge(cells[kept], on=IDENTITY)
    data = data.merge(begun[[*IDENTITY, "total_seconds"]], on=IDENTITY, how="left")
    data = common.of_most_threads(data.rename(columns={"total_seconds": "startup_seconds"}))
    data = data.reindex(columns=COLUMNS).reset_index(drop=True)
    common.describe(
        inputs,
        "Registers: the widest that the framework's compiled libraries multiply in, counted in those that the process "
        "had loaded (SSE: 128 bits, AVX and AVX2: 256, AVX-512: 512), or those that they were told to use; `at run "
        "time`: some of them can make code for the processor at hand while they run. Linear algebra: the libraries "
        "that are in them.",
        "Start: seconds from the import to the end of the first step. Memory: the most that the process and those "
        "below it had at a time, with data and start values.",
        processes(measured.cells),
    )
    return data, _layout(data)


def _time(row: Row) -> Entry:
    if pd.isna(row["seconds"]):
        words = str(STATUS_WORDS.get(row["status"], row["status"]))
        return Entry(words, tuple(remarks(row)), kind="ours words")
    text = f"{significant(row['seconds'])} {spread(row['seconds'], row['low'], row['high'])}"
    return Entry(text, tuple(remarks(row)), row["word"] == FASTEST, "ours")


LINES = [
    Column("time per mini-batch (s)", _time),
    common.number("times the shortest", "ratio"),
    Column("share of peak", "share_of_peak", efficiency.percent, kind="ours"),
    common.number("start (s)", "startup_seconds"),
    common.number("memory (MiB)", "peak_memory_bytes", 2**-20, 3),
]
NAMES = ["Framework", "Threads", "Registers", "Linear algebra"]


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    # Framework by framework, in the order that they have for the first network.
    order = pd.factorize(data["framework_label"])[0]
    runners = ["order", "environment", "mode", "platform"]
    groups = []
    for _, rows in data.assign(order=order).groupby(runners, dropna=False):
        records = rows.to_dict("records")
        known = next((row for row in records if row["vector"]), records[0])
        label = known["framework_label"]
        several = data["platform"].nunique() > 1
        label += f", {machine_name(known['platform'])}" if several else ""
        threads = plural(int(known["threads"]), "thread")
        groups.append(((label, threads, registers(known), known["blas"]), records))
    return common.stacked(groups, LINES, NAMES, map(common.of_network, data.to_dict("records")))


ROW_INCHES = 0.36
COLOURS = colormaps["YlGnBu"]
# Colours go by the logarithm of the ratio, over those that are there; of alike frameworks all stay pale.
LEAST_RANGE = 2
# From here on a time is in seconds, as it says then: five digits have no room.
LONG_SECONDS = 10
NOT_TIMED = "#ECECEC"
# The columns beside the tiles, with their width in tiles.
BESIDE = {"start": 0.8, "memory": 0.9}
SHORT = {
    "unsupported": "unsupported",
    "install_failed": "not installed",
    "not_equivalent": "not equivalent",
    "out_of_memory": "out of memory",
}


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows of the table, and the picture."""
    data = inputs.table[0]
    return data, draw(data, [*_notes(data), *origin(inputs.measured)])


def draw(data: pd.DataFrame, notes: list[str]) -> figures.Drawing:
    """Returns a line of tiles for each framework, the fastest first."""
    several = data["platform"].nunique() > 1
    networks = list(dict.fromkeys(zip(data["network_label"], data["batch"], strict=True)))
    machines = ", " + data["platform"].map(machine_name)
    data = data.assign(runner=data["framework_label"] + (machines if several else ""))
    runners = _fastest_first(data)
    darkest = max(LEAST_RANGE, data["ratio"].max())
    with figures.canvas(height=1.2 + ROW_INCHES * len(runners)) as (drawing, axes):
        for row in data.to_dict("records"):
            network = networks.index((row["network_label"], row["batch"]))
            _tile(axes, network, runners.index(row["runner"]), row, darkest)
        for height, runner in enumerate(runners):
            _words_beside(axes, len(networks), height, data[data["runner"] == runner])
        edges = np.cumsum([0.0, *[1.0] * len(networks), *BESIDE.values()])
        headings = [*(f"{label}\nbatch {batch}" for label, batch in networks), *BESIDE]
        axes.set_xticks((edges[:-1] + edges[1:]) / 2, headings, fontsize=8)
        axes.xaxis.tick_top()
        axes.set_yticks([height + 0.5 for height in range(len(runners))], runners, fontsize=8)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.set(xlim=(0, edges[-1]), ylim=(len(runners), 0))
        axes.spines[:].set_visible(False)
        figures.title(drawing, f"Time of a training step: {curves.threads_drawn(data)}")
        words = (
            "×: times as long as the shortest. Start: from the import to the end of the first step."
        )
        words += " Bold: shown to be the fastest." if (data["word"] == FASTEST).any() else ""
        figures.caption(drawing, figures.starred(data, words), notes)
    return drawing


def _fastest_first(data: pd.DataFrame) -> list[str]:
    """Returns the lines by the mean of the logarithms of their ratios; lines without a ratio come last."""
    logarithms = data["ratio"].astype(float).map(math.log, na_action="ignore")
    means = logarithms.groupby(data["runner"], sort=False).mean()
    return list(means.sort_values(kind="stable").index)


def _tile(axes: Axes, left: int, top: int, row: Row, darkest: float) -> None:
    timed = pd.notna(row["seconds"])
    shade = math.log(row["ratio"]) / math.log(darkest) if timed else 0
    colour = COLOURS(0.08 + 0.84 * shade) if timed else NOT_TIMED
    axes.add_patch(Rectangle((left + 0.02, top + 0.04), 0.96, 0.92, color=colour, linewidth=0))
    if not timed:
        word = SHORT.get(str(row["status"]), str(row["status"]))
        _words(axes, left + 0.5, top + 0.5, word, fontsize=6.5, color="#777777")
        return
    style: dict[str, Any] = {"color": "white" if shade > 0.55 else "#222222"}
    style |= {"weight": "bold" if row["word"] == FASTEST else "normal"}
    star, is_shortest = "*" if "disturbed" in row["marks"] else "", row["ratio"] == 1
    middle = top + (0.5 if is_shortest else 0.34)
    _words(axes, left + 0.5, middle, f"{_short_time(row['seconds'])}{star}", fontsize=7.5, **style)
    if not is_shortest:
        ratio = f"{significant(row['ratio'])} ×"
        _words(axes, left + 0.5, top + 0.72, ratio, fontsize=6.5, **style)


def _short_time(seconds: float) -> str:
    is_long = seconds >= LONG_SECONDS
    return f"{significant(seconds)} s" if is_long else f"{significant(1000 * seconds)} ms"


def _words(axes: Axes, middle: float, height: float, words: str, **style: Any) -> None:
    axes.text(middle, height, words, ha="center", va="center", **style)


def _words_beside(axes: Axes, left: float, top: int, rows: pd.DataFrame) -> None:
    timed = rows[rows["status"] == "ok"]
    words = dict.fromkeys(BESIDE, "")
    if len(timed):
        words["start"] = f"{significant(timed['startup_seconds'].median(), 2)} s"
        words["memory"] = f"{significant(timed['peak_memory_bytes'].max() / 2**30, 2)} GiB"
    for name, width in BESIDE.items():
        _words(axes, left + width / 2, top + 0.5, words[name], fontsize=7, color="#444444")
        left += width


def _notes(data: pd.DataFrame) -> list[str]:
    untimed = data[data["seconds"].isna()]
    missing = curves.not_drawn(untimed, lambda row: row["framework_label"], at="network_label")
    sizes = "Start: the median of the networks. Memory: the most of any network."
    return [sizes, *mark_notes(data), *missing]
