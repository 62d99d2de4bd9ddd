"""A/A: how often two measurements of the very same cell are called different, which 5 % of 95 % intervals should.

    .venv/bin/python benchmarks/aa.py FOLDER [--minutes 4] [--ranks 2] [--threads 1] [--environments torch-1.4]

Every small cell is measured under two names in turn (A B, then B A, then A B: a pair of REPEATS processes each), PAIRS
times over; what two processes each would say is looked at too. It stops after some minutes and goes on from FOLDER the
next time; then it prints the share of pairs that are called different from all that FOLDER holds. Limit of the project:
8 %. It prints where the variance of a process's time is, and what watches of one cell say that follow one another, each
with as many pairs as it takes, as they are and with a slowdown that is reckoned into one side.
"""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cells
import numpy as np
import pandas as pd
import watching
from cells import configuration, grid
from scipy.stats import binomtest, norm

from shared.statistics import median, median_interval
from steptime.cells import shard
from steptime.compare import interim
from steptime.machine import interference
from steptime.statistics import intervals, spreads
from steptime.statistics.verdicts import EQUAL, FASTER, SLOWER

NAMES = ("local-cpu", "local-cpu-again")
REPEATS = 3
PAIRS = 200
GRID = {
    "platforms": list(NAMES),
    "networks": ["lstm32"],
    "repeats": REPEATS * PAIRS,
    "sampling": {"budget_seconds": 0.6, "precision": 0.02, "least_samples": 6},
}
TYPE = ["network", "threads", "environment"]


def main() -> None:
    """Measures what is missing for a while, and prints the shares."""
    parser = argparse.ArgumentParser(description="The same cell twice.")
    parser.add_argument("folder", type=Path, help="where shards are kept")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="of one thread, where there are more")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="of one device")
    parser.add_argument(
        "--environments", nargs="+", help="those of the grid ci where none is named"
    )
    options = parser.parse_args()
    ranks = options.ranks
    loaded = configuration.load(cells.ROOT, {"grid": "ci"})
    platforms = {name: loaded.platforms["local-cpu"] for name in NAMES}
    threads = {"table": options.threads, "figure": options.threads[-1:]}
    together: dict[str, object] = {"devices": [ranks], "threads": threads}
    if options.environments:
        together["environments"] = options.environments
    if ranks > 1:
        together["threads"] = {"table": [1], "figure": [1]}
    loaded = replace(loaded, grid=loaded.grid | GRID | together, platforms=platforms)
    steps = {
        name: each
        for name, each in loaded.artefacts.items()
        if "task" not in each and ("devices" in each) == (ranks > 1)
    }
    plan = grid.expand(replace(loaded, artefacts=steps), 2)
    cells.prove(plan.cells.values())
    folder = options.folder.resolve()
    end = time.monotonic() + 60 * options.minutes
    for pair in couples(plan):
        if time.monotonic() > end:
            break
        for cell in pair:
            path = folder / f"{cell.key}.parquet"
            if not path.exists():
                cells.measure(cell, cells.job_of(loaded, cell), path)
    measured = read(plan, folder)
    report(measured)
    report_watches(measured)


def couples(plan: grid.Plan) -> Iterator[tuple[grid.Cell, grid.Cell]]:
    """The same cell under its two names, in the order in which they are measured."""
    for first in plan.cells.values():
        if first.platform == NAMES[0]:
            second = plan.cells[replace(first, platform=NAMES[1]).key]
            yield (first, second) if first.repeat % 2 else (second, first)


def read(plan: grid.Plan, folder: Path) -> pd.DataFrame:
    """One row for each couple of processes that is there: its cell, and the samples of A and of B."""
    rows = []
    for couple in couples(plan):
        paths = {cell.platform: folder / f"{cell.key}.parquet" for cell in couple}
        if all(path.exists() for path in paths.values()):
            tables = [shard.read(paths[name])[0] for name in NAMES]
            samples = [table["seconds"].to_pylist() for table in tables]
            facts = {name: getattr(couple[0], name) for name in (*TYPE, "repeat")}
            facts["disturbed"] = any(
                interference.disturbed(table.slice(0, 1).to_pylist()[0]) for table in tables
            )
            rows.append(facts | {"a": samples[0], "b": samples[1]})
    return pd.DataFrame(rows)


