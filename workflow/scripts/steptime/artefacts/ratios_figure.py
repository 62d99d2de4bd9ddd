"""The drawing of `ratios`: a forest plot."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from steptime.artefacts import curves
from steptime.merge.measured import Measured
from steptime.plan.cell import PLACE
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import ERROR_RATE, mark_notes, origin, plural, processes, significant
from steptime.statistics.words import FASTEST, SLOWER, TIED

LINE_INCHES = 0.175
GAP = 0.9  # lines between two places
TEXT_SHARE = 0.42  # of the axis, to the right of the widest interval, for the words


def draw(
    data: pd.DataFrame, frameworks: Frameworks, measured: Measured
) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the figure; `data` are the rows of the table."""
    several = data["platform"].nunique() > 1
    heights, ticks, at, before = [], [], 0.0, None
    for row in data.to_dict("records"):
        place = [row[name] for name in PLACE]
        at += 1 + (GAP if before not in (None, place) else 0)
        ticks.append(_label(row, several, place != before))
        heights.append(at)
        before = place
    with figures.canvas(height=1.3 + LINE_INCHES * (at + 1)) as (drawing, axes):
        axes.axvline(1, color="#222222", linewidth=0.9, zorder=2)
        _axis(axes, data)
        for height, row in zip(heights, data.to_dict("records"), strict=True):
            _line(axes, height, row, frameworks)
        figures.name_lines(axes, heights, ticks, 8)
        axes.set_ylim(at + 0.7, 0.3)
        platforms = [f"on {name}" for name in data["platform"].unique()]
        figures.headings(axes, "Time divided by the fastest", platforms)
        figures.notes_below(drawing, _notes(data, measured), _handles(data, frameworks), 3)
    return data, drawing


def _axis(axes: Axes, data: pd.DataFrame) -> None:
    """A logarithmic axis with plain numbers, and room on its right for what is said of each line."""
    values = np.append(data[["ratio", "low", "high"]].to_numpy(float), 1)
    lowest, highest = np.nanmin(values) / 1.05, max(np.nanmax(values) * 1.05, 1.2)
    axes.set_xscale("log")
    axes.set_xlim(lowest, highest * (highest / lowest) ** TEXT_SHARE)
    subs = (1.0, 2.0, 5.0) if highest / lowest > 4 else (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0)
    figures.plain_logarithms(axes.xaxis, LogLocator(subs=subs, numticks=30))
    axes.set_xlabel("time per mini-batch divided by that of the fastest (less is better)")


def _line(axes: Axes, height: float, row: dict[str, Any], frameworks: Frameworks) -> None:
    framework = frameworks[row["framework"]]
    words, right = _words(row), 1.0
    if pd.notna(row["ratio"]):
        known = pd.notna(row["low"])
        shown = row["verdict"] in (FASTEST, SLOWER)
        right = row["high"] if known else row["ratio"]
        spans = [[row["ratio"] - row["low"]], [row["high"] - row["ratio"]]] if known else None
        face = framework.colour if shown else "white"
        look = framework.look | {"markersize": 5, "markerfacecolor": face, "linewidth": 1.2}
        axes.errorbar(row["ratio"], height, xerr=spans, **look, zorder=3)
    figures.say(axes, words, (right, height), (6, 0), va="center")


def _words(row: dict[str, Any]) -> str:
    if pd.isna(row["ratio"]):
        return row["status"]
    if pd.isna(row["low"]):
        alone = "" if row["ratio"] == 1 else ", interval not known"
        return FASTEST if row["verdict"] == FASTEST else f"{significant(row['ratio'])}{alone}"
    return f"{significant(row['ratio'])}{', tied' if row['verdict'] == TIED else ''}"


def _label(row: dict[str, Any], several: bool, first: bool) -> str:
    """The framework, and before it, on the first line of a place, the network and the threads."""
    if not first:
        return row["framework_label"]
    parts = [row["network_label"], f"batch {row['batch']}", plural(row["threads"], "thread")]
    parts += [row["platform"]] if several else []
    return f"{', '.join(parts)}   {row['framework_label']}"


def _handles(data: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    known = map(frameworks.__getitem__, data["framework"].unique())
    hollow: dict[str, Any] = {"marker": "o", "color": "#444444", "markerfacecolor": "white"}
    looks = {framework.label: framework.look for framework in known}
    looks["hollow: tied with the fastest, or not known"] = hollow
    return curves.keys(looks, linestyle="")


def _notes(data: pd.DataFrame, measured: Measured) -> list[str]:
    notes = [f"Ratio with its 95 % interval. {ERROR_RATE} {processes(measured.cells)}"]
    unknown = data[data["ratio"].isna()]
    missing = curves.not_drawn(unknown, lambda row: row["framework_label"], at="network_label")
    return [*notes, *missing, *mark_notes(data), *origin(measured)]
