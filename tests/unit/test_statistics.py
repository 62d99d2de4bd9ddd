"""The worker's own interval of the median against scipy's, which the worker cannot import."""

import random

import pytest
from scipy.stats import quantile_test

from shared.statistics import median, median_interval


@pytest.mark.parametrize("n", [6, 7, 8, 12, 25, 100, 1023, 2000])
def test_the_interval_is_scipys(n):
    values = [random.Random(n).lognormvariate(0, 1) for _ in range(n)]
    theirs = quantile_test(values, p=0.5).confidence_interval(0.95)
    assert median_interval(values) == (theirs.low, theirs.high)


def test_five_values_give_their_range():
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) == (1.0, 5.0)


def test_median():
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5
