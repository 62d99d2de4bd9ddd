"""Chooses the results that are measured once more: those of comparisons that are not decided, while minutes are left.

What was chosen is written down: a run that was interrupted goes on with it, and one that has ended asks for nothing
more unless it is given more minutes.
"""

import argparse
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from steptime import run
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

# Half of an interval below which a ratio is known well enough, and a ratio above which a result is no rival.
UNTIL, CLOSE = 0.03, 1.1
# Seconds that the tables and the report take after the last run, and those of a run besides its worker's.
TAIL, AROUND = 20.0, 1.0


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
    parser.add_argument("--trial", required=True, type=int, help="the trial that is added")
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
    wide = [each for each in compared if each.is_wide(UNTIL)]
    here = [each for each in wide if summary.at[each.cell, "platform"] in options.platforms]
    keys_of = {
        at: key_of(row | {"repeat": options.trial}) for at, row in summary.to_dict("index").items()
    }
    costs = {
        at: 0.0 if Path(shard_path(keys_of[at])).exists() else took
        for at, took in seconds(rows, summary).items()
    }
    facts = run.facts()
    left = (facts["deadline"] or 0.0) - time.time() - TAIL
    chosen = choose(here, costs, left)
    # What another machine has measured by its own run.
    added = [keys_of[at] for at in chosen] + _at_hand(plan, options.trial, options.platforms)
    chosen_cells = sorted(added, key=list(plan.cells).index)
    write_json(options.output, {"cells": chosen_cells, "minutes": facts["minutes"]})
    lasting = sum(costs[at] for at in chosen)
    _tell(len(compared), len(wide), options.trial - 1, len(chosen), lasting)
    new = [plan.cells[key] for key in added if not Path(shard_path(key)).exists()]
    progress.expect([cell.facts() for cell in new])
    if not added:
        run.begin(**run.facts() | {"deadline": None})


def comparisons(summary: pd.DataFrame) -> Iterator[Comparison]:
    """Each cell beside the fastest of its place, as `steptime_ratios` compares them, where both have two trials."""
    known = ratios.of_pairs(summary, ratios.spreads_of(summary))
    for place in words.places(summary):
        fastest = place.index[0]
        for at in place.index[1:]:
            if (at, fastest) in known:
                yield Comparison(at, fastest, known[at, fastest])


def choose(wide: Iterable[Comparison], costs: Mapping[Any, float], left: float) -> list[Any]:
    """The labels of results whose next run fits into the seconds that are `left`, those of the widest comparison first.

    Both results of a comparison are measured together: whoever has its runs in a slower hour than another looks slower.
    `costs` are the seconds of one run of each result.
    """
    chosen: dict[Any, None] = {}
    for each in sorted(wide, key=lambda each: -each.half):
        new = [at for at in (each.fastest, each.cell) if at not in chosen]
        more = sum(costs[at] for at in new)
        if more <= left:
            chosen.update(dict.fromkeys(new))
            left -= more
    return list(chosen)


def seconds(rows: pd.DataFrame, summary: pd.DataFrame) -> dict[Any, float]:
    """The seconds of the last process of each result of `merge.summary`, by its label: the first one proves more."""
    processes = rows.drop_duplicates([*IDENTITY, "repeat"]).sort_values("repeat")
    took = (processes["ended_at"] - processes["started_at"]).dt.total_seconds() + AROUND
    keys = [words.key(row) for row in processes.to_dict("records")]
    last = dict(zip(keys, took, strict=True))
    return {at: last[words.key(row)] for at, row in summary.iterrows()}


def _at_hand(plan: Plan, trial: int, here: Collection[str]) -> list[str]:
    return [
        key
        for key, cell in plan.cells.items()
        if TASKS[cell.task].is_compared and cell.repeat == trial and cell.platform not in here
        if Path(shard_path(key)).exists()
    ]


def _tell(compared: int, wide: int, last: int, count: int, lasting: float) -> None:
    text = f"after {last} trials, {wide} of {plural(compared, 'comparison')} are not decided"
    if count:
        text += f": {plural(count, 'result')} of them get another run (about {progress.duration(lasting)})"
    elif wide:
        text += ", and no further run fits into the minutes of this run"
    if compared:
        say(text)


if __name__ == "__main__":
    main()
