"""How much slower every framework is than the fastest one, with intervals, as a table and a forest plot."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.intervals import Ratio
from steptime.merge.measured import Measured
from steptime.merge.ratios import Pair, of_pairs
from steptime.plan.cell import IDENTITY, PLACE
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    facts,
    further,
    processes,
    raw_data,
    significant,
    status_reason,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    "fewer than two repeats of both were measured, so nothing is known of how much processes differ "
    "(`repeats` in the grid)"
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(inputs.measured, inputs.frameworks, inputs.networks, inputs.page)


def figure(inputs: Inputs) -> "tuple[pd.DataFrame, Figure]":
    """The rows that are drawn and the drawing."""
    # The table is made while cells wait, and need not wait for a library that draws.
    from steptime.artefacts.ratios_figure import draw

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
