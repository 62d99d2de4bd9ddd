"""How much slower every framework is than the fastest one, with intervals, as a table and a forest plot."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.intervals import Ratio
from steptime.merge.measured import Measured
from steptime.merge.ratios import Pair, of_pairs
from steptime.plan.cell import IDENTITY, PLACE
from steptime.render import figures, tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    facts,
    further,
    plural,
    processes,
    raw_data,
    significant,
    status_reason,
)

FASTEST, SLOWER, FASTER, SAME, UNKNOWN = (
    "fastest",
    "slower",
    "faster",
    "no difference shown",
    "not known",
)
COLUMNS = [*IDENTITY, "network_label", "framework", "framework_label", "status", "reason", "marks"]
COLUMNS += ["seconds", "repeats", "further", "fastest", "ratio", "low", "high", "verdict"]
NO_INTERVAL = (
    "fewer than two repeats of both were measured, so nothing is known of how much processes differ: "
    "set `repeats` in the grid to 3 or more"
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(inputs.measured, inputs.frameworks, inputs.networks, inputs.page)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing."""
    return draw(inputs.table[0], inputs.frameworks, inputs.measured)


def build(
    measured: Measured, frameworks: Frameworks, catalogue: dict[str, Any], page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout; fills the page's facts and notes.

    `fastest` names the environment and mode that a row is divided by.

    The verdict is 'no difference shown' where the 95 % interval of the ratio holds 1, and 'not known' where there is no
    interval.
    """
    cells = measured.cells.assign(variant=measured.cells["variant"].fillna(""))
    cells["network"] = [common.whole_name(cell) for cell in cells.to_dict("records")]
    rows = common.labelled(cells, frameworks, catalogue)
    pairs = of_pairs(rows)
    places = rows.groupby(PLACE, sort=False, dropna=False)
    found = [row for _, place in places for row in _ratios(place, pairs)]
    data = pd.DataFrame(found, columns=COLUMNS)
    page.facts = facts(measured)
    page.notes = [
        "A ratio is the geometric mean of the ratios of the repeats, each of two processes that ran in the same trial; "
        "its interval is Student's, of their logarithms, with a variance that is moderated by those of all pairs at as "
        "many threads. It may differ a little from the ratio of two medians.",
        "The fastest is the one with the shortest median. Each interval is one of 95 % by itself: of twenty ratios of "
        "equal cells, one is called different.",
        processes(measured.cells),
        raw_data(measured),
    ]
    return data, _layout(data)


def _ratios(place: pd.DataFrame, pairs: dict[Pair, Ratio]) -> list[dict[str, Any]]:
    """The rows of one place, each divided by the fastest of them."""
    timed = place[(place["status"] == "ok") & place["seconds"].notna()]
    fastest = timed.loc[timed["seconds"].astype(float).idxmin()] if len(timed) else None
    rows = []
    for at, row in place.iterrows():
        found = {name: row[name] for name in COLUMNS if name in row} | {
            "marks": ", ".join(row["marks"]),
            "further": further(row),
        }
        found |= dict.fromkeys(["fastest", "ratio", "low", "high", "verdict"])
        if fastest is not None and at in timed.index:
            found["fastest"] = f"{fastest['environment']}.{fastest['mode']}"
            found |= (
                _ratio(row, fastest, pairs.get((at, fastest.name)))
                if at != fastest.name
                else {"ratio": 1.0, "verdict": FASTEST}
            )
        rows.append(found)
    return rows


def _ratio(row: pd.Series, fastest: pd.Series, known: Ratio | None) -> dict[str, Any]:
    if known is None:
        return {
            "ratio": row["seconds"] / fastest["seconds"],
            "low": None,
            "high": None,
            "verdict": UNKNOWN,
        }
    ratio, low, high = known.interval
    verdict = SLOWER if low > 1 else FASTER if high < 1 else SAME
    return {"ratio": ratio, "low": low, "high": high, "verdict": verdict}


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    places = (
        data[["platform", "devices", "threads"]]
        .drop_duplicates()
        .sort_values(["platform", "devices", "threads"])
    )
    columns = [_column(place) for place in places.to_dict("records")]
    table: dict[tuple[str, str], dict[tuple[str, str], Entry]] = {}
    for row in data.to_dict("records"):
        name = (f"{row['network_label']}, batch {row['batch']}", row["framework_label"])
        table.setdefault(name, {})[_column(row)] = _entry(row)
    body = [[entries.get(column, Entry()) for column in columns] for entries in table.values()]
    index = pd.MultiIndex.from_tuples(list(table), names=["Network", "Framework"])
    return pd.DataFrame(body, index=index, columns=pd.MultiIndex.from_tuples(columns), dtype=object)


def _column(place: dict[str, Any]) -> tuple[str, str]:
    devices = f" x {place['devices']}" if place["devices"] > 1 else ""
    return f"{place['platform']}, times the fastest, threads", f"{place['threads']}{devices}"


def _entry(row: dict[str, Any]) -> Entry:
    if pd.isna(row["ratio"]):
        return common.dash(status_reason(row["status"], row["reason"]))
    texts = [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]
    texts += [text.rstrip(".") for text in (row["further"], row["reason"]) if text]
    if row["verdict"] == FASTEST:
        return Entry("fastest", tuple(texts), True, "ours")
    if row["verdict"] == UNKNOWN:
        return Entry(significant(row["ratio"]), (NO_INTERVAL, *texts), kind="ours")
    said = f" {SAME}" if row["verdict"] == SAME else ""
    limits = f"{significant(row['low'])} to {significant(row['high'])}"
    return Entry(f"{significant(row['ratio'])} ({limits}){said}", tuple(texts), kind="ours")


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
        axes.set_yticks(heights, ticks, fontsize=8)
        axes.set_ylim(at + 0.7, 0.3)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        figures.headings(
            axes,
            "Times slower than the fastest",
            [f"on {name}" for name in data["platform"].unique()],
        )
        figures.notes_below(drawing, _notes(data, measured), _handles(data, frameworks), 3)
    return data, drawing


def _axis(axes: Axes, data: pd.DataFrame) -> None:
    """A logarithmic axis with plain numbers, and room on its right for what is said of each line."""
    values = (
        pd.concat([data["ratio"], data["low"], data["high"], pd.Series([1.0])])
        .astype(float)
        .dropna()
    )
    lowest, highest = values.min() / 1.05, max(values.max() * 1.05, 1.2)
    axes.set_xscale("log")
    axes.set_xlim(lowest, highest * (highest / lowest) ** TEXT_SHARE)
    subs = (1.0, 2.0, 5.0) if highest / lowest > 4 else (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=30))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("time per mini-batch divided by that of the fastest")


def _line(axes: Axes, height: float, row: dict[str, Any], frameworks: Frameworks) -> None:
    framework = frameworks[row["framework"]]
    words, right = _words(row), 1.0
    if pd.notna(row["ratio"]):
        known = pd.notna(row["low"])
        shown = row["verdict"] in ("fastest", "slower", "faster")
        right = row["high"] if known else row["ratio"]
        axes.errorbar(
            row["ratio"],
            height,
            xerr=[[row["ratio"] - row["low"]], [row["high"] - row["ratio"]]] if known else None,
            **framework.look,
            markersize=5,
            markerfacecolor=framework.colour if shown else "white",
            linewidth=1.2,
            zorder=3,
        )
    axes.annotate(
        words,
        (right, height),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
        color="#444444",
    )


def _words(row: dict[str, Any]) -> str:
    if pd.isna(row["ratio"]):
        return row["status"]
    if pd.isna(row["low"]):
        return (
            "fastest"
            if row["verdict"] == "fastest"
            else f"{significant(row['ratio'])}, interval not known"
        )
    said = f", {row['verdict']}" if row["verdict"] == "no difference shown" else ""
    return f"{significant(row['ratio'])}{said}"


def _label(row: dict[str, Any], several: bool, first: bool) -> str:
    """The framework, and before it, on the first line of a place, the network and the threads."""
    if not first:
        return row["framework_label"]
    parts = [row["network_label"], f"batch {row['batch']}", plural(row["threads"], "thread")]
    return (
        f"{', '.join([*parts, *([row['platform']] if several else [])])}   {row['framework_label']}"
    )


def _handles(data: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    handles = [
        figures.key(framework.label, linestyle="", **framework.look)
        for framework in map(frameworks.__getitem__, data["framework"].unique())
    ]
    hollow = {"linestyle": "", "marker": "o", "color": "#444444", "markerfacecolor": "white"}
    return [
        *handles,
        figures.key("hollow: no difference from the fastest is shown", **hollow),
    ]


def _notes(data: pd.DataFrame, measured: Measured) -> list[str]:
    notes = [
        "Ratio with its 95 % interval; each interval stands for itself. Where it holds 1 (the upright line), no "
        f"difference is shown. {processes(measured.cells)}"
    ]
    for row in data[data["ratio"].isna()].to_dict("records"):
        reason = status_reason(row["status"], row["reason"]).rstrip(".")
        notes.append(f"{row['network_label']}, {row['framework_label']}: {reason}.")
    notes = list(dict.fromkeys(notes))
    for mark in dict.fromkeys(
        mark for marks in data["marks"] for mark in marks.split(", ") if mark
    ):
        rows = data[data["marks"].str.contains(mark, regex=False)]
        notes.append(f"{plural(len(rows), 'cell')}: {MARK_WORDS.get(mark, mark)}.")
    return [*notes, *facts(measured), raw_data(measured)]
