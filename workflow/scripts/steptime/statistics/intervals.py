"""Estimates with 95 % intervals: from one process, from several, and of the ratio of two cells.

Samples of one process share its memory layout, its threads' places and the moment at which it ran; they are not
independent draws of what a process costs. So processes are compared: the repeats of a result. How much they differ is
known from all results of a kind (`statistics.spreads`); without them, from the result's own repeats alone.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scipy.special import stdtrit

from shared.statistics import CONFIDENCE
from steptime.statistics.spreads import Spread, spread_of

Interval = tuple[float, float, float]  # estimate, low, high


class Ratio(NamedTuple):
    """The logarithm of a ratio, its standard error, and the degrees of freedom with which that error is known."""

    log: float
    error: float
    degrees: float

    @property
    def interval(self) -> Interval:
        return math.exp(self.log), *self.within(1 - CONFIDENCE)

    def within(self, chance: float) -> tuple[float, float]:
        """Returns the ends of an interval that misses the ratio with this chance."""
        half = -float(stdtrit(self.degrees, chance / 2)) * self.error
        return math.exp(self.log - half), math.exp(self.log + half)

    @property
    def inverse(self) -> "Ratio":
        return self._replace(log=-self.log)


def of_repeats(medians: Sequence[float], spread: Spread | None = None) -> Interval:
    """Estimates the time of a result, with an interval, from two processes or more, each given by its own median.

    The time is their geometric mean. The interval is Student's, of their logarithms, with one value for each process:
    Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007 (repeat processes,
    not samples); Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013 (repeat at the level where
    the numbers vary). Logarithms, since what slows a process multiplies its times, and since the interval of a ratio is
    then that of a difference. `spread` is that of one process (`statistics.spreads.combined`).
    """
    logs = logs_of(medians)
    return ratio_of(logs, spread or spread_of(logs)).interval


def of_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Ratio | None:
    """Returns the ratio ours / theirs of two cells, each a process's median by repeat; None below two common repeats.

    The same repeat is of the same trial: what slowed the machine slowed both, so each repeat gives one ratio. The
    estimate is their geometric mean, its interval Student's of logarithms.
    """
    logs = paired(ours, theirs)
    return ratio_of(logs, spread_of(logs)) if len(logs) > 1 else None


def ratio_of(logs: Sequence[float], spread: Spread) -> Ratio:
    """Returns a ratio from the logarithms of independent measurements and their spread."""
    variance, degrees = spread
    return Ratio(math.fsum(logs) / len(logs), math.sqrt(variance / len(logs)), degrees)


def difference(one: Ratio, other: Ratio) -> Ratio:
    """Returns one / other of two ratios that were measured independently: Welch, "The generalization of 'Student's'
    problem when several different population variances are involved", Biometrika 34, 1947.
    """
    squares = one.error**2, other.error**2
    parts = squares[0] ** 2 / one.degrees + squares[1] ** 2 / other.degrees
    degrees = sum(squares) ** 2 / parts if parts else one.degrees + other.degrees
    return Ratio(one.log - other.log, math.sqrt(sum(squares)), degrees)


def logs_of(medians: Sequence[float]) -> list[float]:
    return [math.log(value) for value in medians]


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Returns the logarithm of ours / theirs of each repeat that both have."""
    return [math.log(ours[repeat] / theirs[repeat]) for repeat in ours if repeat in theirs]
