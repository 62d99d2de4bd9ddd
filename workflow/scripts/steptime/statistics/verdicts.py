"""Faster, slower, equal or undecided: what ratios of times say, with a stated chance of a false word among them."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

from steptime.statistics.intervals import Ratio

FASTER, SLOWER, EQUAL, UNDECIDED = "faster", "slower", "equal", "undecided"
# The chance that any of the differences is none, and that any of the equal ones is not.
ERROR = 0.05


def verdicts(cells: Sequence[Sequence[Ratio]], margin: float) -> list[str]:
    """The verdict on each cell by its ratios, of medians and of means: equal where all are shown to lie within `margin`
    of 1, else slower or faster where any is shown not to be 1.

    Equality is shown by two one-sided tests: Schuirmann, "A comparison of the two one-sided tests procedure and the
    power approach", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987. All cells are paid for together, for
    differences and for equalities each: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6, 1979.
    """
    clear = [clearest(ratios) for ratios in cells]
    different = holm([chance for _, chance in clear])
    equal = holm([max(chance_of_more(each, margin) for each in ratios) for ratios in cells])
    sides = [SLOWER if ratio.log > 0 else FASTER for ratio, _ in clear]
    return [
        EQUAL if is_equal else side if is_different else UNDECIDED
        for side, is_equal, is_different in zip(sides, equal, different, strict=True)
    ]


def clearest(ratios: Sequence[Ratio]) -> tuple[Ratio, float]:
    """The ratio that differs from 1 most clearly, and how probable that would be if none of them did."""
    ratio = min(ratios, key=chance_of_none)
    return ratio, len(ratios) * chance_of_none(ratio)


def chance_of_none(ratio: Ratio) -> float:
    """How probable so large a difference would be if there were none (Student's t, both sides)."""
    return 2 * _beyond(abs(ratio.log), ratio)


def chance_of_more(ratio: Ratio, margin: float) -> float:
    """How probable so small a difference would be if it were as large as the margin: 1.02 or 1 / 1.02, of 0.02."""
    return _beyond(math.log1p(margin) - abs(ratio.log), ratio)


def holm(chances: Sequence[float]) -> list[bool]:
    """Which hypotheses fall when all of them may be wrongly rejected with a chance of ERROR together."""
    order = np.argsort(chances, kind="stable")
    fallen = [False] * len(chances)
    for rank, at in enumerate(order):
        if chances[at] > ERROR / (len(chances) - rank):
            break
        fallen[at] = True
    return fallen


def mean_of(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean of ratios of cells that were measured apart; these cells are meant, not others like them.

    Degrees of freedom by Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics
    Bulletin 2, 1946.
    """
    count = len(ratios)
    squares = [ratio.error**2 for ratio in ratios]
    total = math.fsum(squares)
    degrees = [square**2 / ratio.degrees for square, ratio in zip(squares, ratios, strict=True)]
    free = total**2 / math.fsum(degrees) if total else min(each.degrees for each in ratios)
    return Ratio(math.fsum(each.log for each in ratios) / count, math.sqrt(total) / count, free)


def _beyond(distance: float, ratio: Ratio) -> float:
    if ratio.error == 0:
        return 0.0 if distance > 0 else 0.5
    return float(stdtr(ratio.degrees, -distance / ratio.error))
