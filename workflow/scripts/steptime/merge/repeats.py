"""Chooses the results that are measured further times: those of places where a comparison has a wide interval.

What is chosen follows from the rows of the trials before, so the same rows give the same cells: a run that was
interrupted goes on with them, and one that has ended asks for nothing more.
"""

import argparse
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from steptime.atomic import write_json
from steptime.merge import cells
from steptime.merge.summary import summarise
from steptime.plain import plural
from steptime.plan import interim, written
from steptime.plan.cell import IDENTITY, key_of, shard_path
from steptime.plan.grid import COMPARED, Plan
from steptime.say import say
from steptime.statistics import ratios, words
from steptime.statistics.intervals import Ratio
from steptime.supervisor import progress
from steptime.tasks import TASKS

# A result that takes at least so many times as long is no rival of the fastest, or is so slow that no hour hides it.
CLOSE, FAR = 1.1, 2


class Comparison(NamedTuple):
    """Two cells that are compared, by their labels, with their ratio; the second is the fastest of the place."""

    cell: Any
    fastest: Any
    ratio: Ratio

    def is_wide(self, until: float) -> bool:
        """Whether half of the interval is more than `until` and the result may be close to the fastest. Whether the
        interval holds 1 is not asked: who goes on by the answer errs more often.
        """
        return self.half > until and self.ratio.interval[1] < CLOSE

    @property
    def half(self) -> float:
        """Half of the interval of the logarithm."""
        _, low, high = self.ratio.interval
        return math.log(high / low) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description="Choose the cells that are measured again.")
    parser.add_argument("--plan", required=True, type=Path, help="that the run has written")
    parser.add_argument("--trial", required=True, type=int, help="the last trial that is added")
    parser.add_argument("--repeats", required=True, type=json.loads, help="until, budget_seconds")
    parser.add_argument("--platforms", nargs="*", default=[], help="that this run can measure")
    parser.add_argument("--added", nargs="*", default=[], type=Path, help="by earlier choices")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    plan = written.read(options.plan)
    before = interim.added(options.added)
    keys = [*plan.artefacts[COMPARED], *before]
    rows = cells.merge(keys, expected=plan.expected).to_pandas()
    summary = summarise(rows, planned=plan.looks)
    compared = list(comparisons(summary))
    wide = [each for each in compared if each.is_wide(options.repeats["until"])]
    here = [each for each in compared if summary.at[each.cell, "platform"] in options.platforms]
    took = seconds(rows, summary)
    labels = {words.key(row): at for at, row in summary.iterrows()}
    spent = sum(took[labels[interim.first_of(key)]] for key in before)
    last = max(trial for trial in plan.looks if trial < options.trial)
    trials = range(last + 1, options.trial + 1)
    chosen = choose(here, took, len(trials), options.repeats, spent)
    results = [summary.loc[label].to_dict() for label in chosen]
    added = [key_of(result | {"repeat": trial}) for result in results for trial in trials]
    # What another machine has measured by its own run.
    added += _at_hand(plan, trials, options.platforms)
    write_json(options.output, {"cells": sorted(added, key=list(plan.cells).index)})
    lasting = sum(took[at] for at in chosen) * len(trials)
    _tell(len(compared), len(wide), last, len(chosen), len(trials), lasting)
    new = [plan.cells[key] for key in added if not Path(shard_path(key)).exists()]
    progress.expect([cell.facts() for cell in new])


def comparisons(summary: pd.DataFrame) -> Iterator[Comparison]:
    """Each cell beside the fastest of its place, as `steptime_ratios` compares them, where both have two trials."""
    known = ratios.of_pairs(summary, ratios.spreads_of(summary))
    for place in words.places(summary):
        fastest = place.index[0]
        for at in place.index[1:]:
            if (at, fastest) in known:
                yield Comparison(at, fastest, known[at, fastest])


def choose(
    compared: Iterable[Comparison],
    took: dict[Any, float],
    trials: int,
    repeats: dict[str, float],
    spent: float,
) -> list[Any]:
    """The labels of results that so many further trials of fit into the rest of the budget, place by place.

    The place with the widest comparison comes first. Its results are measured together: what has its trials in a slower
    hour than the others looks slower. `took` is the seconds of one process of each cell, `spent` what earlier choices
    have cost.
    """
    of_place: dict[Any, list[Comparison]] = {}
    widest: dict[Any, float] = {}
    for each in compared:
        of_place.setdefault(each.fastest, []).append(each)
        if each.is_wide(repeats["until"]):
            widest[each.fastest] = max(each.half, widest.get(each.fastest, 0))
    chosen: list[Any] = []
    for fastest in sorted(widest, key=lambda at: -widest[at]):
        new = [fastest, *(each.cell for each in of_place[fastest] if each.ratio.interval[0] < FAR)]
        more = sum(took[at] for at in new) * trials
        if spent + more <= repeats["budget_seconds"]:
            chosen += new
            spent += more
    return chosen


def seconds(rows: pd.DataFrame, summary: pd.DataFrame) -> dict[Any, float]:
    """The mean seconds of the processes of each cell of `merge.summary`, by its label."""
    processes = rows.drop_duplicates([*IDENTITY, "repeat"])
    took = (processes["ended_at"] - processes["started_at"]).dt.total_seconds()
    means = took.groupby([words.key(row) for row in processes.to_dict("records")]).mean()
    return {at: means[words.key(row)] for at, row in summary.iterrows()}


def _at_hand(plan: Plan, trials: Iterable[int], here: list[str]) -> list[str]:
    return [
        key
        for key, cell in plan.cells.items()
        if TASKS[cell.task].is_compared and cell.repeat in trials and cell.platform not in here
        if Path(shard_path(key)).exists()
    ]


def _tell(compared: int, wide: int, last: int, count: int, trials: int, lasting: float) -> None:
    text = f"after {last} trials, {wide} of {plural(compared, 'comparison')} have a wide interval"
    if count:
        more = f"{plural(count, 'result')} of them get {trials} further runs each"
        text += f": {more} (about {progress.duration(lasting)})"
    elif wide:
        text += ", and no further run fits into the budget"
    if compared:
        say(text)


if __name__ == "__main__":
    main()
