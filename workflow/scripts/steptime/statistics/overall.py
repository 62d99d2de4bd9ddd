"""How frameworks compare over all networks together: ratios to one framework, with the same rule for words as pairs.

A mean of ratios to the shortest time of each place would compare with a minimum of noise, which is nobody's time: four
frameworks that are alike would all look slower. So there is one framework, the one that leads, in each ratio.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import exp, log
from typing import NamedTuple

import pandas as pd

from steptime.statistics.intervals import Ratio
from steptime.statistics.pairs import Pair, key, word
from steptime.statistics.verdicts import ERROR, NOT_DECIDED, SLOWER, mean_of
from steptime.statistics.words import FASTEST, SHORTEST, leader

Runner = tuple[str, str]  # environment and mode


class Overall(NamedTuple):
    """How many times as long as the leading framework another takes, over `networks` places, and the word for it."""

    ratio: float
    low: float | None
    high: float | None
    word: str
    networks: int


def overall(
    places: Sequence[pd.DataFrame], pairs: Mapping[tuple[str, str], Pair]
) -> dict[Runner, Overall]:
    """Averages the ratios of environments and modes over the places in which all of them have a time; {} without any.

    Places in which nothing is known of a pair, as of a disturbed one, are left out where others remain. The intervals
    of all pairs of runners hold together, with a chance of ERROR that any misses.
    """
    keys = [
        {(row["environment"], row["mode"]): row for row in place.to_dict("records")}
        for place in places
    ]
    runners = list(dict.fromkeys(runner for rows in keys for runner in rows))
    whole = [rows for rows in keys if len(rows) == len(runners)]
    both = list(combinations(runners, 2))
    if not whole or not both:
        return {}
    ratios_of = [{pair: _ratio(rows, pair, pairs) for pair in both} for rows in whole]
    clear = [ratios for ratios in ratios_of if all(ratio.error >= 0 for ratio in ratios.values())]
    means = {pair: mean_of([ratios[pair] for ratios in clear or ratios_of]) for pair in both}
    means |= {(other, one): mean.inverse for (one, other), mean in means.items()}
    first = leader(runners, lambda one, other: exp(means[one, other].log))
    count = len(clear or ratios_of)
    others = [runner for runner in runners if runner != first]
    if len(clear) == 1:
        # One pair has one interval and one word, wherever it is shown.
        rows = whole[ratios_of.index(clear[0])]
        found = {each: _of_pair(pairs[key(rows[each]), key(rows[first])]) for each in others}
    else:
        chance = ERROR / len(both)
        found = {each: _compared(means[each, first], chance, count, bool(clear)) for each in others}
    is_fastest = all(each.word == SLOWER for each in found.values())
    return {first: Overall(1.0, None, None, FASTEST if is_fastest else SHORTEST, count)} | found


def _ratio(
    rows: Mapping[Runner, pd.Series],
    pair: tuple[Runner, Runner],
    pairs: Mapping[tuple[str, str], Pair],
) -> Ratio:
    """Returns the ratio of two runners in a place; its error is -1 where nothing is known of it."""
    one, other = (rows[runner] for runner in pair)
    found = pairs.get((key(one), key(other)))
    ratio = found.with_error if found else None
    return ratio or Ratio(log(one["seconds"] / other["seconds"]), -1.0, 1.0)


def _of_pair(pair: Pair) -> Overall:
    return Overall(pair.ratio, pair.low, pair.high, pair.word, 1)


def _compared(mean: Ratio, chance: float, count: int, is_known: bool) -> Overall:
    if not is_known:
        return Overall(exp(mean.log), None, None, NOT_DECIDED, count)
    low, high = mean.within(chance)
    return Overall(exp(mean.log), low, high, word(low, high), count)
