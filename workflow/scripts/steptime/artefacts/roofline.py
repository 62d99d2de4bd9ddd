"""The roofline figure (Williams et al. 2009): speed against operational intensity, below what the machine can do."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from steptime.artefacts.inputs import Frameworks, Measured
from steptime.render import figures
from steptime.render.words import facts, mark_notes, plural, raw_data, significant, status_reason

PANELS_IN_A_ROW = 2
PANEL_HEIGHT = 3.3
LEGEND_COLUMNS = 3
FILLS = ("full", "none", "left", "right", "top", "bottom")
NEAR = 1.12  # networks whose intensities are nearer than this share a label
LOW_PEAK = (
    "measured while other programs, or other guests of the host, had CPU time, so it may be too low: `make again` "
    "measures it once more"
)
HALO = [withStroke(linewidth=2.5, foreground="white")]


def draw(
    data: pd.DataFrame, peaks: dict[str, Any], frameworks: Frameworks, measured: Measured
) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the figure: a panel for each platform and thread count that has a peak."""
    drawn = data[data["share_of_peak"].notna()]
    places = drawn[["platform", "threads"]].drop_duplicates().sort_values(["platform", "threads"])
    columns = min(PANELS_IN_A_ROW, max(1, len(places)))
    rows = max(1, math.ceil(len(places) / columns))
    with figures.canvas(rows, columns, PANEL_HEIGHT * rows + 0.9) as (drawing, grid):
        panels = list(np.atleast_1d(grid).flat)
        for panel in panels[len(places) :]:
            panel.set_visible(False)
        _title(drawing, panels[0])
        for panel, place in zip(panels, places.to_dict("records"), strict=False):
            here = drawn[
                (drawn["platform"] == place["platform"]) & (drawn["threads"] == place["threads"])
            ]
            _panel(panel, place, here, drawn, peaks[place["platform"]]["threads"], frameworks)
        low = [
            f"The peak of {row['platform']} with {plural(row['threads'], 'thread')} was {LOW_PEAK}."
            for row in places.to_dict("records")
            if peaks[row["platform"]]["threads"][str(row["threads"])].get("disturbed")
        ]
        figures.notes_below(
            drawing, low + _notes(data, measured), _handles(drawn, frameworks), LEGEND_COLUMNS
        )
    return drawn, drawing


def _title(drawing: Figure, panel: Axes) -> None:
    drawing.suptitle(
        "Speed of a training step below what the machine can do",
        x=0.015,
        ha="left",
        fontsize=11,
        fontweight="bold",
    )
    panel.set_ylabel("speed (GFLOP/s)")


def _panel(
    axes: Axes,
    place: dict[str, Any],
    here: pd.DataFrame,
    drawn: pd.DataFrame,
    peaks: dict[str, Any],
    frameworks: Frameworks,
) -> None:
    """One roof in black, those of the other thread counts in grey, and the points of this thread count."""
    highest = max(known["flops_per_second"] for known in peaks.values()) / 1e9
    top, lowest = 2 * highest, drawn["flops_per_second"].min() / 1e9
    # Below the lowest point there is room for the names of the networks.
    bottom = lowest / (top / lowest) ** 0.8
    ridges = [known["flops_per_second"] / known["bytes_per_second"] for known in peaks.values()]
    left = min(drawn["intensity"].min() / 2, min(ridges) / 2)
    right = drawn["intensity"].max() * 2.5
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    figures.plain_logarithms(axes.xaxis)
    figures.plain_logarithms(axes.yaxis)
    axes.set_xlabel("operations per byte of memory (FLOP/B)")
    for threads, known in peaks.items():
        own = int(threads) == place["threads"]
        _roof(axes, known, (left, right), own)
    axes.set_title(f"{place['platform']}, {plural(place['threads'], 'thread')}", fontsize=9.5)
    for row in here.to_dict("records"):
        framework = frameworks[row["framework"]]
        axes.plot(
            row["intensity"],
            row["flops_per_second"] / 1e9,
            linestyle="",
            marker=framework.marker,
            color=framework.colour,
            fillstyle=_fill(row, drawn),
            markerfacecoloralt="white",
            markersize=6,
            zorder=4,
        )
    _network_labels(axes, here)


