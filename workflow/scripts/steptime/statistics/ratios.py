"""Ratios of results that were measured in the same place, with intervals that know what the whole run shows."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from steptime.plan.cell import PLACE
from steptime.statistics import intervals
from steptime.statistics.intervals import Ratio
from steptime.statistics.spreads import KIND, Spreads, combined, priors, spread_of

# What makes a result decide nothing.
DISTURBED = "disturbed"

Pair = tuple[Hashable, Hashable]
Row = dict[str, Any]


def spreads_of(cells: pd.DataFrame, of: str = "medians") -> Spreads:
    """Estimates, by KIND, how much ratios of two results of a place differ from trial to trial, `of` their medians."""
    own, independent = {}, {}
    for kind, alike in timed(cells).groupby(KIND, sort=False):
        spreads = [spread_of(logs) for _, logs in in_trials(alike, of) if len(logs) > 1]
        if spreads:
            places = alike.groupby(PLACE, sort=False, dropna=False)["medians"]
            own[kind] = spreads
            independent[kind] = sum(_independent(medians) for _, medians in places)
    return priors(own, independent)


def of_pairs(cells: pd.DataFrame, spreads: Spreads, of: str = "medians") -> dict[Pair, Ratio]:
    """Returns the ratio of each two timed results of a place with two common repeats, by their labels, both ways."""
    ratios: dict[Pair, Ratio] = {}
    for kind, alike in timed(cells).groupby(KIND, sort=False):
        for (one, other), logs in in_trials(alike, of):
            if len(logs) > 1:
                ratio = intervals.ratio_of(logs, combined(spread_of(logs), spreads.get(kind)))
                ratios |= {(one, other): ratio, (other, one): ratio.inverse}
    return ratios


def to_bases(
    cells: Sequence[Row], bases: Sequence[Row | None], spreads: Spreads
) -> list[Ratio | None]:
    """Returns the ratio base / result of each result and its base; None without one, or without two common repeats."""
    both = zip(cells, bases, strict=True)
    return [
        _of_logs(intervals.paired(base["medians"], cell["medians"]) if base else [], cell, spreads)
        for cell, base in both
    ]


def mean_of_result(cell: Row | pd.Series, spreads: Spreads, of: str = "medians") -> Ratio | None:
    """Returns the mean of the logarithms of a result's times, None of fewer than two processes."""
    logs = intervals.logs_of(list(cell[of].values())) if cell["status"] == "ok" else []
    return _of_logs(logs, cell, spreads)


def _of_logs(logs: Sequence[float], cell: Row | pd.Series, spreads: Spreads) -> Ratio | None:
    prior = spreads.get(tuple(cell[name] for name in KIND))
    return intervals.ratio_of(logs, combined(spread_of(logs), prior)) if len(logs) > 1 else None


def timed(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[(cells["status"] == "ok") & cells["seconds"].notna()]


def in_trials(timed: pd.DataFrame, of: str = "medians") -> Iterator[tuple[Pair, list[float]]]:
    """Yields each two results of a place, with the logarithm of their ratio in each trial that both have.

    A disturbed result has none: `merge.summary` has left its disturbed runs out where two others are left.
    """
    for _, place in timed.groupby(PLACE, sort=False, dropna=False):
        values = {
            at: {} if DISTURBED in marks else own
            for at, own, marks in zip(place.index, place[of], place["marks"], strict=True)
        }
        for (one, ours), (other, theirs) in combinations(values.items(), 2):
            yield (one, other), intervals.paired(ours, theirs)


def _independent(medians: Iterable[dict[int, float]]) -> float:
    """Counts the degrees of freedom of a place's ratios together: pairs that share a result share processes."""
    counts = [len(repeats) for repeats in medians if len(repeats) > 1]
    return sum(count - 1 for count in counts) - max(counts, default=1) + 1
