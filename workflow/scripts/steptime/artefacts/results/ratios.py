"""Table of how many times the shortest time every framework takes, with intervals and words."""

from typing import Any

import numpy as np
import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import IDENTITY
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import ERROR_RATE, further, milliseconds, processes, ranged, remarks, why
from steptime.statistics.overall import Overall, overall
from steptime.statistics.pairs import Pair, both_ways, key, seconds_to_decide
from steptime.statistics.words import FASTEST, NOT_DECIDED, places

COLUMNS = [*common.NAMED, "marks", "seconds", "repeats", "further", "fastest", "ratio"]
OVERALL = ["overall", "overall_low", "overall_high", "overall_word", "overall_networks"]
# How many pairs a table has, how many are not decided, how many of these further runs would decide, and in which time.
OPEN = ["compared_pairs", "open_pairs", "decidable_pairs", "seconds_to_decide"]
COLUMNS += ["low", "high", "verdict", *OVERALL, *OPEN]
TYPES = dict.fromkeys(["further", "fastest", "verdict", "overall_word"], TEXT)
TYPES |= dict.fromkeys(
    ["overall_networks", "compared_pairs", "open_pairs", "decidable_pairs"], COUNT
)
# A precision has tables of its own: nobody chooses a framework by the mean of two.
TABLE = [*common.PLACES, "precision"]
OF_PLACE = [*TABLE, "environment", "mode"]
NO_INTERVAL = (
    "nothing is known of how much its runs, or those of the shortest, differ: fewer than two of both were measured "
    "and not disturbed, or the two differ far more than those of others (`repeats` in the grid)"
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout: each time divided by that of `fastest`.

    `verdict` is a word of `statistics.words`. OVERALL compares a framework with the one that leads over all networks;
    OPEN counts the pairs that are not decided.
    """
    rows = common.cells_of(inputs)
    # The layers of a network are compared in `layers`.
    is_part = ["part_of" in inputs.networks.get(network, {}) for network in rows["network"]]
    rows = rows[~np.array(is_part, bool)]
    pairs = both_ways(inputs.measured.statistics.pairs)
    by_shortest = to_shortest(rows, pairs)
    took = _seconds(inputs.measured.rows)
    means: dict[tuple[Any, ...], Overall] = {}
    still_open: dict[tuple[Any, ...], Row] = {}
    for place, own in rows.groupby(TABLE):
        means |= {(*place, *way): mean for way, mean in overall(places(own, pairs), pairs).items()}
        still_open[place] = _open(own, pairs, took)
    compared = [
        _row(row, by_shortest.get(at, {}), means.get(tuple(row[name] for name in OF_PLACE)))
        | still_open[tuple(row[name] for name in TABLE)]
        for at, row in rows.iterrows()
    ]
    data = pd.DataFrame(compared, columns=COLUMNS)
    common.describe(
        inputs,
        "A ratio is the geometric mean of the ratios of the repeats, each of two processes that ran in the same trial. "
        "Its error comes from all pairs of the run at as many threads.",
        ERROR_RATE,
        processes(inputs.measured.cells),
        *common.imported(inputs.networks, rows["network"]),
    )
    shown = data.assign(is_fastest=data["verdict"] == FASTEST)
    return data, columns(shown, SHOWN, INDEX, common.PLACES)


def _seconds(rows: pd.DataFrame) -> dict[str, float]:
    """Returns how many seconds each result's last run took, by the result's key: the first run proves more."""
    if "ended_at" not in rows:
        return {}
    runs = rows.drop_duplicates([*IDENTITY, "repeat"]).sort_values("repeat")
    took = (runs["ended_at"] - runs["started_at"]).dt.total_seconds()
    return dict(zip(map(key, runs.to_dict("records")), took, strict=True))


def _open(rows: pd.DataFrame, pairs: dict[tuple[str, str], Pair], took: dict[str, float]) -> Row:
    """Returns OPEN: how many pairs a table has, how many are not decided, and what it would take to decide them."""
    keys = set(map(key, rows.to_dict("records")))
    own = [
        pair
        for (one, other), pair in pairs.items()
        if one in keys and other in keys and pair.ratio >= 1
    ]
    own = [pair for pair in own if pair.ratio > 1 or pair.one < pair.other]
    left = [pair for pair in own if not pair.is_decided]
    return dict(zip(OPEN, (len(own), len(left), *seconds_to_decide(left, took)), strict=True))


def to_shortest(rows: pd.DataFrame, pairs: dict[tuple[str, str], Pair]) -> dict[Any, Row]:
    """Returns the ratio of each timed row to the shortest of its place, `fastest`, by its label."""
    by_shortest = {}
    for place in places(rows, pairs):
        first = place.iloc[0]
        for at, row in place.iterrows():
            pair = pairs.get((key(row), key(first)))
            by_shortest[at] = {
                "fastest": f"{first['environment']}.{first['mode']}",
                "ratio": pair.ratio if pair else row["seconds"] / first["seconds"],
                "low": pair.low if pair else None,
                "high": pair.high if pair else None,
            }
    return by_shortest


def _row(row: pd.Series, by_shortest: Row, mean: Overall | None) -> Row:
    """Returns the row of a result, beside the shortest time of its place."""
    compared = {name: row[name] for name in COLUMNS if name in row} | {
        "marks": ", ".join(row["marks"]),
        "further": further(row),
        "verdict": row["word"],
    }
    compared |= dict.fromkeys(["fastest", "ratio", "low", "high", *OVERALL])
    if mean is not None:
        compared |= dict(zip(OVERALL, mean, strict=True))
    return compared | by_shortest


def _shown(row: Row) -> str | None:
    if pd.isna(row["ratio"]):
        return None
    if row["fastest"] == f"{row['environment']}.{row['mode']}":
        return f"{milliseconds(row['seconds'])} ms"
    return f"{ranged(row['ratio'], row['low'], row['high'])} {row['verdict'] or NOT_DECIDED}"


def _remarks(row: Row) -> list[str]:
    is_unknown = row["verdict"] == NOT_DECIDED and pd.isna(row["low"])
    return [*([NO_INTERVAL] if is_unknown else []), *remarks(row)]


SHOWN = [
    Column(
        common.by_threads("times the shortest"), _shown, str, why, "ours", _remarks, "is_fastest"
    )
]
INDEX = {"Network": common.of_network, "Framework": "framework_label"}
