"""The words for two results, and how probable what is seen would be if they were alike, or as far apart as a margin."""

import math
from collections.abc import Sequence

from scipy.special import stdtr

from steptime.statistics.intervals import Ratio

FASTER, SLOWER, EQUAL, NOT_DECIDED = "faster", "slower", "equal", "not decided"
# The chance that any word of a table is wrong.
ERROR = 0.05


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