def _roof(axes: Axes, known: dict[str, Any], limits: tuple[float, float], own: bool) -> None:
    flops, width = known["flops_per_second"] / 1e9, known["bytes_per_second"] / 1e9
    ridge = flops / width
    colour = "#222222" if own else "#BDBDBD"
    line = {"color": colour, "linewidth": 1.5 if own else 1.0, "zorder": 3 if own else 2}
    axes.plot([limits[0], ridge, limits[1]], [limits[0] * width, flops, flops], **line)
    if own:
        text = f"{significant(flops)} GFLOP/s, {significant(width)} GB/s"
        words = {
            "textcoords": "offset points",
            "fontsize": 7.5,
            "color": colour,
            "path_effects": HALO,
            "zorder": 5,
        }
        axes.annotate(text, (limits[1], flops), xytext=(-3, 4), ha="right", **words)


def _network_labels(axes: Axes, here: pd.DataFrame) -> None:
    """The networks' names upright at the foot of the panel; those of nearly one intensity share a label."""
    groups: list[list[tuple[str, float]]] = []
    for network in (
        here.groupby("network_label", sort=False)["intensity"].first().sort_values().items()
    ):
        if groups and network[1] < NEAR * groups[-1][-1][1]:
            groups[-1].append(network)
        else:
            groups.append([network])
    for group in groups:
        middle = math.exp(sum(math.log(intensity) for _, intensity in group) / len(group))
        axes.annotate(
            ", ".join(name for name, _ in group),
            (middle, axes.get_ylim()[0]),
            xytext=(0, 5),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=7.5,
            color="#444444",
            path_effects=HALO,
            zorder=5,
        )


def _fill(row: dict[str, Any], drawn: pd.DataFrame) -> str:
    """A framework's lines keep colour and marker; its further modes and environments differ in the filling."""
    lines = drawn.loc[drawn["framework"] == row["framework"], "framework_label"].unique().tolist()
    return FILLS[lines.index(row["framework_label"]) % len(FILLS)]


def _handles(drawn: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    return [
        Line2D(
            [],
            [],
            linestyle="",
            marker=frameworks[row["framework"]].marker,
            color=frameworks[row["framework"]].colour,
            fillstyle=_fill(row, drawn),
            markerfacecoloralt="white",
            label=row["framework_label"],
        )
        for row in drawn.drop_duplicates("framework_label").to_dict("records")
    ]


def _notes(data: pd.DataFrame, measured: Measured) -> list[str]:
    notes = [
        "Roofs: the fastest matrix product and the widest memory stream measured with as many threads (black) and with "
        "the other thread counts (grey). Operations per byte are an upper limit: every layer touches each of its "
        "arrays once. Mini-batches: "
        + "; ".join(
            f"{label} {', '.join(map(str, sorted(rows['batch'].unique())))}"
            for label, rows in data.groupby("network_label", sort=False)
        )
        + ".",
    ]
    missing = data[data["share_of_peak"].isna()]
    for reason, rows in (
        missing.groupby(missing.apply(_why, axis=1), sort=False) if len(missing) else []
    ):
        names = [
            f"{framework}, {network} at {', '.join(map(str, sorted(cells['threads'].unique())))}"
            for (framework, network), cells in rows.groupby(
                ["framework_label", "network_label"], sort=False
            )
        ]
        notes.append(f"Not drawn (at threads): {'; '.join(names)} ({reason}).")
    return [*notes, *mark_notes(data), *facts(measured), raw_data(measured)]


def _why(row: pd.Series) -> str:
    reason = (
        row["no_peak"] if row["status"] == "ok" else status_reason(row["status"], row["reason"])
    )
    return reason.rstrip(".")
