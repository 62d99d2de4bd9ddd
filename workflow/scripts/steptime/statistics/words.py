"""What all results of a run say together: how much processes differ, the table of pairs, and a word for each result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from steptime.plan.cell import PLACE, PLAIN
from steptime.statistics import intervals, ratios
from steptime.statistics.pairs import Pair, both_ways, key, pairs_of
from steptime.statistics.spreads import KIND, Prior, Spread, Spreads, priors, spread_of
from steptime.statistics.verdicts import EQUAL, NOT_DECIDED, SLOWER

__all__ = ["EQUAL", "FASTEST", "NOT_DECIDED", "SHORTEST", "SLOWER", "key"]

FASTEST, SHORTEST = "fastest", "shortest"
Runner = TypeVar("Runner")


class Statistics(NamedTuple):
    """What all results of a run say together.

    `times` and `ratios` say, by KIND, how much processes, and ratios of one trial, differ. `pairs` is the one table of
    what may be said of two results. `words` has the word of each result by its key: the word of its pair with the
    shortest time of its place. The shortest itself is FASTEST where all others are SLOWER, else SHORTEST.
    """

    times: Spreads
    ratios: Spreads
    words: dict[str, str]
    pairs: list[Pair] = []

    def to_json(self) -> dict[str, Any]:
        spreads = {
            name: [[list(kind), list(prior)] for kind, prior in getattr(self, name).items()]
            for name in ("times", "ratios")
        }
        return spreads | {"words": self.words, "pairs": [pair._asdict() for pair in self.pairs]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Statistics":
        times, of_ratios = (
            {tuple(kind): Prior(*prior) for kind, prior in content[name]}
            for name in ("times", "ratios")
        )
        pairs = [Pair(**pair) for pair in content["pairs"]]
        return cls(times, of_ratios, content["words"], pairs)


def spreads_of_times(cells: pd.DataFrame, of: str = "medians") -> Spreads:
    """Estimates how much the processes of a result differ, by KIND. `cells` have KIND, `status` and the column `of`."""
    own: dict[tuple[Any, ...], list[Spread]] = {}
    for row in cells[cells["status"] == "ok"].to_dict("records"):
        if len(row[of]) > 1:
            logs = intervals.logs_of(list(row[of].values()))
            own.setdefault(tuple(row[name] for name in KIND), []).append(spread_of(logs))
    return priors(own)


def estimate(cells: pd.DataFrame) -> Statistics:
    """Estimates what these results, rows of `merge.summary`, say together; results of mode PLAIN get no word."""
    spreads = ratios.spreads_of(cells)
    pairs = pairs_of(cells, spreads)
    words = words_of(cells[cells["mode"] != PLAIN], pairs)
    return Statistics(spreads_of_times(cells), spreads, words, pairs)


def words_of(cells: pd.DataFrame, pairs: Iterable[Pair]) -> dict[str, str]:
    """Returns the word of each timed result, by its key, where its place has two."""
    found = both_ways(pairs)
    word_of = {}
    for place in places(cells, found):
        shortest, *others = map(key, place.to_dict("records"))
        for other in others:
            word_of[other] = found[other, shortest].word
        if others:
            is_fastest = all(word_of[other] == SLOWER for other in others)
            word_of[shortest] = FASTEST if is_fastest else SHORTEST
    return word_of


def places(cells: pd.DataFrame, pairs: Mapping[tuple[str, str], Pair]) -> list[pd.DataFrame]:
    """Returns the timed results of each place, the one with the shortest time first.

    No other result takes less time than the shortest in the trials that both have: a result with more runs may have had
    them in slower trials.
    """
    ordered = ratios.timed(cells).sort_values("seconds", kind="stable")
    found = []
    for _, place in ordered.groupby(PLACE, sort=False, dropna=False):
        seconds = dict(zip(map(key, place.to_dict("records")), place["seconds"], strict=True))

        def ratio(one: str, other: str, seconds: dict[str, float] = seconds) -> float:
            pair = pairs.get((one, other))
            return pair.ratio if pair else seconds[one] / seconds[other]

        first = [*seconds].index(leader([*seconds], ratio))
        found.append(place.iloc[[first, *(at for at in range(len(place)) if at != first)]])
    return found


def leader(runners: Sequence[Runner], ratio: Callable[[Runner, Runner], float]) -> Runner:
    """Returns the runner that no other beats; where there is none, the one that is nearest to that."""

    def lead(one: Runner) -> float:
        return min((ratio(other, one) for other in runners if other != one), default=1.0)

    return max(runners, key=lead)
