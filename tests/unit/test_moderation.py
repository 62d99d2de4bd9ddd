"""Moderated variances against worked numbers, planted outliers, and grids whose true times are known."""

import sys
from pathlib import Path

import numpy as np
import pytest

from steptime.merge import moderation
from steptime.merge.moderation import Spread

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


def test_scale_and_degrees_are_those_of_limma():
    # squeezeVar(c(0.5, 1.3, 7.8), df=3) of limma 3.55: df.prior 2.830777, var.prior 1.676927.
    found = moderation.by_moments(np.array([0.5, 1.3, 7.8]), np.full(3, 3.0))
    assert found == pytest.approx((1.676927, 2.830777), abs=1e-6)


def drawn(count, seed=1):
    """Variances of 2 degrees of freedom, of processes whose own variances have scale 1 and 6 degrees of freedom."""
    random = np.random.default_rng(seed)
    return 6 / random.chisquare(6, count) * random.chisquare(2, count) / 2


def test_a_few_wild_cells_do_not_spoil_what_the_others_tell():
    usual = drawn(400)
    wild = np.concatenate([usual, np.full(20, 2000.0)])
    clean, robust = (
        moderation.expected([Spread(value, 2) for value in values]) for values in (usual, wild)
    )
    assert clean.variance == pytest.approx(1, rel=0.3) and clean.degrees == pytest.approx(
        6, rel=0.5
    )
    assert robust.variance == pytest.approx(clean.variance, rel=0.3)
    assert robust.degrees > 3
    assert moderation.by_moments(wild, np.full(420, 2.0))[1] < 3
    found = moderation.moderated([Spread(value, 2) for value in wild])
    # A wild cell keeps to itself, and the others gain degrees of freedom.
    assert found[-1].variance > 500 and found[-1].degrees < 4
    assert np.median([each.degrees for each in found]) > 5


def test_a_variance_is_drawn_to_the_others_and_known_by_no_more_than_all_know():
    own = [Spread(value, 2) for value in (0.001, 0.1, 1, 3, 30)]
    small, *_, large = moderation.moderated(own)
    assert 0.001 < small.variance < large.variance < 30
    assert 2 < small.degrees <= 10
    # Variances that differ by chance alone are one variance.
    alike = moderation.moderated([Spread(value, 2) for value in (0.5, 1, 1.1, 1.2, 2)])
    assert alike == [pytest.approx((1.16, 10), rel=1e-3)] * 5
    few = [Spread(1.0, 2), Spread(4.0, 2)]
    assert moderation.moderated(few) == few
    assert moderation.moderated([Spread(0.0, 2)] * 5) == [Spread(0.0, 2)] * 5


def test_variances_of_unequal_repeats_are_held_against_each_other_by_their_own_degrees():
    one = [Spread(value, 2) for value in drawn(50)]
    more = [Spread(value, 11) for value in 6 / np.random.default_rng(2).chisquare(6, 50)]
    for found in moderation.moderated(one + more):
        assert 0 < found.variance and 2 <= found.degrees


@pytest.mark.parametrize(
    "noise", ["cells differ", "cells differ, trials drift by 10 %", "heavy tails (Student, 3)"]
)
def test_equal_cells_are_seldom_called_different_by_narrower_intervals(noise):
    import intervals as simulation

    drawn = list(simulation.grids(simulation.NOISES[noise], 6, 3, 3, 60))
    (own, wide), (ours, narrow) = (
        zip(*(simulation.called_different(grid, how) for grid in drawn), strict=True)
        for how in (False, True)
    )
    assert np.mean(ours) < 0.075
    assert np.median(narrow) < 0.7 * np.median(wide)
