"""Intervals against processes whose true times are known: how often they call equal cells different."""

import numpy as np
import pytest

from steptime.statistics import intervals

TRIALS = 2000


def processes(random, repeats, drift):
    """Samples of `repeats` processes of a cell whose median is 1 s: each process has 5 % of its own, each sample 2 %, a
    sample shares a third with the one before it, and the machine itself drifts by `drift` (one factor for each repeat).
    """
    noise = random.standard_normal((repeats, 20))
    for at in range(1, 20):
        noise[:, at] = 0.3 * noise[:, at - 1] + np.sqrt(1 - 0.3**2) * noise[:, at]
    return np.exp(0.05 * random.standard_normal((repeats, 1)) + 0.02 * noise) * drift[:, None]


def called_different(repeats, interval):
    random = np.random.default_rng(repeats)
    count = 0
    for _ in range(TRIALS):
        drift = np.exp(0.3 * random.standard_normal(repeats))
        a, b = processes(random, repeats, drift), processes(random, repeats, drift)
        ratio = interval(*({n: np.median(row) for n, row in enumerate(cell)} for cell in (a, b)))
        _, low, high = ratio.interval
        count += not low <= 1 <= high
    return count / TRIALS


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_equal_cells_are_called_different_as_often_as_said(repeats):
    """Though processes differ by 5 %, and the machine by 30 % from trial to trial."""
    assert called_different(repeats, intervals.of_ratio) == pytest.approx(0.05, abs=0.015)


def test_a_real_difference_is_seen_through_the_drift():
    random = np.random.default_rng(1)
    drift = np.exp(0.3 * random.standard_normal(5))
    fast, slow = processes(random, 5, drift), 1.5 * processes(random, 5, drift)
    ours, theirs = ({n: np.median(row) for n, row in enumerate(cell)} for cell in (slow, fast))
    ratio, low, high = intervals.of_ratio(ours, theirs).interval
    assert low < 1.5 < high and low > 1.2
    assert ratio == pytest.approx(1.5, rel=0.1)


def test_only_repeats_that_both_have_are_compared():
    assert intervals.of_ratio({1: 2.0, 2: 3.0}, {2: 1.0, 3: 1.0}) is None
    ratio = intervals.of_ratio({1: 2.0, 2: 4.0, 3: 9.0}, {1: 1.0, 2: 2.0})
    assert ratio.interval == pytest.approx((2.0, 2.0, 2.0))