def report(couples: pd.DataFrame) -> None:
    """Prints how often A and B are called different."""
    line(
        "one process each, their own intervals", [within(row) for row in couples.to_dict("records")]
    )
    for repeats in (2, REPEATS):
        sets = [
            (kind[TYPE.index("threads")], [math.log(row) for row in _ratios(rows)])
            for (*kind, _), rows in couples.groupby([*TYPE, (couples["repeat"] - 1) // repeats])
            if len(rows) == repeats
        ]
        own = [spreads.spread_of(logs) for _, logs in sets]
        line(f"{repeats} processes each, own variance", intervals_of(sets, own))
        kinds: dict[int, list[spreads.Spread]] = {}
        for (threads, _), spread in zip(sets, own, strict=True):
            kinds.setdefault(threads, []).append(spread)
        priors = spreads.priors(kinds)
        known = [
            spreads.combined(spread, priors.get(threads))
            for (threads, _), spread in zip(sets, own, strict=True)
        ]
        line(f"{repeats} processes each, by all variances", intervals_of(sets, known))
    report_parts(couples)


def report_parts(couples: pd.DataFrame) -> None:
    """Prints where the variance is, as standard deviations of one process's time, in per cent of it.

    Within: what its own samples leave open of their median. Beside: between two processes that follow one another,
    whatever the machine does in the long run. Alone: that of those that nothing has disturbed. Whole: of all processes.
    """
    found = []
    for kind, rows in couples.groupby(TYPE):
        processes = [*rows["a"], *rows["b"]]
        logs = np.log([median(samples) for samples in processes])
        ratios = np.log(_ratios(rows).to_numpy())
        alone = ratios[~rows["disturbed"].to_numpy()]
        parts = {
            "within": math.sqrt(np.mean([_open(samples) ** 2 for samples in processes])),
            "beside": ratios.std(ddof=1) / math.sqrt(2),
            "alone": alone.std(ddof=1) / math.sqrt(2) if len(alone) > 1 else math.nan,
            "whole": logs.std(ddof=1),
        }
        names = dict(zip(TYPE, kind, strict=True)) | {"pairs": len(rows), "undisturbed": len(alone)}
        found.append(names | {name: f"{100 * value:.1f} %" for name, value in parts.items()})
    print("Standard deviation of the time of a process:")
    print(pd.DataFrame(found).to_string(index=False))


def _open(samples: list[float]) -> float:
    """The standard error of the logarithm of a median, from the interval of the samples."""
    low, high = median_interval(samples)
    return math.log(high / low) / 2 / norm.ppf(0.975)


def report_watches(couples: pd.DataFrame) -> None:
    """Prints what watches of one cell say that follow one another: the next begins where one is decided or ends."""
    print(f"Watches of one cell, which test after {list(interim.CHANCES)} pairs:")
    for threads, alike in couples.groupby("threads"):
        logs = [np.log(_ratios(rows)).to_numpy() for _, rows in alike.groupby(TYPE)]
        for slowdown in watching.SLOWDOWNS:
            found = [each for row in logs for each in watches_of(row - math.log1p(slowdown))]
            words = [word for word, _ in found]
            early = sum(each == (FASTER, min(interim.CHANCES)) for each in found)
            counts = ", ".join(f"{word} {words.count(word)}" for word in (FASTER, SLOWER, EQUAL))
            print(
                f"{threads} threads, A is {100 * slowdown:g} % faster: {len(found)} watches, {counts}, "
                f"faster by the first analysis {early}"
            )


def watches_of(logs: np.ndarray) -> Iterator[tuple[str, int]]:
    """The verdict of each watch and after how many pairs it was reached, from the logarithms of its pairs in order."""
    last, start = max(interim.CHANCES), 0
    while start + last <= len(logs):
        ((word, pairs),) = watching.verdicts_of(logs[None, start : start + last])
        yield word, pairs
        start += pairs


def intervals_of(
    sets: list[tuple[int, list[float]]], known: list[spreads.Spread]
) -> list[intervals.Interval]:
    """The interval of the ratio of each set."""
    return [
        intervals.ratio_of(logs, spread).interval
        for (_, logs), spread in zip(sets, known, strict=True)
    ]


def _ratios(rows: pd.DataFrame) -> pd.Series:
    return rows["a"].map(median) / rows["b"].map(median)


def within(row: dict) -> tuple[float, float, float]:
    """The ratio of two processes with the interval that follows from their own samples alone (Zou and Donner,
    "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008: limits of a difference,
    here of logarithms, from the limits of its terms).
    """
    (a, a_low, a_high), (b, b_low, b_high) = (
        [math.log(x) for x in (median(row[name]), *median_interval(row[name]))] for name in "ab"
    )
    down, up = math.hypot(a - a_low, b_high - b), math.hypot(a_high - a, b - b_low)
    return math.exp(a - b), math.exp(a - b - down), math.exp(a - b + up)


def line(title: str, ratios: list[tuple[float, float, float]]) -> None:
    """Prints the share of ratios whose interval leaves out 1, with its own exact binomial interval."""
    if ratios:
        different = sum(not low <= 1 <= high for _, low, high in ratios)
        share = binomtest(different, len(ratios)).proportion_ci(0.95, "exact")
        width = median([100 * (high - low) / 2 / ratio for ratio, low, high in ratios])
        print(
            f"{title}: {different} of {len(ratios)} pairs called different = {100 * different / len(ratios):.1f} % "
            f"(95 % interval {100 * share.low:.1f} to {100 * share.high:.1f} %); half an interval is {width:.1f} %"
        )


if __name__ == "__main__":
    main()
