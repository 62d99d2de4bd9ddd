"""Computes the interval of a median, for a worker that must know when it has enough samples, and for all readers."""

CONFIDENCE = 0.95
ENOUGH = 6  # the fewest values whose median has a distribution-free interval of 95 %
MILLION = 1000000


def median(values):
    """Returns the median of a non-empty sequence."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values, confidence=CONFIDENCE):
    """Returns the distribution-free confidence interval (low, high) of the median, from order statistics.

    The number of values below the median is binomial (n, 1/2), so the r-th smallest and r-th largest value enclose it
    with probability 1 - 2 P(X < r) (Conover, Practical Nonparametric Statistics, 1999, section 3.2). With fewer than
    ENOUGH values no such interval reaches 95 %: then smallest and largest are returned (5 values: 93.75 %).
    """
    ordered = sorted(values)
    n = len(ordered)
    # Integers, since 2 to the power of 1024 is no float. `ways` counts how `rank` values can be below the median.
    rank, ways, tail = 0, 1, 0
    outside = int(round((1 - confidence) * MILLION)) * 2**n
    while rank < n // 2:
        tail += ways
        if 2 * tail * MILLION > outside:
            break
        ways = ways * (n - rank) // (rank + 1)
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]
