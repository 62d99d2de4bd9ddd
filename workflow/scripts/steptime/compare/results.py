"""Compares two sides that were measured, cell by cell, and says first which is faster.

    workflow/scripts/launch compare.results torch-1.4 torch         two environments of the results here
    workflow/scripts/launch compare.results before.tar.gz results   two packs, or folders of results
    workflow/scripts/launch compare.results before.tar.gz:torch torch

A framework means its first environment. A side may also be a platform, or a mode such as tensorflow-2.12.graph. The
exit status is 0 where nothing is slower, 1 where something is, and 2 where that is not known.
"""

import argparse
import math
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from steptime import project, run
from steptime.compare import caveats, words
from steptime.compare.sides import CompareError, Side, opened, pairs_of
from steptime.plain import file_name
from steptime.plan import configuration
from steptime.reading import InputError
from steptime.render import tables
from steptime.statistics import intervals, ratios
from steptime.statistics.intervals import Ratio
from steptime.statistics.pairs import MARGIN, Pair, both_ways, key, word
from steptime.statistics.verdicts import EQUAL, ERROR, NOT_DECIDED, SLOWER
from steptime.statistics.words import spreads_of_times

NO_SLOWDOWN, SLOWDOWN, CANNOT_TELL = 0, 1, 2
COLUMNS = ["network", "variant", "batch", "threads", "device", "devices", "precision"]
# Which values of the processes are compared, and the columns of their Ratios.
OF = ["medians", "means"]
KNOWN = ["known", "known_means"]
TYPES = {"verdict": tables.TEXT}
# What a row has of either side.
SIDES = ["platform", "environment", "mode", "status", "reason", "seconds", "low", "high"]


def number(text: str, of: type = float) -> Any:
    """Reads a number above 0 of the command line. Raises CompareError."""
    try:
        if 0 < (value := of(text)) < math.inf:
            return value
    except ValueError:
        pass
    raise CompareError(
        f"'{text}' is not possible: write a number above 0, as in MINUTES=45 THREADS=2 MARGIN=0.03."
    )


def share(text: str) -> float:
    """Reads a share of the command line. Raises CompareError."""
    if (value := number(text)) >= 1:
        raise CompareError(f"The margin {text} is no share: write 0.05 for 5 %.")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare two things that were measured.")
    parser.add_argument("one", help="the base: a pack, a folder, an environment, mode or platform")
    parser.add_argument("other", help="what is compared with it")
    parser.add_argument("--margin", type=share, default=MARGIN, help="what counts as equal, 0.05")
    parser.add_argument("--platforms", help="your own file of platforms")
    parser.add_argument("--output", type=Path, help="path of the files to write, without ending")
    parser.add_argument("--answer", action="store_true", help="end with 0 whatever the answer is")
    with complaints():
        options = parser.parse_args()
    with complaints(options.platforms):
        status = compare(options)
    sys.exit(NO_SLOWDOWN if options.answer else status)


@contextmanager
def complaints(platforms: str | None = None) -> Iterator[None]:
    """Ends the program with a sentence where it cannot go on; `platforms` is a user's own file of platforms."""
    try:
        chosen = {"platforms": platforms} if platforms else {}
        run.TOLD.update(platforms=configuration.platforms(project.ROOT, chosen))
        yield
    except (InputError, OSError, tarfile.TarError) as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT_TELL)


def compare(options: argparse.Namespace) -> int:
    """Writes the comparison, prints its answer and returns the exit status. Raises CompareError, and more."""
    prefix = options.output or Path("results/compare") / file_name(options.one, options.other)
    with opened(options.one, options.other, Path("results")) as (one, other):
        pairs = pairs_of(one, other)
        caveats.refuse(one, other, pairs)
        data = table(one, other, pairs, options.margin)
        notes, in_turn = caveats.sentences(one, other, pairs), caveats.in_turn(one, other, pairs)
    answer = words.answer(one.name, other.name, data, options.margin, in_turn)
    page = words.page(answer, one.name, other.name, notes, options.margin)
    return shown(prefix, one.name, other.name, data, notes, page)


def shown(
    prefix: Path, one: str, other: str, data: pd.DataFrame, notes: list[str], page: tables.Page
) -> int:
    """Writes the page of a comparison, prints its answer and returns the exit status."""
    tables.write(prefix, data.drop(columns=KNOWN), words.layout(data, one, other), page, TYPES)
    print(words.terminal(page.title, notes, data, one, other))
    print(f"Whole table, for a pull request or a browser: {prefix}.md, .html and .parquet")
    return status(data)


