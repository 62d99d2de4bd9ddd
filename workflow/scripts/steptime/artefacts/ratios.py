"""How much slower every framework is than the fastest one, with intervals, as a table and a forest plot."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.intervals import Ratio
from steptime.merge.ratios import Pair, of_pairs
from steptime.plan.cell import PLACE
from steptime.render.columns import Column, Row, columns
from steptime.render.words import facts, further, processes, raw_data, remarks, significant, why

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FASTEST, SLOWER, FASTER, SAME, UNKNOWN = (
    "fastest",
    "slower",
    "faster",
    "no difference shown",
    "not known",
)
COLUMNS = [*common.NAMED, "marks", "seconds", "repeats", "further", "fastest", "ratio"]
COLUMNS += ["low", "high", "verdict"]
NO_INTERVAL = (
    "fewer than two repeats of both were measured, so nothing is known of how much processes differ "
    "(`repeats` in the grid)"
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout.

    `fastest` names the environment and mode that a row is divided by.

    The verdict is 'no difference shown' where the 95 % interval of the ratio holds 1, and 'not known' where there is no
    interval.
    """
    rows, page = common.cells_of(inputs), inputs.page
    pairs = of_pairs(rows)
    places = rows.groupby(PLACE, sort=False, dropna=False)
    found = [row for _, place in places for row in _ratios(place, pairs)]
    data = pd.DataFrame(found, columns=COLUMNS)
    page.facts = facts(inputs.measured)
    page.notes = [
        "A ratio is the geometric mean of the ratios of the repeats, each of two processes that ran in the same trial; "
        "its interval is Student's, of their logarithms, with a variance that is moderated by those of all pairs at as "
        "many threads. It may differ a little from the ratio of two medians.",
        "The fastest is the one with the shortest median. Each interval is one of 95 % by itself: of twenty ratios of "
        "equal cells, one is called different.",
        processes(inputs.measured.cells),
        raw_data(inputs.measured),
    ]
    return data, columns(
        data.assign(is_fastest=data["verdict"] == FASTEST), SHOWN, INDEX, common.PLACES
    )


def figure(inputs: Inputs) -> "tuple[pd.DataFrame, Figure]":
    """The rows that are drawn and the drawing."""
    # The table is made while cells wait, and need not wait for a library that draws.
    from steptime.artefacts.ratios_figure import draw

    return draw(inputs.table[0], inputs.frameworks, inputs.measured)


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


def _heading(row: Row) -> tuple[str, str]:
    devices = f" x {row['devices']}" if row["devices"] > 1 else ""
    return f"{row['platform']}, times the fastest, threads", f"{row['threads']}{devices}"


def _shown(row: Row) -> str | None:
    if pd.isna(row["ratio"]) or row["verdict"] == FASTEST:
        return None if pd.isna(row["ratio"]) else FASTEST
    ratio = significant(row["ratio"])
    if row["verdict"] == UNKNOWN:
        return ratio
    said = f" {SAME}" if row["verdict"] == SAME else ""
    return f"{ratio} ({significant(row['low'])} to {significant(row['high'])}){said}"


def _remarks(row: Row) -> list[str]:
    return [*([NO_INTERVAL] if row["verdict"] == UNKNOWN else []), *remarks(row)]


SHOWN = [Column(_heading, _shown, str, why, "ours", _remarks, "is_fastest")]
INDEX = {"Network": common.of_network, "Framework": "framework_label"}
