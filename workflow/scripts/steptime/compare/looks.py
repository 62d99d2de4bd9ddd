"""When a watch looks at its pairs of processes, and what each look costs of the chance of a false word.

Whoever tests after every pair stops at lucky moments. So a watch looks three times, and each look may err with a part
of the whole chance (`plan.looks`). That is shared among the cells, which holds whatever they have in common.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from steptime.compare.verdicts import EQUAL, ERROR, FASTER, SLOWER, chance_of_more, chance_of_none
from steptime.merge import intervals, moderation
from steptime.merge.intervals import Ratio
from steptime.plan import looks

# After how many pairs, and the part of the chance that is spent then.
LOOKS = looks.parts([6, 12, 24])


def ratios_of(logs: Mapping[Any, Sequence[float]], kinds: Mapping[Any, Any]) -> dict[Any, Ratio]:
    """The ratio of each cell from the logarithms of its pairs' ratios; the variance is moderated by that of the other
    cells of its kind.
    """
    found = {}
    for kind in dict.fromkeys(kinds[cell] for cell in logs):
        alike = [cell for cell in logs if kinds[cell] == kind and len(logs[cell]) > 1]
        own = [moderation.spread_of(logs[cell]) for cell in alike]
        for cell, spread in zip(alike, moderation.moderated(own), strict=True):
            found[cell] = intervals.ratio_of(logs[cell], spread)
    return found


def decided(
    ratios: Mapping[Any, Ratio], margin: float, pairs: int, cells: int, error: float = ERROR
) -> dict[Any, str]:
    """The verdict on those cells that a look after `pairs` pairs decides, of a watch of so many `cells`."""
    allowed = error * LOOKS[pairs] / cells
    found = {}
    for cell, ratio in ratios.items():
        if chance_of_more(ratio, margin) <= allowed:
            found[cell] = EQUAL
        elif chance_of_none(ratio) <= allowed:
            found[cell] = SLOWER if ratio.log > 0 else FASTER
    return found
