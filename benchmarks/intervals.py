"""Whether the project's intervals hold what they should: grids with known times, and the processes of real results.

    .venv/bin/python benchmarks/intervals.py simulate [GRIDS]
    .venv/bin/python benchmarks/intervals.py repeats [GRIDS]
    .venv/bin/python benchmarks/intervals.py results FOLDER

`simulate` draws grids in which all frameworks are equally fast, and counts how often the interval of a ratio leaves out
1, which 5 % of 95 % intervals should. `repeats` does so for grids that go on where a comparison is undecided
(`merge.further`): with looks that are paid for, as it is done, and as if they cost nothing. `results` reads the shards
of a results folder. It shows the intervals of times and ratios of the same samples by each cell's own variance and by
the moderated one, whether what slows a trial slows all of it, and an A/A: two processes of the same cell, compared with
what the other cells let expect.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from cells import ROOT  # noqa: F401  (puts the project's packages on the path)
from scipy.stats import binomtest, f, t

from steptime.cells import shard
from steptime.machine import interference
from steptime.merge import further, intervals, moderation, ratios
from steptime.merge.summary import KIND, summarise
from steptime.plan import looks
from steptime.plan.cell import PLACE

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def main() -> None:
    """Command line."""
    if sys.argv[1] == "simulate":
        print(simulated(int(sys.argv[2]) if len(sys.argv) > 2 else 300).to_string(index=False))
    elif sys.argv[1] == "repeats":
        print(repeated(int(sys.argv[2]) if len(sys.argv) > 2 else 300).to_string(index=False))
    else:
        seen(Path(sys.argv[2]))


@dataclass
class Noise:
    """What processes differ by: their deviation by cell, the shape of their logarithms, and what a trial shares."""

    deviation: Draw
    shape: Draw
    drift: float = 0.0


def _alike(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return np.full(size, 0.03)


def _unlike(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return 0.03 * np.sqrt(4 / random.chisquare(4, size))


def _normal(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return random.standard_normal(size)


def _heavy(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return random.standard_t(3, size)


def _disturbed(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """One process in fifteen is slowed by something, by ten deviations in the mean."""
    return random.standard_normal(size) + (random.random(size) < 1 / 15) * random.exponential(
        10, size
    )


NOISES = {
    "equal cells, normal": Noise(_alike, _normal),
    "cells differ": Noise(_unlike, _normal),
    "cells differ, trials drift by 10 %": Noise(_unlike, _normal, 0.1),
    "heavy tails (Student, 3)": Noise(_unlike, _heavy),
    "one process in 15 slowed": Noise(_unlike, _disturbed),
}


def grids(noise: Noise, places: int, frameworks: int, trials: int, count: int) -> Iterator:
    """Logarithms of times by place, framework and trial: `count` grids whose true times are all 1."""
    random = np.random.default_rng([places, frameworks, trials])
    for _ in range(count):
        size = (places, frameworks, trials)
        drift = noise.drift * random.standard_normal((places, 1, trials))
        yield drift + noise.deviation(random, (*size[:2], 1)) * noise.shape(random, size)


def called_different(grid: np.ndarray, moderate: bool) -> tuple[list[bool], list[float]]:
    """Of the ratios of each framework to the first: whether the interval leaves out 1, and half of its width."""
    places, frameworks, trials = grid.shape
    pairs = [(at, *pair) for at in range(places) for pair in combinations(range(frameworks), 2)]
    logs = [list(grid[at, one] - grid[at, other]) for at, one, other in pairs]
    spreads = [moderation.spread_of(each) for each in logs]
    if moderate:
        spreads = moderation.moderated(spreads, places * (frameworks - 1) * (trials - 1))
    different, halves = [], []
    for (_, first, _), values, spread in zip(pairs, logs, spreads, strict=True):
        if first == 0:
            _, low, high = intervals.ratio_of(values, spread).interval
            different.append(not low <= 1 <= high)
            halves.append(math.log(high / low) / 2)
    return different, halves


def simulated(count: int) -> pd.DataFrame:
    """A row for each noise and shape of a grid: share that is called different, half an interval, own and moderated."""
    rows = []
    for name, noise in NOISES.items():
        for shape in ((3, 2, 3), (6, 3, 3), (6, 4, 2), (8, 18, 3), (6, 3, 6)):
            found = {"noise": name, "places, frameworks, trials": "{}, {}, {}".format(*shape)}
            enough = max(20, count * 12 // (shape[0] * (shape[1] - 1)))
            drawn = list(grids(noise, *shape, enough))
            for word, moderate in (("own", False), ("moderated", True)):
                each = [called_different(grid, moderate) for grid in drawn]
                share = np.mean([flag for different, _ in each for flag in different])
                half = np.median([half for _, halves in each for half in halves])
                found |= {
                    f"{word}: different": f"{100 * share:.1f} %",
                    f"{word}: half": f"±{100 * half:.1f} %",
                }
            rows.append(found)
    return pd.DataFrame(rows)


ASKED = {"until": 0.03, "budget_seconds": math.inf}
LOOKS = looks.planned(3, 12)


def cells_of(grid: np.ndarray, there: np.ndarray, planned: list[int]) -> pd.DataFrame:
    """Rows as of `merge.summary` of a grid of the shape of `grids`, of those trials that are there."""
    rows = []
    for at, framework in np.ndindex(grid.shape[:2]):
        medians = {
            int(trial) + 1: math.exp(grid[at, framework, trial])
            for trial in np.flatnonzero(there[at, framework])
        }
        facts = dict.fromkeys([*KIND, *PLACE], "") | {"threads": 1, "batch": at}
        facts |= {"status": "ok", "seconds": np.median(list(medians.values())), "looks": planned}
        rows.append(facts | {"medians": medians})
    return pd.DataFrame(rows)


def gone_on(grid: np.ndarray, asked: dict[str, float], paid: bool) -> pd.DataFrame:
    """The cells of a grid when all looks were taken, a process of each cell lasting as long."""
    planned = LOOKS if paid else []
    there = np.zeros(grid.shape, dtype=bool)
    there[..., : LOOKS[0]] = True
    spent = 0.0
    for last, look in pairwise(LOOKS):
        cells = cells_of(grid, there, planned)
        undecided = [
            each for each in further.comparisons(cells) if each.is_undecided(asked["until"])
        ]
        chosen = further.choose(
            undecided, dict.fromkeys(cells.index, 1.0), look - last, asked, spent
        )
        spent += len(chosen) * (look - last)
        there.reshape(-1, grid.shape[2])[chosen, last:look] = True
    return cells_of(grid, there, planned)


def repeated(count: int) -> pd.DataFrame:
    """A row for each noise and for one framework that is 4 % slower: shares that are called different, half an interval
    and processes of a cell, by what is done.
    """
    rows = []
    shape = (6, 3, LOOKS[-1])
    cases = [(name, noise, 0.0) for name, noise in NOISES.items()]
    cases.append(("cells differ, one is 4 % slower", NOISES["cells differ"], 0.04))
    for name, noise, slower in cases:
        drawn = list(grids(noise, *shape, count))
        for grid in drawn:
            grid[:, 1] += slower
        least = np.zeros(shape, dtype=bool)
        least[..., : LOOKS[0]] = True
        half = ASKED | {"budget_seconds": shape[0] * shape[1] * LOOKS[0] / 2}
        ways = {
            "3 trials": [cells_of(grid, least, []) for grid in drawn],
            "up to 12, not paid": [gone_on(grid, ASKED, False) for grid in drawn],
            "up to 12": [gone_on(grid, ASKED, True) for grid in drawn],
            "up to 12, in half the time of 3": [gone_on(grid, half, True) for grid in drawn],
        }
        rows += [{"noise": name, "way": way} | _told(cells, slower) for way, cells in ways.items()]
    return pd.DataFrame(rows)


def differs(cells: pd.DataFrame) -> list[bool]:
    """Whether the interval of the second framework of each place to the first leaves out 1."""
    return [not low <= 1 <= high for _, low, high in _second_to_first(cells)]


def _second_to_first(cells: pd.DataFrame) -> list[tuple[float, float, float]]:
    known = ratios.of_pairs(cells)
    return [known[first + 1, first].interval for first in range(0, len(cells), 3)]


def _told(grids: list[pd.DataFrame], slower: float) -> dict[str, str]:
    """Of the second framework, slower by that, against the first of each place, and of those that the looks go by."""
    fixed, fastest, halves, wrong, counts = [], [], [], [], []
    for cells in grids:
        fixed += differs(cells)
        halves += [math.log(high / low) / 2 for _, low, high in _second_to_first(cells)]
        fastest += [
            not each.ratio.interval[1] <= 1 <= each.ratio.interval[2]
            for each in further.comparisons(cells)
        ]
        found = [list(each.values()) for each in cells["medians"]]
        counts += list(map(len, found))
        own = [moderation.spread_of(intervals.logs_of(each)) for each in found]
        for at, spread in enumerate(moderation.moderated(own)):
            part = looks.part_after(cells.at[at, "looks"], max(cells.at[at, "medians"]))
            _, low, high = intervals.of_repeats(found[at], spread, part)
            wrong.append(not low <= math.exp(slower * (at % 3 == 1)) <= high)
    return {
        "different": f"{100 * np.mean(fixed):.1f} %",
        "of the fastest": f"{100 * np.mean(fastest):.1f} %",
        "half": f"±{100 * np.median(halves):.1f} %",
        "times without 1": f"{100 * np.mean(wrong):.1f} %",
        "processes": f"{np.mean(counts):.1f}",
    }


def seen(folder: Path) -> None:
    """Prints what the shards of a results folder say."""
    parts = [shard.read_parts(path) for path in sorted(folder.glob("cells/*/step/*.parquet"))]
    facts = pd.DataFrame([row for row, _, _ in parts])
    frame = pd.concat(
        [pd.DataFrame([row] * len(table)).assign(**table.to_pandas()) for row, table, _ in parts],
        ignore_index=True,
    )
    cells = summarise(frame)
    timed = cells[(cells["status"] == "ok") & (cells["repeats"] > 1)]
    quiet = facts.assign(
        disturbed=[interference.disturbed(row) for row in facts.to_dict("records")]
    )
    disturbed = int(quiet.loc[quiet["status"] == "ok", "disturbed"].sum())
    print(f"{len(timed)} cells with several processes; {disturbed} processes were disturbed.")
    for _, alike in timed.groupby(KIND, sort=False):
        print(f"\n{alike['threads'].iloc[0]} threads, {len(alike)} cells")
        times(alike)
        of_ratios(alike)
        trials(alike)
        twice(alike)


def times(cells: pd.DataFrame) -> None:
    """Half intervals of times, by own and by moderated variance."""
    own = [intervals.of_repeats(list(each.values())) for each in cells["medians"]]
    line("half an interval of a time, own", [math.log(high / low) / 2 for _, low, high in own])
    now = [math.log(high / low) / 2 for high, low in zip(cells["high"], cells["low"], strict=True)]
    line("half an interval of a time, moderated", now)


def of_ratios(cells: pd.DataFrame) -> None:
    """Half intervals of the ratios to the fastest of a place, and how many hold 1."""
    known, old, new = ratios.of_pairs(cells), [], []
    for _, place in cells.groupby(PLACE, sort=False, dropna=False):
        fastest = place["seconds"].astype(float).idxmin()
        for at in place.index.drop(fastest):
            own = intervals.of_ratio(place["medians"][at], place["medians"][fastest])
            old.append(own.interval)
            new.append(known[at, fastest].interval)
    for word, found in (("own", old), ("moderated", new)):
        undecided = sum(low <= 1 <= high for _, low, high in found)
        title = f"half an interval of a ratio, {word} ({undecided} of {len(found)} undecided)"
        line(title, [math.log(high / low) / 2 for _, low, high in found])


def line(title: str, halves: list[float]) -> None:
    """Prints the median and the tenth and ninetieth percentile of half intervals."""
    low, middle, high = 100 * np.quantile(halves, [0.1, 0.5, 0.9])
    print(f"  {title}: ±{middle:.1f} % (a tenth below {low:.1f} %, a tenth above {high:.1f} %)")


def trials(cells: pd.DataFrame) -> None:
    """Whether what slows a trial slows all cells of a place: the F test of trials in a two-way layout."""
    between = within = 0.0
    free_between = free_within = 0
    for _, place in cells.groupby(PLACE, sort=False, dropna=False):
        whole = [each for each in place["medians"] if len(each) == place["repeats"].max()]
        if len(whole) > 1:
            logs = np.log([list(each.values()) for each in whole])
            logs -= logs.mean(axis=1, keepdims=True)
            common = logs.mean(axis=0)
            between += len(logs) * (common**2).sum()
            within += ((logs - common) ** 2).sum()
            free_between += len(common) - 1
            free_within += (len(common) - 1) * (len(logs) - 1)
    ratio = between / free_between / (within / free_within)
    chance = f.sf(ratio, free_between, free_within)
    print(f"  trials: F({free_between}, {free_within}) = {ratio:.2f}, p = {chance:.2g}")


def twice(cells: pd.DataFrame) -> None:
    """A/A: each two processes of a cell that follow one another, by what the other cells let expect of two."""
    logs = [np.log(list(each.values())) for each in cells["medians"]]
    own = [moderation.spread_of(list(each)) for each in logs]
    different = []
    for at, each in enumerate(logs):
        spread = moderation.expected(own[:at] + own[at + 1 :])
        limit = t.ppf(0.975, spread.degrees) * math.sqrt(2 * spread.variance)
        different += list(np.abs(np.diff(each)) > limit)
    share = binomtest(int(sum(different)), len(different)).proportion_ci(0.95, "exact")
    print(
        f"  A/A: {sum(different)} of {len(different)} pairs of processes called different = "
        f"{100 * np.mean(different):.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f} %); "
        f"a process deviates by {100 * math.sqrt(moderation.expected(own).variance):.1f} %"
    )


if __name__ == "__main__":
    main()
