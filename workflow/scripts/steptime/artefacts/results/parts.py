"""Rows of single operations: one for each, in each framework, way of computing it, and place."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.statistics import median
from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.machine import interference
from steptime.merge.summary import IDLE, OVERSUBSCRIBED, shortened
from steptime.plan.cell import IDENTITY
from steptime.render import figures
from steptime.render.columns import Row, dash, laid_out
from steptime.render.tables import TEXT, Entry
from steptime.render.words import machine_name, mark_notes, marked, origin, plural, spread, why
from steptime.statistics import intervals

# Platform and threads, and rows by the way in which an operation was computed.
Place: TypeAlias = tuple[str, int]
Ways: TypeAlias = dict[str, Row]
OPERATION = ["part", "role", "way"]
COLUMNS = [*common.NAMED[:-2], *OPERATION, "flops"]
COLUMNS += ["seconds", "low", "high", "repeats", "gflops", "error", "cpus"]
COLUMNS += ["marks", "lacking"]
TYPES = dict.fromkeys(["part", "role", "way", "lacking"], TEXT)
PANEL_INCHES = 0.21  # height of a framework's line in a panel
GREY_LINE: dict[str, Any] = {"color": figures.GREY, "linewidth": 0.8, "zorder": 1}
SMALL = {"fontsize": 6.5, "color": figures.GREY}


def read(inputs: Inputs) -> pd.DataFrame:
    """Returns one row (COLUMNS and `medians`) for each operation of each cell, over the cell's repeats; times in
    seconds.

    `medians` has the median of each repeat by its number, as cells of `merge.summary` have. `lacking` says why there is
    no time. A cell that failed as a whole has one row, whose operation is ''.
    """
    rows = inputs.measured.rows
    named = rows.assign(**{name: rows[name].fillna("") for name in ("variant", *OPERATION)})
    groups = named.groupby([*IDENTITY, *OPERATION], sort=False, dropna=False)
    operations = pd.DataFrame([_operation(group) for _, group in groups])
    named = common.labelled(common.whole(operations), inputs.frameworks, inputs.networks)
    return named[[*COLUMNS, "medians"]]


def _operation(samples: pd.DataFrame) -> Row:
    row = samples.iloc[0].to_dict()
    timed = samples[(samples["status"] == "ok") & samples["seconds"].notna()]
    repeats = timed.groupby("repeat")["seconds"]
    row["medians"] = {int(repeat): median(list(seconds)) for repeat, seconds in repeats}
    row |= {"repeats": len(row["medians"]), "seconds": None, "low": None, "high": None}
    row |= {"gflops": None, "marks": ""}
    failed = samples[samples["status"] != "ok"]
    if len(failed):
        row["lacking"] = why(failed.iloc[0])
    elif isinstance(row["lacking"], str):
        row["lacking"] = shortened(row["lacking"])
    if timed.empty:
        return row
    if row["repeats"] > 1:
        times = intervals.of_repeats(list(row["medians"].values()))
        row["seconds"], row["low"], row["high"] = times
    else:
        row["seconds"] = next(iter(row["medians"].values()))
    row["gflops"] = row["flops"] / row["seconds"] / 1e9
    row["error"], row["cpus"] = timed["error"].max(), timed["cpus"].median()
    marks = {
        "oversubscribed": row["cpus"] > OVERSUBSCRIBED * row["threads"],
        "idle threads": row["cpus"] < IDLE * row["threads"],
        "disturbed": any(map(interference.disturbed, timed.to_dict("records"))),
    }
    return row | {"marks": ", ".join(mark for mark, applies in marks.items() if applies)}


def places_of(data: pd.DataFrame) -> list[Place]:
    return sorted({(row.platform, row.threads) for row in data.itertuples()})


def column_of(place: Place) -> str:
    return f"{machine_name(place[0])}, {plural(place[1], 'thread')}"


def by_way(data: pd.DataFrame) -> dict[tuple[str, str, Place], Ways]:
    """Returns the rows of each (part, framework_label, place) by their way; a failed cell's row is its way ''."""
    parts = [part for part in dict.fromkeys(data["part"]) if part]
    places: dict[tuple[str, str, Place], Ways] = {}
    for part in parts:
        for row in data[data["part"].isin([part, ""])].to_dict("records"):
            key = (part, row["framework_label"], (row["platform"], row["threads"]))
            places.setdefault(key, {})[row["way"]] = row
    return places


def entry(row: Row | None, failed: Row | None, text: str) -> Entry:
    """Returns the text of a row that was timed, with its marks; or a dash with its reason."""
    if row is None or not row["repeats"]:
        return dash((row or failed or {}).get("lacking") or "it was not asked for")
    return Entry(text, tuple(marked(row)), kind="ours")


