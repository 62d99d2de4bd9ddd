"""Ratios of results that were measured in the same place, with intervals that know what the whole run shows."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from steptime.plan.cell import PLACE
from steptime.statistics import intervals
from steptime.statistics.intervals import Ratio
from steptime.statistics.spreads import KIND, Spreads, known, priors, spread_of
from steptime.statistics.verdicts import mean_of

Pair = tuple[Hashable, Hashable]
Row = dict[str, Any]


def spreads_of(cells: pd.DataFrame, of: str = "medians") -> Spreads:
    """Estimate how much ratios of two results of a place differ from trial to trial, by KIND, `of` their medians."""
    own, independent = {}, {}
    for kind, alike in timed(cells).groupby(KIND, sort=False):
        spreads = [spread_of(logs) for _, logs in _pairs(alike, of) if len(logs) > 1]
        if spreads:
            places = alike.groupby(PLACE, sort=False, dropna=False)["medians"]
            own[kind] = spreads
            independent[kind] = sum(_independent(medians) for _, medians in places)
    return priors(own, independent)


def of_pairs(cells: pd.DataFrame, spreads: Spreads, of: str = "medians") -> dict[Pair, Ratio]:
    """The ratio of each two timed results of a place with two common repeats, by their labels, both ways."""
    ratios: dict[Pair, Ratio] = {}
    for kind, alike in timed(cells).groupby(KIND, sort=False):
        for (one, other), logs in _pairs(alike, of):
            if len(logs) > 1:
                ratio = intervals.ratio_of(logs, known(spread_of(logs), spreads.get(kind)))
                ratios |= {(one, other): ratio, (other, one): ratio.inverse}
    return ratios


def overall(
    of_places: Sequence[pd.DataFrame], pairs: Mapping[Pair, Ratio]
) -> dict[tuple[str, str], Ratio]:
    """Average how many times the shortest time each environment and mode takes: the geometric mean over those
    `of_places` in which all have a time, {} without any; without repeats there is no interval.
    """
    by_runner: dict[tuple[str, str], list[Ratio]] = {}
    runners = [set(zip(place["environment"], place["mode"], strict=True)) for place in of_places]
    for place, own in zip(of_places, runners, strict=True):
        if own == set().union(*runners):
            for at, ratio in to_shortest(place, pairs).items():
                runner = place.at[at, "environment"], place.at[at, "mode"]
                itself = at == place.index[0]
                by_runner.setdefault(runner, []).append(Ratio(0.0, 0.0, 1.0) if itself else ratio)
    return {runner: mean_of(ratios) for runner, ratios in by_runner.items()}


def to_shortest(place: pd.DataFrame, pairs: Mapping[Pair, Ratio]) -> dict[Hashable, Ratio]:
    """The ratio of each result of a place to its first, by label: of their pair, or of their times without interval."""
    first, shortest = place.index[0], place["seconds"].iloc[0]
    return {
        at: pairs.get((at, first)) or Ratio(math.log(seconds / shortest), math.nan, 1.0)
        for at, seconds in place["seconds"].items()
    }


def to_bases(
    cells: Sequence[Row], bases: Sequence[Row | None], spreads: Spreads
) -> list[Ratio | None]:
    """The ratio base / result of each result and its base; None without one, or without two common repeats."""
    both = zip(cells, bases, strict=True)
    return [
        _of_logs(intervals.paired(base["medians"], cell["medians"]) if base else [], cell, spreads)
        for cell, base in both
    ]


def mean_of_result(cell: Row | pd.Series, spreads: Spreads, of: str = "medians") -> Ratio | None:
    """The mean of the logarithms of a result's times, None of fewer than two processes."""
    logs = intervals.logs_of(list(cell[of].values())) if cell["status"] == "ok" else []
    return _of_logs(logs, cell, spreads)


def _of_logs(logs: Sequence[float], cell: Row | pd.Series, spreads: Spreads) -> Ratio | None:
    prior = spreads.get(tuple(cell[name] for name in KIND))
    return intervals.ratio_of(logs, known(spread_of(logs), prior)) if len(logs) > 1 else None


def timed(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[(cells["status"] == "ok") & cells["seconds"].notna()]


def _pairs(timed: pd.DataFrame, of: str) -> Iterator[tuple[Pair, list[float]]]:
    """Each two results of a place, with the logarithm of their ratio in each trial that both have."""
    for _, place in timed.groupby(PLACE, sort=False, dropna=False):
        for (one, ours), (other, theirs) in combinations(place[of].items(), 2):
            yield (one, other), intervals.paired(ours, theirs)


def _independent(medians: Iterable[dict[int, float]]) -> float:
    """Degrees of freedom of all ratios of a place together: two pairs that share a result share its processes."""
    counts = [len(repeats) for repeats in medians if len(repeats) > 1]
    return sum(count - 1 for count in counts) - max(counts, default=1) + 1
