"""The answer in the terminal: how long each framework takes for each network, the fastest first."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.page.answer import fastest
from steptime.plain import plural
from steptime.plan.cell import PLACE
from steptime.render.tables import DASH
from steptime.render.words import limits, significant
from steptime.statistics.intervals import Ratio
from steptime.statistics.ratios import Pair, of_pairs, overall
from steptime.statistics.words import SLOWER, places

# With what `page.summary` says besides, 24 lines.
MOST_LINES, WIDEST = 14, 120
# What tells columns of one network apart, where it differs among them.
BESIDES = {"batch": "/{}", "precision": " {}", "exchange": " {}"}
Pairs = dict[Pair, Ratio]


def lines(inputs: Inputs) -> list[str]:
    """Matrices of frameworks and networks of a table of times, what their signs mean, and who is fastest; or none."""
    rows = _rows(inputs)
    pairs = of_pairs(rows, inputs.measured.statistics.ratios)
    timed = [place for _, place in rows.groupby(common.PLACES) if place["seconds"].notna().any()]
    timed.sort(key=lambda place: -int(place["threads"].iloc[0]))
    shown: list[str] = []
    for at, place in enumerate(timed):
        matrix, left = _matrix(place, pairs), MOST_LINES - len(shown)
        if at and len(matrix) > left:
            shown[-1] = f"... and {plural(len(timed) - at, 'more table')} in the report"
            break
        if len(matrix) > left:
            matrix = [*matrix[: left - 1], f"... and {len(matrix) - left + 1} more in the report"]
        shown += [*matrix, ""]
    if not shown:
        return []
    signs = "ms of the shortest time, × times as long, ≈ not shown slower"
    marks = ", * disturbed" if any("disturbed" in marks for marks in rows["marks"]) else ""
    mean = "overall: geometric mean of ×, 95 % interval"
    first = timed[0].rename(columns={"word": "verdict"})
    where = f"{plural(int(first['threads'].iloc[0]), 'thread')}: " if len(timed) > 1 else ""
    return [*shown[:-1], f"({signs}{marks}; {mean})", "", f"{where}{fastest(first)}"]


def disturbed(inputs: Inputs) -> list[str]:
    """The results that were measured while something else was at work, in words."""
    rows = _rows(inputs)
    marked = rows[["disturbed" in marks for marks in rows["marks"]]]
    return [
        f"{row['framework_label']} on {row['network']} with {plural(row['threads'], 'thread')}"
        for row in marked.to_dict("records")
    ]


def _rows(inputs: Inputs) -> pd.DataFrame:
    rows = common.cells_of(inputs)
    # Of PyTorch's own versions.
    return rows.assign(framework_label=rows["framework_label"].str.replace("+cpu", "", regex=False))


def _matrix(rows: pd.DataFrame, pairs: Pairs) -> list[str]:
    """The lines of one place: a heading, and one for each framework, in the order of their overall means."""
    of_places = places(rows)
    means = overall(of_places, pairs)
    count = sum(len(place) == len(means) for place in of_places)
    columns = [column for _, column in rows.groupby(PLACE, sort=False, dropna=False)]
    ways = rows.drop_duplicates("framework_label").set_index("framework_label")
    table: dict[str, list[str]] = {label: [] for label in ways.index}
    for column in columns:
        shortest = next(iter(places(column)), column).iloc[0]
        for label in table:
            own = column[column["framework_label"] == label]
            table[label].append("" if own.empty else _entry(own.iloc[0], shortest, pairs))
    known = {label: means.get((way["environment"], way["mode"])) for label, way in ways.iterrows()}
    ordered = sorted(table, key=lambda label: mean.log if (mean := known[label]) else math.inf)
    threads, devices = (int(rows[name].iloc[0]) for name in ("threads", "devices"))
    several = f" on {devices} devices" if devices > 1 else ""
    heading = f"{rows['platform'].iloc[0]}, {plural(threads, 'thread')}{several}"
    body = [[label, *table[label], _mean(known[label])] for label in ordered]
    total = "overall" if count == len(columns) else f"overall, of {count}"
    return _aligned([[heading, *_headings(columns), total], *body])


def _headings(columns: Sequence[pd.DataFrame]) -> list[str]:
    first = pd.DataFrame([column.iloc[0] for column in columns])
    varied = [name for name in BESIDES if first.groupby("network")[name].nunique().max() > 1]
    return [
        row["network"] + "".join(BESIDES[name].format(row[name]) for name in varied)
        for row in first.to_dict("records")
    ]


def _entry(row: Any, shortest: Any, pairs: Pairs) -> str:
    if pd.isna(row["seconds"]):
        return DASH
    mark = "*" if "disturbed" in row["marks"] else ""
    if row.name == shortest.name:
        return f"{significant(1000 * row['seconds'], 4)}{mark}"
    pair = pairs.get((row.name, shortest.name))
    ratio = pair.interval[0] if pair else row["seconds"] / shortest["seconds"]
    return f"{'' if row['word'] == SLOWER else '≈'}{significant(ratio)}×{mark}"


def _mean(known: Ratio | None) -> str:
    if known is None:
        return DASH
    mean, low, high = known.interval
    return significant(mean) + (f" ({limits(low, high)})" if low < high else "")


def _aligned(table: list[list[str]]) -> list[str]:
    """Lines of columns, without the last networks where they are too wide."""
    while True:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        if sum(widths) + 2 * len(widths) <= WIDEST or len(widths) < 4:
            break
        table = [[*line[:-2], line[-1]] for line in table]
        table[0][-1] = f"... {table[0][-1].removeprefix('... ')}"
    return [
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