def ratio(row: Row | None, base: Row | None) -> tuple[float, str] | None:
    """Returns a row's time divided by another's, and its text with interval; None unless both were timed."""
    if not row or not base or not row["repeats"] or not base["repeats"]:
        return None
    known = intervals.of_ratio(row["medians"], base["medians"])
    alone = row["seconds"] / base["seconds"], None, None
    value, low, high = known.interval if known else alone
    return value, f"{value:.2f} {spread(value, low, high)}".strip()


def off_by(data: pd.DataFrame) -> str:
    """Says how exact the timed operations are."""
    return (
        "Before it was timed, each operation was compared with numpy's float64, all of its numbers projected on one "
        f"random vector: at most {data['error'].max():.1g} of the result's length off."
    )


def remarks(drawn: pd.DataFrame) -> list[str]:
    """Returns a sentence for each reason for which something is not drawn, and for each mark of what is."""
    lacking = drawn[drawn["repeats"] == 0]
    missing = curves.not_drawn(lacking, _named, lambda row: str(row["lacking"]))
    return [*mark_notes(drawn), *missing]


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['framework_label']} ({row['way']})" if row["way"] else row["framework_label"]


def dots(
    inputs: Inputs,
    data: pd.DataFrame,
    drawn: pd.DataFrame,
    ways: Mapping[str, tuple[str, str, str]],
    axis: str,
    lines: Mapping[float, str],
    keys: int,
) -> Figure:
    """Returns a panel for each part, with a line for each framework and a point at `value` for each of `ways` that it
    has.

    `data` are all rows, also those that are not drawn. `ways` gives marker, colour and label of each way, and `keys`
    the number of columns of their legend. `lines` are values to mark in each panel, with their words.
    """
    parts = list(dict.fromkeys(drawn["part"]))
    labels = list(dict.fromkeys(drawn["framework_label"]))
    inches = 0.7 + PANEL_INCHES * len(labels)
    with figures.panels(len(parts), inches, 1.6, 2) as (drawing, panels):
        for part, axes in zip(parts, panels, strict=False):
            _panel(axes, drawn[drawn["part"] == part], labels, ways, lines)
            axes.set_title(part, fontsize=8.5)
        for axes in panels[-2:]:
            axes.set_xlabel(axis)
            axes.tick_params(labelbottom=True)
        place = ", ".join(map(column_of, places_of(data)))
        figures.title(drawing, f"{inputs.entry['title']}: {place}")
    handles = [
        figures.key(label, marker=marker, color=colour, linestyle="")
        for way, (marker, colour, label) in ways.items()
        if drawn["way"].eq(way).any()
    ]
    notes = [inputs.entry["caption"], *remarks(data), *origin(inputs.measured)]
    figures.caption(drawing, figures.starred(drawn), notes, handles, keys)
    return drawing


def by_place(
    data: pd.DataFrame,
    names: list[str],
    headings: Iterable[str],
    entries: Callable[[str, Place, Ways], list[Entry]],
    first: Callable[[str], tuple[str, ...]] = lambda part: (part,),
) -> pd.DataFrame:
    """Lays out lines for parts (named by `first`) and frameworks; in each place, `entries` fills the `headings`."""
    lines: dict[tuple[str, ...], dict[Any, Entry]] = {}
    for (part, label, place), ways in by_way(data).items():
        line = lines.setdefault((*first(part), label), {})
        named = zip(headings, entries(part, place, ways), strict=True)
        line |= {(column_of(place), name): entry for name, entry in named}
    across = [(column_of(place), name) for place in places_of(data) for name in headings]
    return laid_out(lines.items(), names, across)


def _panel(
    axes: Axes, rows: pd.DataFrame, labels: list[str], ways: Mapping, lines: Mapping[float, str]
) -> None:
    axes.set_xscale("log")
    figures.plain_logarithms(axes.xaxis)
    for value, text in lines.items():
        axes.axvline(value, linestyle="--" if text else "-", **GREY_LINE)
        style: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "va": "top"} | SMALL
        figures.say(axes, text, (value, 1), (2, -2), **style)
    for row in rows.to_dict("records"):
        if row["way"] in ways and pd.notna(row["value"]):
            marker, colour, _ = ways[row["way"]]
            style = {"marker": marker, "color": colour, "markersize": 5, "linestyle": ""}
            axes.plot(row["value"], labels.index(row["framework_label"]), **style, zorder=3)
    shown = rows[rows["way"].isin(ways) & rows["value"].notna()]
    figures.stars(
        axes, shown.assign(line=shown["framework_label"].map(labels.index)), "value", "line"
    )
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.set_ylim(len(labels) - 0.5, -0.5)
