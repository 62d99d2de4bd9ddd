"""Interim analyses of a watch: after how many pairs of processes it tests, and how likely each test may be wrong.

Who tests after every pair stops at lucky moments. So a watch tests three times, and each test may be wrong with a share
of the whole chance (`plan.interim`). That share is divided among the cells, which holds whatever they have in common.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from steptime.plan import interim
from steptime.statistics import intervals
from steptime.statistics.intervals import Ratio
from steptime.statistics.spreads import Spread, combined, priors, spread_of
from steptime.statistics.verdicts import EQUAL, ERROR, FASTER, SLOWER, chance_of_more, clearest

# After how many pairs, and the share of the chance that is spent then.
CHANCES = interim.chances([6, 12, 24])


class Against(NamedTuple):
    """What ratios are compared with: 1, or a ratio with an error of its own, such as half the way between two ends.

    `below` and `above` are the verdicts on a ratio that is shown to differ from it, and `meaning` says what they are
    worth. One chance to be wrong is shared by so many `watches`. `of` names the values of processes that are compared.
    """

    ratio: Ratio = Ratio(0.0, 0.0, 1.0)
    below: str = FASTER
    above: str = SLOWER
    watches: int = 1
    meaning: str = (
        "The chance that any of the differences is none is at most 5 % for all looks and cells together, and so is the "
        "chance that any of the equal cells differs by the margin or more, in its medians or its means."
    )
    of: Sequence[str] = ("medians", "means")


ONE = Against()


def ratios_of(logs: Mapping[Any, Sequence[float]], kinds: Mapping[Any, Any]) -> dict[Any, Ratio]:
    """Returns each cell's ratio from its pairs' logarithms; cells of the same kind help to estimate the variance."""
    own = {cell: spread_of(values) for cell, values in logs.items() if len(values) > 1}
    by_kind: dict[Any, list[Spread]] = {}
    for cell, spread in own.items():
        by_kind.setdefault(kinds[cell], []).append(spread)
    spreads = priors(by_kind)
    return {
        cell: intervals.ratio_of(logs[cell], combined(spread, spreads.get(kinds[cell])))
        for cell, spread in own.items()
    }


def allowed_chance(pairs: int, cells: int, against: Against = ONE) -> float:
    """Returns the chance with which the verdict on one of so many cells may be wrong after so many pairs."""
    return ERROR * CHANCES[pairs] / cells / against.watches


def decided(
    ratios: Mapping[Any, Sequence[Ratio]],
    margin: float,
    pairs: int,
    cells: int,
    against: Against = ONE,
) -> dict[Any, str]:
    """Returns the verdicts that are reached on so many `cells`: equal if medians and means are, else the clearest."""
    allowed = allowed_chance(pairs, cells, against)
    verdicts = {}
    for cell, own in ratios.items():
        apart = [intervals.difference(ratio, against.ratio) for ratio in own]
        ratio, chance = clearest(apart)
        if max(chance_of_more(each, margin) for each in apart) <= allowed:
            verdicts[cell] = EQUAL
        elif chance <= allowed:
            verdicts[cell] = against.above if ratio.log > 0 else against.below
    return verdicts
