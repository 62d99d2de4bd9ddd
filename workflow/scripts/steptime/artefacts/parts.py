"""What was measured of single operations of a step: one row for each, in each framework, way and place."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.statistics import median
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.machine import interference
from steptime.merge import intervals
from steptime.merge.summary import IDLE, OVERSUBSCRIBED, shortened
from steptime.plan.cell import IDENTITY
from steptime.render import figures
from steptime.render.tables import Entry
from steptime.render.words import MARK_WORDS, plural, significant, spread, status_reason

OPERATION = ["part", "role", "way"]
COLUMNS = [*IDENTITY, "network_label", "framework", "framework_label", *OPERATION, "flops"]
COLUMNS += ["seconds", "low", "high", "repeats", "gflops", "error", "cpus"]
COLUMNS += ["marks", "lacking"]
PANEL_INCHES = 0.21  # height of a framework's line in a panel
GREY_LINE: dict[str, Any] = {"color": figures.GREY, "linewidth": 0.8, "zorder": 1}


def read(inputs: Inputs) -> pd.DataFrame:
    """One row (COLUMNS and `medians`) for each operation of each cell, over the cell's repeats; times in seconds.

    `medians` has each repeat's by its number, as the cells of `merge.summary`, and `lacking` says why there is none. A
    cell that failed as a whole has one row, whose operation is ''.
    """
    rows = inputs.measured.rows
    named = rows.assign(**{name: rows[name].fillna("") for name in ("variant", *OPERATION)})
    groups = named.groupby([*IDENTITY, *OPERATION], sort=False, dropna=False)
    found = pd.DataFrame([_operation(group) for _, group in groups])
    found["network"] = [common.whole_name(row) for row in found.to_dict("records")]
    return common.labelled(found, inputs.frameworks, inputs.networks)[[*COLUMNS, "medians"]]


def _operation(samples: pd.DataFrame) -> dict[str, Any]:
    row = samples.iloc[0].to_dict()
    timed = samples[(samples["status"] == "ok") & samples["seconds"].notna()]
    row["medians"] = {
        int(repeat): median(list(seconds)) for repeat, seconds in timed.groupby("repeat")["seconds"]
    }
    row |= {"repeats": len(row["medians"]), "seconds": None, "low": None, "high": None}
    row |= {"gflops": None, "marks": ""}
    failed = samples[samples["status"] != "ok"]
    if len(failed):
        row["lacking"] = status_reason(failed.iloc[0]["status"], failed.iloc[0]["reason"])
    elif isinstance(row["lacking"], str):
        row["lacking"] = shortened(row["lacking"])
    if timed.empty:
        return row
    row["seconds"], row["low"], row["high"] = (
        intervals.of_repeats(list(row["medians"].values()))
        if row["repeats"] > 1
        else intervals.of_process(list(timed["seconds"]))
    )
    row["gflops"] = row["flops"] / row["seconds"] / 1e9
    row["error"], row["cpus"] = timed["error"].max(), timed["cpus"].median()
    marks = {
        "oversubscribed": row["cpus"] > OVERSUBSCRIBED * row["threads"],
        "idle threads": row["cpus"] < IDLE * row["threads"],
        "disturbed": any(map(interference.disturbed, timed.to_dict("records"))),
    }
    return row | {"marks": ", ".join(mark for mark, applies in marks.items() if applies)}


def places_of(data: pd.DataFrame) -> list[tuple[str, int]]:
    """Every (platform, threads), in order."""
    return sorted({(row.platform, row.threads) for row in data.itertuples()})


def column_of(place: tuple[str, int]) -> str:
    """The heading of a place."""
    return f"{place[0]}, {plural(place[1], 'thread')}"


def by_way(data: pd.DataFrame) -> dict[tuple[str, str, tuple[str, int]], dict[str, dict[str, Any]]]:
    """The rows of each (part, framework_label, place) by their way; those of a failed cell below each part as ''."""
    parts = [part for part in dict.fromkeys(data["part"]) if part]
    found: dict[tuple[str, str, tuple[str, int]], dict[str, dict[str, Any]]] = {}
    for part in parts:
        for row in data[data["part"].isin([part, ""])].to_dict("records"):
            key = (part, row["framework_label"], (row["platform"], row["threads"]))
            found.setdefault(key, {})[row["way"]] = row
    return found


def entry(row: dict[str, Any] | None, failed: dict[str, Any] | None, text: str) -> Entry:
    """The text of a row that was timed, with its marks; or a dash with its reason."""
    if row is None or not row["repeats"]:
        lacking = (row or failed or {}).get("lacking") or "it was not asked for"
        return common.dash(lacking)
    marks = tuple(MARK_WORDS[mark] for mark in row["marks"].split(", ") if mark)
    return Entry(text, marks, kind="ours")


def ratio(row: dict[str, Any] | None, base: dict[str, Any] | None) -> tuple[float, str] | None:
    """Time of a row by that of another one of the same processes, and as text with its interval; None without both."""
    if not row or not base or not row["repeats"] or not base["repeats"]:
        return None
    known = intervals.of_ratio(row["medians"], base["medians"])
    if known is None:
        value = row["seconds"] / base["seconds"]
        return value, f"{value:.2f}"
    value, low, high = known.interval
    return value, f"{value:.2f} {spread(value, low, high)}"


def milliseconds(row: dict[str, Any]) -> str:
    """Its time, as text."""
    return significant(1e3 * row["seconds"]) if row["repeats"] else ""


def off_by(data: pd.DataFrame) -> str:
    """How right the operations are that were timed."""
    return (
        "Before it was timed, each operation was compared with numpy's float64, all of its numbers projected on one "
        f"random vector: at most {data['error'].max():.1g} of the result's length off."
    )


def remarks(drawn: pd.DataFrame) -> list[str]:
    """A sentence for each reason for which something is not drawn, and for each mark of what is."""
    notes = []
    for mark in dict.fromkeys(
        mark for marks in drawn["marks"] for mark in marks.split(", ") if mark
    ):
        rows = drawn[drawn["marks"].str.contains(mark, regex=False)]
        names = ", ".join(dict.fromkeys(rows["framework_label"]))
        share = f"{len(rows)} of {int((drawn['repeats'] > 0).sum())}"
        notes.append(f"Marked: {share} operations, of {names} ({MARK_WORDS[mark]}).")
    lacking = drawn[drawn["repeats"] == 0]
    for reason, rows in lacking.groupby("lacking", sort=False):
        ways = dict.fromkeys(
            f"{row.framework_label}{f' ({row.way})' if row.way else ''}"
            for row in rows.itertuples()
        )
        notes.append(f"Not drawn: {', '.join(ways)}: {str(reason).rstrip('.')}.")
    return notes


def dots(
    data: pd.DataFrame, ways: dict[str, tuple[str, str, str]], title: str, axis: str, lines: dict
) -> tuple[Figure, Any]:
    """A panel for each part, a line for each framework and a point at `value` for each of `ways` that it has.

    `ways` has marker, colour and label of each; `lines` are values that are marked in each panel, with their words.
    Returns the figure, and the handles of its legend.
    """
    parts, labels = list(dict.fromkeys(data["part"])), list(dict.fromkeys(data["framework_label"]))
    height = 1.6 + math.ceil(len(parts) / 2) * (0.7 + PANEL_INCHES * len(labels))
    rows = math.ceil(len(parts) / 2)
    with figures.canvas(rows, 2, height, squeeze=False) as (drawing, grid):
        panels = list(grid.flat)
        for panel in panels[len(parts) :]:
            panel.set_visible(False)
        for part, axes in zip(parts, panels, strict=False):
            _panel(axes, data[data["part"] == part], labels, ways, lines)
            axes.set_title(part, fontsize=8.5)
        for axes in panels[max(0, len(parts) - 2) : len(parts)]:
            axes.set_xlabel(axis)
            axes.tick_params(labelbottom=True)
        figures.title(drawing, title)
    handles = [
        figures.key(label, marker=marker, color=colour, linestyle="")
        for marker, colour, label in ways.values()
    ]
    return drawing, handles


def _panel(axes: Axes, rows: pd.DataFrame, labels: list[str], ways: dict, lines: dict) -> None:
    axes.set_xscale("log")
    figures.plain_logarithms(axes.xaxis)
    for value, words in lines.items():
        axes.axvline(value, linestyle="--" if words else "-", **GREY_LINE)
        axes.annotate(
            words,
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(2, -2),
            textcoords="offset points",
            fontsize=6.5,
            color=figures.GREY,
            va="top",
        )
    for row in rows.to_dict("records"):
        if row["way"] in ways and pd.notna(row["value"]):
            marker, colour, _ = ways[row["way"]]
            axes.plot(
                row["value"],
                labels.index(row["framework_label"]),
                marker=marker,
                color=colour,
                markersize=5,
                linestyle="",
                zorder=3,
            )
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.set_ylim(len(labels) - 0.5, -0.5)
