"""Chooses the results to measure once more: those of comparisons that are not decided, while minutes are left.

The choice is written down: a run that was interrupted goes on with it, and one that has ended asks for nothing more
unless it is given more minutes.
"""

import argparse
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pandas as pd

from steptime import run
from steptime.atomic import write_json
from steptime.merge import cells
from steptime.merge.summary import summarise
from steptime.plain import plural
from steptime.plan import interim, written
from steptime.plan.cell import IDENTITY, key_of, shard_path
from steptime.plan.grid import COMPARED, Plan
from steptime.run import progress
from steptime.say import say
from steptime.statistics import words
from steptime.statistics.pairs import MOST_RUNS, Pair, further_runs, key
from steptime.tasks import TASKS

# Seconds that the tables and the report take after the last run, and those of a run besides its worker's.
TAIL, AROUND = 20.0, 1.0
# Why no result gets a further run.
NO_MINUTES = "no further run fits into the minutes of this run"
NO_RUNS = f"{MOST_RUNS} more runs of each would not decide them"


def main() -> None:
    parser = argparse.ArgumentParser(description="Choose the cells that are measured again.")
    parser.add_argument("--plan", required=True, type=Path, help="that the run has written")
    parser.add_argument("--trial", required=True, type=int, help="the trial that is added")
    parser.add_argument("--platforms", nargs="*", default=[], help="that this run can measure")
    parser.add_argument("--added", nargs="*", default=[], type=Path, help="by earlier choices")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    plan, facts = written.read(options.plan), run.facts()
    keys = [*plan.artefacts[COMPARED], *interim.added(options.added)]
    rows = cells.merge(keys, expected=plan.expected).to_pandas()
    summary = summarise(rows, planned=plan.looks)
    results = {key(row): row for row in summary.to_dict("records")}
    compared = words.estimate(summary).pairs
    still_open = [pair for pair in compared if not pair.is_decided]
    here = [pair for pair in still_open if results[pair.one]["platform"] in options.platforms]
    next_run = {name: key_of(row | {"repeat": options.trial}) for name, row in results.items()}
    there = {name for name in results if Path(shard_path(next_run[name])).exists()}
    costs = seconds(rows) | dict.fromkeys(there, 0.0)
    hopeful = decidable(here)
    chosen = choose(hopeful, costs, (facts["deadline"] or 0.0) - time.time() - TAIL)
    # What another machine has measured by its own run.
    added = [next_run[name] for name in chosen] + _at_hand(plan, options.trial, options.platforms)
    in_order = sorted(added, key=list(plan.cells).index)
    write_json(options.output, {"cells": in_order, "minutes": facts["minutes"]})
    lasting = sum(costs[name] for name in chosen)
    # Nothing is said of another machine's pairs.
    why_none = (NO_MINUTES if hopeful else NO_RUNS) if here else ""
    _tell(len(compared), len(still_open), options.trial - 1, len(chosen), lasting, why_none)
    new = [plan.cells[name] for name in added if not Path(shard_path(name)).exists()]
    progress.expect([cell.facts() for cell in new])
    if not added:
        run.begin(**run.facts() | {"deadline": None})


def decidable(pairs: Iterable[Pair]) -> dict[Pair, int]:
    """Returns the pairs that MOST_RUNS more runs may decide, with how many may be needed."""
    # One run, where all that is known was disturbed.
    needed = {pair: further_runs(pair) if pair.low is not None else 1 for pair in pairs}
    return {pair: runs for pair, runs in needed.items() if runs is not None}


def choose(hopeful: Mapping[Pair, int], costs: Mapping[str, float], left: float) -> list[str]:
    """Lists the results whose next run fits into the seconds that are `left`; pairs that need the fewest runs come
    first.

    Both results of a pair are measured together: a result whose runs come in a slower hour than another's looks slower.
    `hopeful` are pairs with the runs that each needs, `costs` the seconds of one run of each result.
    """
    chosen: dict[str, None] = {}
    for pair in sorted(hopeful, key=lambda pair: hopeful[pair]):
        new = [name for name in (pair.one, pair.other) if name not in chosen]
        more = sum(costs[name] for name in new)
        if more <= left:
            chosen.update(dict.fromkeys(new))
            left -= more
    return list(chosen)


def seconds(rows: pd.DataFrame) -> dict[str, float]:
    """Returns the seconds of the last process of each result, by its key: the first process proves more."""
    processes = rows.drop_duplicates([*IDENTITY, "repeat"]).sort_values("repeat")
    took = (processes["ended_at"] - processes["started_at"]).dt.total_seconds() + AROUND
    keys = [key(row) for row in processes.to_dict("records")]
    return dict(zip(keys, took, strict=True))


def _at_hand(plan: Plan, trial: int, here: Collection[str]) -> list[str]:
    return [
        key
        for key, cell in plan.cells.items()
        if TASKS[cell.task].is_compared and cell.repeat == trial and cell.platform not in here
        if Path(shard_path(key)).exists()
    ]


def _tell(
    compared: int, open_pairs: int, last: int, count: int, lasting: float, why_none: str
) -> None:
    are = "is" if open_pairs == 1 else "are"
    text = f"after {last} trials, {open_pairs} of {plural(compared, 'pair')} {are} not decided"
    if count:
        text += f": {plural(count, 'result')} of them get another run (about {progress.duration(lasting)})"
    elif why_none:
        text += f", and {why_none}"
    if compared:
        say(text)


if __name__ == "__main__":
    main()
