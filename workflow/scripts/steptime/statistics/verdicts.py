"""The words for a pair of results, and how probable its difference is if both are alike, or a margin apart."""

import math
from collections.abc import Sequence

from scipy.special import stdtr

from steptime.statistics.intervals import Ratio

FASTER, SLOWER, EQUAL, NOT_DECIDED = "faster", "slower", "equal", "not decided"
# The chance that any word of a table is wrong.
ERROR = 0.05
# The least degrees of freedom of a ratio in a mean.
LEAST_DEGREES = 5.0


def clearest(ratios: Sequence[Ratio]) -> tuple[Ratio, float]:
    """Returns the ratio that differs from 1 most clearly, and how probable that would be if none of them did."""
    ratio = min(ratios, key=chance_of_none)
    return ratio, len(ratios) * chance_of_none(ratio)


def chance_of_none(ratio: Ratio) -> float:
    """Returns how probable so large a difference would be if there were none (Student's t, both sides)."""
    return 2 * _beyond(abs(ratio.log), ratio)


def chance_of_more(ratio: Ratio, margin: float) -> float:
    """Returns how probable so small a difference would be if it were the margin: 1.02 or 1 / 1.02 for 0.02."""
    return _beyond(math.log1p(margin) - abs(ratio.log), ratio)


def mean_of(ratios: Sequence[Ratio]) -> Ratio:
    """Returns the geometric mean of ratios of cells that were measured independently: of these cells, and not of
    others.

    Each is a draw of Student's t around the measured value, so the variance of the mean is that of the draws and not of
    their scales. Its degrees of freedom are those of a t with the same kurtosis: Patil, "Approximation to the
    Behrens-Fisher distributions", Biometrika 52, 1965, for any number of ratios. Below five degrees a t has no
    kurtosis: there they count as five.
    """
    degrees = [max(ratio.degrees, LEAST_DEGREES) for ratio in ratios]
    parts = [
        ratio.error**2 * free / (free - 2) for ratio, free in zip(ratios, degrees, strict=True)
    ]
    count, total = len(ratios), math.fsum(parts)
    log = math.fsum(each.log for each in ratios) / count
    if not total:
        return Ratio(log, 0.0, min(each.degrees for each in ratios))
    excess = math.fsum(part**2 / (free - 4) for part, free in zip(parts, degrees, strict=True))
    free = 4 + total**2 / excess
    return Ratio(log, math.sqrt(total * (free - 2) / free) / count, free)


def _beyond(distance: float, ratio: Ratio) -> float:
    if ratio.error == 0:
        return 0.0 if distance > 0 else 0.5
    return float(stdtr(ratio.degrees, -distance / ratio.error))
