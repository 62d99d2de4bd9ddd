"""The interval of a median, for the worker that must know when it has enough samples and for all who read them."""

from math import factorial

CONFIDENCE = 0.95


def median(values):
    """Median of a non-empty sequence."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values, confidence=CONFIDENCE):
    """Distribution-free confidence interval (low, high) of the median, from order statistics.

    The number of values below the median is binomial (n, 1/2), so the r-th smallest and r-th largest value enclose it
    with probability 1 - 2 P(X < r) (Conover, Practical Nonparametric Statistics, 1999, section 3.2). With fewer than 6
    values no such interval reaches 95 %: then smallest and largest are returned (5 values: 93.75 %).
    """
    ordered = sorted(values)
    n = len(ordered)
    rank, tail = 0, 0.0
    while rank < n // 2:
        tail += factorial(n) // (factorial(rank) * factorial(n - rank)) / 2.0**n
        if 2 * tail > 1 - confidence:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]
