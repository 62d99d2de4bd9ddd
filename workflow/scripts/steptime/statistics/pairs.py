"""One table of the pairs of results that may be compared: of each its ratio, an interval, and one word.

The word follows from the interval that is printed, and from nothing else. The intervals of a table hold together: the
chance that any of them misses the true ratio is ERROR at most (Bonferroni), and so is the chance that any word is
wrong. SLOWER has an interval without 1. EQUAL has one within MARGIN of 1, which is the same as two one-sided tests:
Schuirmann, "A comparison of the two one-sided tests procedure and the power approach", Journal of Pharmacokinetics and
Biopharmaceutics 15, 1987. All else is NOT_DECIDED.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from steptime.plan.cell import IDENTITY, PLAIN, key_of
from steptime.statistics.intervals import Ratio, ratio_of
from steptime.statistics.ratios import in_trials, timed
from steptime.statistics.spreads import KIND, Prior, Spreads, combined, is_odd, spread_of
from steptime.statistics.verdicts import EQUAL, ERROR, FASTER, NOT_DECIDED, SLOWER

# What may differ between two results that are called equal.
MARGIN = 0.05
# More further runs than this are no advice.
MOST_RUNS = 50


class Pair(NamedTuple):
    """Two results of a place by their keys: the time of `one`, the longer, divided by that of the `other`.

    `error` and `degrees` are those of the logarithm of the ratio. They are None where the runs decide nothing, as `low`
    and `high` are: fewer than two common ones are undisturbed, or the two differ far more than those of other pairs.
    """

    one: str
    other: str
    ratio: float
    low: float | None
    high: float | None
    word: str
    runs: int
    error: float | None
    degrees: float | None

    @property
    def is_decided(self) -> bool:
        return self.word != NOT_DECIDED

    @property
    def inverse(self) -> "Pair":
        """Returns the same pair, seen from the other side."""
        low, high = (end and 1 / end for end in (self.high, self.low))
        word = {SLOWER: FASTER, FASTER: SLOWER}.get(self.word, self.word)
        return self._replace(
            one=self.other, other=self.one, ratio=1 / self.ratio, low=low, high=high, word=word
        )

    @property
    def with_error(self) -> Ratio | None:
        """Returns the ratio with its error; None where nothing is known of it."""
        if self.error is None or self.degrees is None:
            return None
        return Ratio(math.log(self.ratio), self.error, self.degrees)


def pairs_of(cells: pd.DataFrame, spreads: Spreads) -> list[Pair]:
    """Compares each two timed results of a place, rows of `merge.summary`.

    Those of one KIND are one table, in which intervals hold together; results of the mode PLAIN are another one.
    `spreads` are those of `ratios.spreads_of`.
    """
    pairs: list[Pair] = []
    ordered = timed(cells)
    for (*kind, _), alike in ordered.groupby([*KIND, ordered["mode"] == PLAIN], sort=False):
        means = dict(in_trials(alike, "means")) if alike["means"].notna().all() else {}
        prior = spreads.get(tuple(kind))
        ratios = {
            both: (_judged(logs, means.get(both, logs), prior), len(logs))
            for both, logs in in_trials(alike)
        }
        # Who measures until a pair is decided has more chances to be wrong: half of the error is kept for that.
        goes_on = "looks" in alike and any(bool(looks) for looks in alike["looks"])
        chance = ERROR / max(len(ratios), 1) / (2 if goes_on else 1)
        keys = {at: key(row) for at, row in zip(alike.index, alike.to_dict("records"), strict=True)}
        for (one, other), (ratio, runs) in ratios.items():
            seen: tuple[Any, ...] = (alike.at[one, "seconds"] / alike.at[other, "seconds"],)
            seen += (None, None, NOT_DECIDED, runs, None, None)
            if ratio:
                low, high = ratio.within(chance)
                seen = math.exp(ratio.log), low, high, word(low, high), runs, *ratio[1:]
            pair = Pair(keys[one], keys[other], *seen)
            pairs.append(pair if pair.ratio >= 1 else pair.inverse)
    return pairs


def both_ways(pairs: Iterable[Pair]) -> dict[tuple[str, str], Pair]:
    """Finds a pair by the keys of its results, in either order."""
    found: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        found |= {(pair.one, pair.other): pair, (pair.other, pair.one): pair.inverse}
    return found


def word(low: float | None, high: float | None, margin: float = MARGIN) -> str:
    """Says what an interval of a ratio shows; what is shown to be within the margin is EQUAL first."""
    if low is None or high is None or math.isnan(low):
        return NOT_DECIDED
    if low > 1 / (1 + margin) and high < 1 + margin:
        return EQUAL
    return SLOWER if low > 1 else FASTER if high < 1 else NOT_DECIDED


def further_runs(pair: Pair, margin: float = MARGIN) -> int | None:
    """Estimates how many more runs of both results would decide a pair, if their ratio is what it seems to be.

    An interval narrows with the square root of the runs. None where nothing is known, or MOST_RUNS are too few.
    """
    if pair.is_decided:
        return 0
    if pair.low is None or pair.high is None:
        return None
    half, log = math.log(pair.high / pair.low) / 2, abs(math.log(pair.ratio))
    # To leave 1 out, or to fit into the margin.
    room = max(log, math.log1p(margin) - log)
    more = math.ceil(pair.runs * ((half / room) ** 2 - 1)) if room else MOST_RUNS + 1
    return max(more, 1) if more <= MOST_RUNS else None


def seconds_to_decide(pairs: Iterable[Pair], seconds: Mapping[str, float]) -> tuple[int, float]:
    """Estimates how many of the open pairs further runs would decide, and what these take.

    `seconds` has those of one run of each result, by key. A run counts once for all pairs of its result.
    """
    runs: dict[str, int] = {}
    decidable = [(pair, more) for pair in pairs if (more := further_runs(pair))]
    for pair, more in decidable:
        for name in (pair.one, pair.other):
            runs[name] = max(more, runs.get(name, 0))
    took = math.fsum(count * seconds.get(name, 0.0) for name, count in runs.items())
    return len(decidable), took


def key(cell: Mapping[str, Any] | pd.Series) -> str:
    """Returns the key of a result: that of its first repeat."""
    return key_of({name: cell[name] for name in IDENTITY} | {"repeat": 1})


def _judged(logs: Sequence[float], means: Sequence[float], prior: Prior | None) -> Ratio | None:
    """Returns the ratio from its logarithm in each trial, of medians or of means; None where they say nothing.

    Means count where they say something else than the medians: then some steps take far longer. Where trials differ far
    more than those of other pairs, the others say nothing of this one, and it is judged by itself.
    """
    if len(logs) < 2:
        return None
    if abs(math.fsum(means) - math.fsum(logs)) > len(logs) * math.log1p(MARGIN):
        logs = means
    own = spread_of(logs)
    if not is_odd(own, prior):
        return ratio_of(logs, combined(own, prior))
    return ratio_of(logs, own) if len(logs) > 2 else None
