"""Holds two things that were measured against each other, cell by cell, and says first what came of it.

    workflow/scripts/launch compare.results torch-1.4 torch         two environments of the results here
    workflow/scripts/launch compare.results before.tar.gz results   two packs, or folders of results
    workflow/scripts/launch compare.results before.tar.gz:torch torch

A framework is its first environment. Two platforms, and two modes as tensorflow-2.12.graph and tensorflow-2.12.xla, go
as well. The exit status is 0 where the second is shown to be slower in no cell, 1 where it is slower in some, and 2
where that cannot be told.
"""

import argparse
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from steptime import project, run
from steptime.cells import pack, shard
from steptime.cells.mixed import MixedRowsError
from steptime.compare import caveats, names, words
from steptime.compare.sides import CompareError, Side, beside, opened
from steptime.plan import configuration
from steptime.plan.cell import PLACE
from steptime.render import tables
from steptime.statistics import intervals, ratios
from steptime.statistics.intervals import Ratio
from steptime.statistics.spreads import KIND, known, spread_of
from steptime.statistics.verdicts import EQUAL, FASTER, SLOWER, UNDECIDED, verdicts
from steptime.statistics.words import SLOWER as FOUND_SLOWER
from steptime.statistics.words import TIED, Spreads

NO_SLOWDOWN, SLOWDOWN, CANNOT_TELL = 0, 1, 2
MARGIN = 0.02
COLUMNS = ["network", "variant", "batch", "threads", "device", "devices", "precision"]
# What a row has of either side.
SIDES = ["platform", "environment", "mode", "status", "reason", "seconds", "low", "high"]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Compare two things that were measured.")
    parser.add_argument("one", help="the base: a pack, a folder, an environment, mode or platform")
    parser.add_argument("other", help="what is compared with it")
    parser.add_argument("--margin", type=float, default=MARGIN, help="what counts as equal, 0.02")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where names are of")
    parser.add_argument("--platforms", help="your own file of platforms")
    parser.add_argument("--output", type=Path, help="path of the files to write, without ending")
    parser.add_argument("--answer", action="store_true", help="end with 0 whatever the answer is")
    options = parser.parse_args()
    try:
        found = compare(options)
        sys.exit(NO_SLOWDOWN if options.answer else found)
    except (
        CompareError,
        MixedRowsError,
        OSError,
        configuration.ConfigurationError,
        pack.PackError,
        shard.ShardError,
        tarfile.TarError,
    ) as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT_TELL)


def compare(options: argparse.Namespace) -> int:
    """Writes the comparison and prints its answer; the exit status. Raises CompareError and what reading raises."""
    if not 0 < options.margin < 1:
        raise CompareError(f"The margin {options.margin} is no share: write 0.02 for 2 %.")
    chosen = {"platforms": options.platforms} if options.platforms else {}
    run.TOLD.update(platforms=configuration.platforms(project.ROOT, chosen))
    prefix = options.output or Path("results/compare") / names.pair(options.one, options.other)
    with opened(options.one, options.other, options.results) as (one, other):
        pairs = beside(one, other)
        caveats.refuse(one, other, pairs)
        data = table(one, other, pairs, options.margin)
        told, in_turn = caveats.told(one, other, pairs), caveats.in_turn(one, other, pairs)
    answer = words.answer(one.name, other.name, data, options.margin, in_turn)
    page = words.page(answer, one.name, other.name, told, options.margin)
    layout = words.layout(data, one.name, other.name)
    tables.write(prefix, data.drop(columns="known"), layout, page)
    print(words.terminal(answer, told, data, one.name, other.name))
    print(
        f"Whole table, for a pull request or a browser: {prefix}.md, {prefix}.html, {prefix}.parquet"
    )
    return status(data)