def table(one: Side, other: Side, pairs: list[tuple[Any, Any]], margin: float) -> pd.DataFrame:
    """Returns a row for each cell of both sides: times, marks, ratio (other / one), verdict, and KNOWN (Ratios or
    None).

    Within one run, word and interval of a pair are those of the run's own table.
    """
    known_of = [*zip(*(_ratios(one, other, pairs, of) for of in OF), strict=True)]
    chance = ERROR / max(2 * sum(None not in ratios for ratios in known_of), 1)
    by_run = both_ways(one.results.statistics.pairs) if one.results is other.results else {}
    rows = []
    for (at, label), known_ratios in zip(pairs, known_of, strict=True):
        base, new = one.results.cells.loc[at], other.results.cells.loc[label]
        row: dict[str, Any] = {column: base[column] for column in COLUMNS}
        for side, cell in (("one", base), ("other", new)):
            row |= {f"{side}_{name}": cell[name] for name in SIDES}
            row[f"{side}_marks"] = ", ".join(cell["marks"])
        timed = pd.notna(base["seconds"]) and pd.notna(new["seconds"])
        row["ratio"] = new["seconds"] / base["seconds"] if timed else None
        row |= {"ratio_low": None, "ratio_high": None, "ratio_of_means": None}
        row["verdict"] = words.lost(row["one_status"], row["other_status"])
        row |= dict(zip(KNOWN, known_ratios, strict=True))
        ratio, of_means = known_ratios
        pair = by_run.get((key(new), key(base)))
        if of_means:
            row["ratio_of_means"] = of_means.interval[0]
        if pair:
            row |= _by_run(pair, margin)
        elif ratio and of_means:
            row |= _apart(ratio, of_means, chance, margin)
        rows.append(row)
    return pd.DataFrame(rows)


def _by_run(pair: Pair, margin: float) -> dict[str, Any]:
    """Returns ratio, interval and verdict of a pair from the run's own table."""
    row = {"ratio": pair.ratio, "ratio_low": pair.low, "ratio_high": pair.high}
    return row | {"known": pair.with_error, "verdict": word(pair.low, pair.high, margin)}


def _apart(ratio: Ratio, of_means: Ratio, chance: float, margin: float) -> dict[str, Any]:
    """Returns interval and verdict from two ratios, of medians and of means, whose intervals miss with this chance
    each.

    Equal where both are, else slower or faster where one is, medians first.
    """
    ends = [each.within(chance) for each in (ratio, of_means)]
    said = [word(*each, margin) for each in ends]
    differing = [each for each in said if each not in (EQUAL, NOT_DECIDED)]
    verdict = differing[0] if differing else EQUAL if set(said) == {EQUAL} else NOT_DECIDED
    low, high = ends[0]
    return {"ratio": ratio.interval[0], "ratio_low": low, "ratio_high": high, "verdict": verdict}


def status(data: pd.DataFrame) -> int:
    """Returns the exit status; a cell that lost its time counts as slower."""
    if data["verdict"].isin([SLOWER, words.LOST]).any():
        return SLOWDOWN
    decided = data["known"].notna()
    return (
        CANNOT_TELL if (data["verdict"] == NOT_DECIDED).any() or not decided.any() else NO_SLOWDOWN
    )


def _ratios(one: Side, other: Side, pairs: list[tuple[Any, Any]], of: str) -> list[Ratio | None]:
    """Returns ratios other / one of the values `of`: by trials within a run and place, else of all processes."""
    is_of_run = of == OF[0]
    if one.results is other.results and "platform" not in {*one.chosen, *other.chosen}:
        cells = one.results.cells
        spreads = one.results.statistics.ratios if is_of_run else ratios.spreads_of(cells, of)
        of_cells = ratios.of_pairs(cells, spreads, of)
        return [of_cells.get((label, at)) for at, label in pairs]
    means = []
    for side, labels in zip((one, other), zip(*pairs, strict=True), strict=True):
        cells, known = side.results.cells, side.results.statistics.times
        spreads = known if is_of_run else spreads_of_times(cells, of)
        means.append([ratios.mean_of_result(cells.loc[at], spreads, of) for at in labels])
    return [
        intervals.difference(new, base) if base and new else None
        for base, new in zip(*means, strict=True)
    ]


if __name__ == "__main__":
    main()
