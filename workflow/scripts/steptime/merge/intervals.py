"""Estimates and their 95 % intervals, from one process, from several, and of the ratio of two cells.

Samples of one process share its memory layout, its threads' places and the moment at which it ran; they are not
independent draws of what a process costs. So what is compared are processes: the repeats of a cell.
"""

import math
from collections.abc import Mapping, Sequence

from scipy.special import stdtrit

from worker.statistics import CONFIDENCE, median, median_interval

Interval = tuple[float, float, float]  # estimate, low, high


def of_process(samples: Sequence[float]) -> Interval:
    """The median of one process's samples with its distribution-free interval: it knows nothing of other processes."""
    return (median(samples), *median_interval(samples))


def of_repeats(medians: Sequence[float]) -> Interval:
    """The median over at least two processes of a cell, each given by its own median, and its interval.

    The interval is Student's, of the mean of their logarithms, with one value for each process: Georges, Buytaert and
    Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007 (processes, not samples,
    are what is repeated); Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013 (repeat at the
    level where the numbers vary). Logarithms, since what slows a process multiplies its times, and since the interval
    of a ratio then is that of a difference. It is widened to hold the median where that lies outside.
    """
    return _around(median(medians), medians)


def of_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Interval | None:
    """The ratio ours / theirs of two cells, each a process's median by repeat, and its interval; None below two repeats
    that both have.

    The same repeat of both was measured in the same trial, side by side, so each repeat gives one ratio: what slowed
    the machine during a trial slowed both. The estimate is the ratios' geometric mean, the interval Student's of their
    logarithms.
    """
    ratios = [ours[repeat] / theirs[repeat] for repeat in ours if repeat in theirs]
    if len(ratios) < 2:
        return None
    return _around(math.exp(math.fsum(map(math.log, ratios)) / len(ratios)), ratios)


def _around(estimate: float, values: Sequence[float]) -> Interval:
    logs = [math.log(value) for value in values]
    n = len(logs)
    middle = math.fsum(logs) / n
    deviation = math.sqrt(math.fsum((value - middle) ** 2 for value in logs) / (n - 1))
    half = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * deviation / math.sqrt(n)
    return estimate, min(math.exp(middle - half), estimate), max(math.exp(middle + half), estimate)
