"""Ratios of cells that were measured in the same place, with intervals that know what the whole grid shows."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from steptime.merge import intervals, moderation
from steptime.merge.intervals import Ratio
from steptime.merge.summary import KIND
from steptime.plan import looks
from steptime.plan.cell import PLACE

Pair = tuple[Hashable, Hashable]
Row = dict[str, Any]


def of_pairs(cells: pd.DataFrame) -> dict[Pair, Ratio]:
    """The ratio of each two timed cells of a place that have two repeats in common, by their labels in the index; both
    ways.

    `cells` are rows of `merge.summary`. The variance of a pair's ratios is moderated by those of all pairs of its KIND.
    """
    timed = cells[(cells["status"] == "ok") & cells["seconds"].notna()]
    found: dict[Pair, Ratio] = {}
    for _, alike in timed.groupby(KIND, sort=False):
        places = [place["medians"] for _, place in alike.groupby(PLACE, sort=False, dropna=False)]
        pairs = [pair for medians in places for pair in combinations(medians.items(), 2)]
        logs = [intervals.paired(ours, theirs) for (_, ours), (_, theirs) in pairs]
        known = [at for at, values in enumerate(logs) if len(values) > 1]
        own = [moderation.spread_of(logs[at]) for at in known]
        spreads = moderation.moderated(own, sum(map(_independent, places)))
        for at, spread in zip(known, spreads, strict=True):
            (one, _), (other, _) = pairs[at]
            part = _part(
                cells.at[one, "looks"], cells.at[one, "medians"], cells.at[other, "medians"]
            )
            ratio = intervals.ratio_of(logs[at], spread, part)
            found |= {(one, other): ratio, (other, one): ratio.inverse}
    return found


def to_bases(cells: Sequence[Row], bases: Sequence[Row | None]) -> list[Ratio | None]:
    """The ratio base / cell of each cell and the base beside it, rows of `merge.summary`; None without a base, or where
    they have not two repeats in common.

    The variance of a ratio is moderated by those of all cells here of its KIND.
    """
    found: list[Ratio | None] = [None] * len(cells)
    kinds: dict[tuple[Any, ...], dict[int, tuple[list[float], float]]] = {}
    for at, (cell, base) in enumerate(zip(cells, bases, strict=True)):
        if base is None:
            continue
        logs = intervals.paired(base["medians"], cell["medians"])
        if len(logs) > 1:
            part = _part(cell["looks"], base["medians"], cell["medians"])
            kinds.setdefault(tuple(cell[name] for name in KIND), {})[at] = logs, part
    for alike in kinds.values():
        own = [moderation.spread_of(logs) for logs, _ in alike.values()]
        for (at, (logs, part)), spread in zip(
            alike.items(), moderation.moderated(own), strict=True
        ):
            found[at] = intervals.ratio_of(logs, spread, part)
    return found


def _part(asked: Sequence[int], *medians: dict[int, float]) -> float:
    """The part of the look after the last repeat that two cells have both."""
    return looks.part_after(asked, min(map(max, medians)))


def _independent(medians: Iterable[dict[int, float]]) -> float:
    """Degrees of freedom of all ratios of a place together: two pairs that share a cell share its processes."""
    counts = [len(repeats) for repeats in medians if len(repeats) > 1]
    return sum(count - 1 for count in counts) - max(counts, default=1) + 1
