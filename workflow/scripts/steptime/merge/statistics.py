"""Estimates from all results of a run how much their processes differ, and what may be said of each two.

Every table and figure reads the same file, so that a result has one interval, and a pair one word, everywhere.
"""

import argparse
from pathlib import Path

from steptime.atomic import write_json
from steptime.cells import footers
from steptime.merge.cells import merge
from steptime.merge.summary import summarise
from steptime.plan import written
from steptime.plan.grid import Plan
from steptime.statistics import words


def main() -> None:
    parser = argparse.ArgumentParser(prog="merge.statistics", description=__doc__.splitlines()[0])
    parser.add_argument("--plan", required=True, type=Path, help="that the run has written")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    estimates = estimated(written.read(options.plan))
    write_json(options.output, estimates.to_json())


def estimated(plan: Plan) -> words.Statistics:
    """Estimates what the timed steps of a plan that are here say together. Raises ShardError and MixedRowsError."""
    steps = [key for key, cell in plan.cells.items() if cell.task == "step"]
    keys = [key for key in steps if footers.are_as_asked(key, plan.expected)]
    if not keys:
        return words.Statistics({}, {}, {})
    return words.estimate(summarise(merge(keys).to_pandas(), planned=plan.looks))


if __name__ == "__main__":
    main()
