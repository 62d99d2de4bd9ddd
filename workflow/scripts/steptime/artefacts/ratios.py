"""How much slower every framework is than the fastest one, with intervals, as a table."""

from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.render.columns import Column, Row, columns
from steptime.render.words import ERROR_RATE, further, processes, ranged, remarks, why
from steptime.statistics.intervals import Ratio
from steptime.statistics.ratios import of_pairs, overall, to_shortest
from steptime.statistics.words import FASTEST, SLOWER, TIED, UNKNOWN, places

COLUMNS = [*common.NAMED, "marks", "seconds", "repeats", "further", "fastest", "ratio"]
OVERALL = ["overall", "overall_low", "overall_high"]
COLUMNS += ["low", "high", "verdict", *OVERALL]
OF_PLACE = [*common.PLACES, "environment", "mode"]
NO_INTERVAL = (
    "fewer than two repeats of both were measured, so nothing is known of how much processes differ "
    "(`repeats` in the grid)"
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout: each time by that of `fastest`, `verdict` in words of `statistics.words`.

    OVERALL is the mean of a framework's ratios in all networks, with its interval.
    """
    rows = common.cells_of(inputs)
    pairs = of_pairs(rows, inputs.measured.statistics.ratios)
    fastest = {
        at: (rows.loc[place.index[0]], ratio)
        for place in places(rows)
        for at, ratio in to_shortest(place, pairs).items()
    }
    means: dict[tuple[Any, ...], Any] = {}
    for place, own in rows.groupby(common.PLACES):
        means |= {(*place, *way): mean for way, mean in overall(places(own), pairs).items()}
    compared = [
        _row(row, fastest.get(at), means.get(tuple(row[name] for name in OF_PLACE)))
        for at, row in rows.iterrows()
    ]
    data = pd.DataFrame(compared, columns=COLUMNS)
    common.describe(
        inputs,
        "A ratio is the geometric mean of the ratios of the repeats, each of two processes that ran in the same trial; "
        "its interval is Student's, of their logarithms, with a variance that all pairs of the run at as many threads "
        "help to estimate.",
        ERROR_RATE,
        processes(inputs.measured.cells),
    )
    shown = data.assign(is_fastest=data["verdict"] == FASTEST)
    return data, columns(shown, SHOWN, INDEX, common.PLACES)


def _row(row: pd.Series, fastest: tuple[pd.Series, Ratio] | None, mean: Ratio | None) -> Row:
    """The row of a result, divided by the fastest of its place, of which the ratio is given."""
    compared = {name: row[name] for name in COLUMNS if name in row} | {
        "marks": ", ".join(row["marks"]),
        "further": further(row),
        "verdict": row["word"],
    }
    compared |= dict.fromkeys(["fastest", "ratio", "low", "high", *OVERALL])
    if mean is not None:
        compared |= dict(zip(OVERALL, mean.interval, strict=True))
    if fastest is not None:
        first, ratio = fastest
        compared["fastest"] = f"{first['environment']}.{first['mode']}"
        compared |= dict(zip(("ratio", "low", "high"), ratio.interval, strict=True))
    return compared


def _shown(row: Row) -> str | None:
    if pd.isna(row["ratio"]):
        return None
    if row["ratio"] == 1 and pd.isna(row["low"]):
        words = {FASTEST: FASTEST, TIED: "tied for the fastest", UNKNOWN: "shortest time"}
        return words.get(row["verdict"], "alone")
    verdict = "" if row["verdict"] in (SLOWER, UNKNOWN) else f" {TIED}"
    return ranged(row["ratio"], row["low"], row["high"]) + verdict


def _remarks(row: Row) -> list[str]:
    return [NO_INTERVAL] * (row["verdict"] == UNKNOWN) + remarks(row)


SHOWN = [
    Column(common.by_threads("times the fastest"), _shown, str, why, "ours", _remarks, "is_fastest")
]
INDEX = {"Network": common.of_network, "Framework": "framework_label"}
