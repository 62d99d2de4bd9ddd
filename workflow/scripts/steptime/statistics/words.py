"""What may be said of the results of a run: fastest, slower, tied or not known, at one error rate over all of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from steptime.plan.cell import IDENTITY, PLACE, PLAIN, key_of
from steptime.statistics import intervals, ratios
from steptime.statistics.spreads import KIND, Prior, Spread, Spreads, priors, spread_of
from steptime.statistics.verdicts import chance_of_none, holm

FASTEST, TIED, SLOWER, UNKNOWN = "fastest", "tied", "slower", "not known"


class Statistics(NamedTuple):
    """What all results of a run say together.

    `times` and `ratios` say by KIND how much processes, and ratios of one trial, differ. `words` gives the word of
    each result by its key: FASTEST where every other of its place is SLOWER; TIED where it is not told apart from the
    one with the shortest time; UNKNOWN where a process of either is missing. The chance of any wrong SLOWER among all
    of them is 5 % at most.
    """

    times: Spreads
    ratios: Spreads
    words: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        spreads = {
            name: [[list(kind), list(prior)] for kind, prior in getattr(self, name).items()]
            for name in ("times", "ratios")
        }
        return spreads | {"words": self.words}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Statistics":
        times, of_ratios = (
            {tuple(kind): Prior(*prior) for kind, prior in content[name]}
            for name in ("times", "ratios")
        )
        return cls(times, of_ratios, content["words"])


def spreads_of_times(cells: pd.DataFrame, of: str = "medians") -> Spreads:
    """Estimate how much the processes of a result differ, by KIND. `cells` have KIND, `status` and the column `of`."""
    own: dict[tuple[Any, ...], list[Spread]] = {}
    for row in cells[cells["status"] == "ok"].to_dict("records"):
        if len(row[of]) > 1:
            logs = intervals.logs_of(list(row[of].values()))
            own.setdefault(tuple(row[name] for name in KIND), []).append(spread_of(logs))
    return priors(own)


def estimate(cells: pd.DataFrame) -> Statistics:
    """What these results, rows of `merge.summary`, say together; those of the mode PLAIN get no word."""
    spreads, tuned = ratios.spreads_of(cells), cells[cells["mode"] != PLAIN]
    word_of = words(tuned, ratios.of_pairs(tuned, spreads))
    return Statistics(
        spreads_of_times(cells), spreads, {key(cells.loc[at]): word for at, word in word_of.items()}
    )


def words(cells: pd.DataFrame, pairs: Mapping[ratios.Pair, intervals.Ratio]) -> dict[Any, str]:
    """The word of each timed result, by its label, where its place has two; all comparisons are paid for together."""
    word_of: dict[Any, str] = {}
    compared: list[tuple[Any, Any]] = []
    of_places = [place.index for place in places(cells)]
    for fastest, *others in of_places:
        if others:
            compared += [(at, fastest) for at in others if (at, fastest) in pairs]
            word_of |= {at: UNKNOWN if (at, fastest) not in pairs else TIED for at in others}
            word_of[fastest] = ""
    chances = [chance_of_none(pairs[pair]) for pair in compared]
    for (at, _), is_slower in zip(compared, holm(chances), strict=True):
        word_of[at] = SLOWER if is_slower else TIED
    for fastest, *others in of_places:
        seen = {word_of[at] for at in others}
        if seen:
            word_of[fastest] = UNKNOWN if UNKNOWN in seen else TIED if TIED in seen else FASTEST
    return word_of


def places(cells: pd.DataFrame) -> list[pd.DataFrame]:
    """The timed results of each place, the one with the shortest time first."""
    ordered = ratios.timed(cells).sort_values("seconds", kind="stable")
    return [place for _, place in ordered.groupby(PLACE, sort=False, dropna=False)]


def key(cell: Mapping[str, Any] | pd.Series) -> str:
    """The key of a result: that of its first repeat."""
    return key_of({name: cell[name] for name in IDENTITY} | {"repeat": 1})