def table(one: Side, other: Side, pairs: list[tuple[Any, Any]], margin: float) -> pd.DataFrame:
    """A row for each cell that both have: times, intervals and marks of both sides, their ratio (other / one), its
    interval and the verdict; `known` is the Ratio, None where it has no interval.
    """
    found = (
        _paired(one, other, pairs) if one.results is other.results else _apart(one, other, pairs)
    )
    rows = []
    for (at, label), ratio in zip(pairs, found, strict=True):
        base, new = one.results.cells.loc[at], other.results.cells.loc[label]
        row: dict[str, Any] = {column: base[column] for column in COLUMNS}
        for side, cell in (("one", base), ("other", new)):
            row |= {f"{side}_{name}": cell[name] for name in SIDES}
            row[f"{side}_marks"] = ", ".join(cell["marks"])
        timed = pd.notna(base["seconds"]) and pd.notna(new["seconds"])
        row["ratio"] = new["seconds"] / base["seconds"] if timed else None
        row |= {"ratio_low": None, "ratio_high": None, "known": ratio}
        if ratio:
            row["ratio"], row["ratio_low"], row["ratio_high"] = ratio.interval
        row["verdict"] = words.lost(row["one_status"], row["other_status"])
        rows.append(row)
    data = pd.DataFrame(rows)
    said = [
        _by_run(one, at, label) if one.results is other.results else None for at, label in pairs
    ]
    # What the table of times says is paid for there; the rest is paid for together.
    is_said = np.array([word is not None for word in said])
    for group in (is_said, ~is_said):
        chosen = data["known"].notna() & group
        data.loc[chosen, "verdict"] = verdicts(list(data.loc[chosen, "known"]), margin)
    told = [
        word if word is not None and found not in ("", EQUAL, *words.SAID) else found
        for word, found in zip(said, data["verdict"], strict=True)
    ]
    return data.assign(verdict=told)


def _by_run(side: Side, at: Any, label: Any) -> str | None:
    """What the run's own table says of a result `label` beside that `at`: it compares with the fastest of a place."""
    cells = side.results.cells
    same = (cells[PLACE].fillna("") == cells.loc[at, PLACE].fillna("")).all(axis=1)
    place = cells[same & cells["word"].notna()]
    if not {at, label} <= {*place.index}:
        return None
    fastest = place["seconds"].astype(float).idxmin()
    if fastest not in (at, label):
        return None
    word = place.loc[label if fastest == at else at, "word"]
    if word not in (FOUND_SLOWER, TIED):
        return None
    return UNDECIDED if word == TIED else SLOWER if fastest == at else FASTER


def status(data: pd.DataFrame) -> int:
    """The exit status: a cell that lost its time is a slowdown too."""
    if data["verdict"].isin([SLOWER, words.LOST]).any():
        return SLOWDOWN
    decided = data["known"].notna()
    return CANNOT_TELL if (data["verdict"] == UNDECIDED).any() or not decided.any() else NO_SLOWDOWN


def _paired(one: Side, other: Side, pairs: list[tuple[Any, Any]]) -> list[Ratio | None]:
    """Ratios other / one of cells of one run: trial by trial where they stand in the same place."""
    if "platform" in {*one.chosen, *other.chosen}:
        return _apart(one, other, pairs)
    known = ratios.of_pairs(one.results.cells, one.results.statistics.ratios)
    return [known.get((label, at)) for at, label in pairs]


def _apart(one: Side, other: Side, pairs: list[tuple[Any, Any]]) -> list[Ratio | None]:
    """Ratios other / one of cells of two runs or machines: the processes of each are draws of their own."""
    spreads = [side.results.statistics.times for side in (one, other)]
    found: list[Ratio | None] = []
    for labels in pairs:
        cells = [side.results.cells.loc[at] for side, at in zip((one, other), labels, strict=True)]
        if all(cell["status"] == "ok" and cell["repeats"] > 1 for cell in cells):
            base, new = map(_mean_of, cells, spreads)
            found.append(intervals.difference(new, base))
        else:
            found.append(None)
    return found


def _mean_of(cell: pd.Series, spreads: Spreads) -> Ratio:
    """The mean of the logarithms of a result's times."""
    logs = intervals.logs_of(list(cell["medians"].values()))
    prior = spreads.get(tuple(cell[name] for name in KIND))
    return intervals.ratio_of(logs, known(spread_of(logs), prior))


if __name__ == "__main__":
    main()
