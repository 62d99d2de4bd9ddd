"""How often a watch errs, and what it finds: thousands of watches with noise as it was seen on a machine.

    .venv/bin/python benchmarks/watching.py [FOLDER] [WATCHES]

The noise of a pair of processes is drawn from those of the results in FOLDER: of each cell, how its processes deviate
from their mean. Without FOLDER it is Student's with 5 degrees of freedom and a deviation of 3.5 %, and two that are as
wild as processes of 2 threads beside other guests of a host. A/A should be called
different in at most 5 % of watches; what a watch finds of a planted slowdown is told by its size and the pairs it took.
A second table is of searches: where they put a release that has gone a part of the way between two ends.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from cells import ROOT  # noqa: F401  (puts the project's packages on the path)

from steptime import run
from steptime.compare import interim, sides
from steptime.plan import configuration
from steptime.statistics.verdicts import EQUAL, FASTER, NOT_DECIDED, SLOWER

MARGIN = 0.03
SLOWDOWNS = (0, 0.03, 0.1)
# How far releases between two ends have gone, of the way from one to the other.
WAYS = (0, 0.25, 0.4, 0.75, 1)
# So many releases are asked of at most 17.
ASKED = 4
PLACES = ("nearer to the older", "nearer to the newer", "")


def main() -> None:
    """Prints a row for each noise, number of cells and slowdown."""
    folders = [each for each in sys.argv[1:] if not each.isdigit()]
    count = next((int(each) for each in sys.argv[1:] if each.isdigit()), 1000)
    random = np.random.default_rng(1)
    noises = made_up(random)
    for folder in folders:
        noises |= seen(Path(folder))
    rows = [
        {"noise": name, "cells": cells, "slower by": f"{100 * slowdown:g} %"}
        | outcome(random, noise, cells, slowdown, count // (cells if slowdown else 1))
        for name, noise in noises.items()
        for cells in (1, 6)
        for slowdown in SLOWDOWNS
    ]
    print(pd.DataFrame(rows).to_string(index=False))
    between = [
        {"noise": name, "end slower by": f"{100 * slowdown:g} %", "gone": way}
        | between_ends(random, noise, way, slowdown, count)
        for name, noise in noises.items()
        for slowdown in SLOWDOWNS[1:]
        for way in WAYS
    ]
    print(pd.DataFrame(between).to_string(index=False))


def made_up(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Deviations of the logarithm of a pair's ratio, by the name of their noise."""

    def process() -> np.ndarray:
        return 0.03 * random.standard_normal(4000) + (random.random(4000) < 1 / 8) * (
            random.exponential(0.3, 4000)
        )

    return {
        "Student's, 3.5 %": 0.035 * random.standard_t(5, 4000) / math.sqrt(5 / 3),
        "heavy tails, 7 %": 0.07 * random.standard_t(3, 4000) / math.sqrt(3),
        "one process in 8 slowed": process() - process(),
    }


def seen(folder: Path) -> dict[str, np.ndarray]:
    """Deviations of the logarithm of a pair's ratio, by threads, drawn from the processes of real cells."""
    run.TOLD.update(platforms=configuration.platforms(ROOT, {}))
    random = np.random.default_rng(2)
    cells = sides.read(folder, str(folder)).cells
    found = {}
    for threads, alike in cells[cells["repeats"] > 2].groupby("threads"):
        deviations = []
        for medians in alike["medians"]:
            logs = np.log(list(medians.values()))
            # Of n processes, their own mean hides 1/n of the variance.
            deviations += list((logs - logs.mean()) * math.sqrt(len(logs) / (len(logs) - 1)))
        pairs = random.choice(deviations, 4000) - random.choice(deviations, 4000)
        found[f"{folder.name}, {threads} threads, {100 * pairs.std():.1f} %"] = pairs
    return found


def outcome(
    random: np.random.Generator, noise: np.ndarray, cells: int, slowdown: float, count: int
) -> dict[str, str]:
    """Shares of watches with a false word, and of cells by verdict and by analysis."""
    words: list[str] = []
    found_at: list[int] = []
    false = 0
    for _ in range(count):
        verdicts = watched(random, noise, cells, slowdown)
        words += [word for word, _ in verdicts]
        found_at += [pairs for word, pairs in verdicts if word == SLOWER]
        wrong = {FASTER} if slowdown else {FASTER, SLOWER}
        false += any(word in wrong for word, _ in verdicts)
    told = {
        f"{word}": f"{100 * words.count(word) / len(words):.1f} %"
        for word in (SLOWER, FASTER, EQUAL)
    }
    early = {
        f"slower by {pairs} pairs": f"{100 * sum(at <= pairs for at in found_at) / len(words):.0f} %"
        for pairs in interim.CHANCES
    }
    return {"watches": str(count), "false": f"{100 * false / count:.1f} %"} | told | early


def between_ends(
    random: np.random.Generator, noise: np.ndarray, way: float, slowdown: float, count: int
) -> dict[str, str]:
    """Shares of the searches that find the end slower, by where they put a release between the ends."""
    found = [placed(random, noise, way, slowdown) for _ in range(count)]
    known = [word for word in found if word in PLACES]
    shares = {
        word or NOT_DECIDED: f"{100 * known.count(word) / max(1, len(known)):.1f} %"
        for word in PLACES
    }
    return {"searches": str(len(known))} | shares


def placed(random: np.random.Generator, noise: np.ndarray, way: float, slowdown: float) -> str:
    """Which of PLACES a search says of a release that has gone this part of the way to an end slower by so much; the
    end's own verdict where that is not shown to be slower.
    """
    ends, logs = random.choice(noise, (2, 1, max(interim.CHANCES)))
    ends = ends + math.log1p(slowdown)
    [(verdict, pairs)] = verdicts_of(ends)
    if verdict != SLOWER:
        return verdict or NOT_DECIDED
    whole = interim.ratios_of({0: ends[0, :pairs]}, {0: 1})[0]
    half = whole._replace(log=whole.log / 2, error=whole.error / 2)
    against = interim.Against(half, *PLACES[:2], ASKED)
    return verdicts_of(logs + way * math.log1p(slowdown), 0, against)[0][0]


def watched(
    random: np.random.Generator, noise: np.ndarray, cells: int, slowdown: float
) -> list[tuple[str, int]]:
    """`verdicts_of` one watch whose pairs are drawn from this noise."""
    return verdicts_of(math.log1p(slowdown) + random.choice(noise, (cells, max(interim.CHANCES))))


def verdicts_of(
    logs: np.ndarray, margin: float = MARGIN, against: interim.Against = interim.ONE
) -> list[tuple[str, int]]:
    """The verdict on each cell of one watch, and after how many pairs it was reached; '' where it was not.

    `logs`: logarithms of the ratios of (cells, pairs).
    """
    cells, last = logs.shape
    verdicts: dict[int, tuple[str, int]] = {}
    for pairs in interim.CHANCES:
        # A cell that is decided is measured no more: its pairs stay as they were.
        known = {at: logs[at, : verdicts.get(at, ("", pairs))[1]] for at in range(cells)}
        ratios = interim.ratios_of(known, dict.fromkeys(known, 1))
        still = {at: [ratio] for at, ratio in ratios.items() if at not in verdicts}
        new = interim.decided(still, margin, pairs, cells, against)
        verdicts |= {at: (word, pairs) for at, word in new.items()}
    return [verdicts.get(at, ("", last)) for at in range(cells)]


if __name__ == "__main__":
    main()
