"""Whether intervals hold and words are right as often as they say: runs whose truth is known, and real results.

    .venv/bin/python benchmarks/intervals.py simulate [RUNS]
    .venv/bin/python benchmarks/intervals.py default [RUNS]
    .venv/bin/python benchmarks/intervals.py results FOLDER

`simulate` draws runs of 12 places and 4 frameworks, with the heavy tails and two speeds of real ones. It counts how
often the interval of a time and of a ratio holds the truth, how many runs of equal frameworks call any of them
slower, and how often one that takes 3, 5 or 10 % longer is called slower. `default` does so for the default run, with
15 %: 5 places, two runs of each result, then FURTHER of those that are not decided, as `merge.repeats` chooses them,
and the overall comparison. `results` reads the shards of a results
folder: whether what slows a trial slows all of it, and an A/A, in which two processes of one result are compared by
what the others say.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from cells import ROOT  # noqa: F401  (puts the project's packages on the path)
from scipy.stats import binomtest, f, t

from steptime.cells import shard
from steptime.machine import interference
from steptime.merge import repeats
from steptime.merge.summary import COLUMNS, summarise
from steptime.plan.cell import IDENTITY, PLACE
from steptime.statistics import intervals, overall, words
from steptime.statistics.pairs import Pair, both_ways
from steptime.statistics.spreads import KIND, combined, priors, spread_of
from steptime.statistics.verdicts import FASTER

PLACES, FRAMEWORKS = 12, 4
# Of the default run: runs of a result at the most, and of all results together behind the first two.
MOST, FURTHER = 8, 40
UNEQUAL = (words.SLOWER, FASTER)


@dataclass(frozen=True)
class Noise:
    """What processes differ by: the deviation of one (about that of a real run at 2 threads), whether results differ in
    it and have heavy tails, the share of results with two speeds, what a trial shares.
    """

    deviation: float
    real: bool = True
    two_speeds: float = 0.0
    drift: float = 0.0


NOISES = {
    "quiet": Noise(0.021, two_speeds=0.08, drift=0.014),
    "busy": Noise(0.042, two_speeds=0.08, drift=0.028),
    "ideal": Noise(0.02, real=False),
    "drift": Noise(0.021, drift=0.1),
}


def main() -> None:
    """Command line."""
    if sys.argv[1] == "simulate":
        print(simulated(int(sys.argv[2]) if len(sys.argv) > 2 else 200).to_string(index=False))
    elif sys.argv[1] == "default":
        print(default(int(sys.argv[2]) if len(sys.argv) > 2 else 100).to_string(index=False))
    else:
        seen(Path(sys.argv[2]))


def run(
    random: np.random.Generator,
    noise: Noise,
    trials: int,
    slower: float = 0.0,
    places: int = PLACES,
) -> pd.DataFrame:
    """Results of one run, as rows of `merge.summary`; in each place the second framework takes `slower` longer."""
    shape = places, FRAMEWORKS, trials
    wide = np.sqrt(6 / random.chisquare(6, (*shape[:2], 1))) if noise.real else 1.0
    shapes = random.standard_t(5, shape) if noise.real else random.standard_normal(shape)
    logs = noise.deviation * wide * shapes
    two = random.random((*shape[:2], 1)) < noise.two_speeds
    logs += two * ((random.random(shape) < 0.5) - 0.5) * random.uniform(0.05, 0.15, (*shape[:2], 1))
    logs += noise.drift * random.standard_normal((places, 1, trials))
    logs[:, 1] += math.log1p(slower)
    rows = []
    for at, framework in np.ndindex(shape[:2]):
        facts = dict.fromkeys(COLUMNS) | dict.fromkeys(IDENTITY, "") | {"status": "ok", "marks": []}
        facts |= {"network": str(at), "environment": str(framework), "threads": 2, "batch": 1}
        own = logs[at, framework]
        medians = {trial + 1: math.exp(log) for trial, log in enumerate(own)}
        rows.append(
            facts | {"medians": medians, "seconds": math.exp(own.mean()), "repeats": trials}
        )
    return pd.DataFrame(rows)


def simulated(count: int) -> pd.DataFrame:
    """A row for each noise and number of trials: shares in per cent."""
    rows = []
    for name, noise in NOISES.items():
        for trials in (2, 3):
            random = np.random.default_rng(trials)
            drawn = [run(random, noise, trials) for _ in range(count)]
            held = np.mean([_held(cells) for cells in drawn], axis=0)
            wrong = [words.SLOWER in words.estimate(cells).words.values() for cells in drawn]
            shares = {"times hold": held[0], "ratios hold": held[1]}
            shares["runs with a wrong slower"] = np.mean(wrong)
            for slower in (0.03, 0.05, 0.1):
                few = [run(random, noise, trials, slower) for _ in range(max(count // 4, 10))]
                shares[f"{100 * slower:g} % found"] = np.mean([_found(cells) for cells in few])
            texts = {title: f"{100 * share:.1f}" for title, share in shares.items()}
            rows.append({"noise": name, "trials": trials} | texts)
    return pd.DataFrame(rows)


def default(count: int) -> pd.DataFrame:
    """A row for each noise: shares in per cent of tables, and of pairs, and how many further runs there were."""
    rows = []
    for name in ("quiet", "busy"):
        random = np.random.default_rng(7)
        alike = [_measured_further(run(random, NOISES[name], MOST, places=5)) for _ in range(count)]
        one = [
            _measured_further(run(random, NOISES[name], MOST, 0.15, places=5))
            for _ in range(max(count // 4, 10))
        ]
        slower = [
            pair for cells in one for pair in words.estimate(cells).pairs if _is_of(pair, "1")
        ]
        found = [pair.word == words.SLOWER and _environment(pair.one) == "1" for pair in slower]
        wrong = [any(pair.word in UNEQUAL for pair in words.estimate(each).pairs) for each in alike]
        of_all = [any(each.word == words.SLOWER for each in _overall(cells)) for cells in alike]
        shares = {"tables with a wrong word": wrong, "overall wrong": of_all, "15 % found": found}
        further = np.mean([cells["repeats"].sum() - 2 * len(cells) for cells in alike])
        texts = {title: f"{100 * np.mean(share):.1f}" for title, share in shares.items()}
        rows.append({"noise": name} | texts | {"further runs": f"{further:.0f}"})
    return pd.DataFrame(rows)


def _measured_further(cells: pd.DataFrame) -> pd.DataFrame:
    """What is left of runs of which each result has MOST, where FURTHER of them are chosen one by one after two."""
    cells = cells.assign(looks=[list(range(2, MOST + 1))] * len(cells))
    keys = [words.key(row) for row in cells.to_dict("records")]
    measured = {name: 2 for name in keys}
    whole, left = list(cells["medians"]), FURTHER
    for _ in range(2, MOST + 1):
        medians = [
            {number: own[number] for number in sorted(own)[: measured[name]]}
            for name, own in zip(keys, whole, strict=True)
        ]
        seconds = [math.exp(np.mean(np.log(list(own.values())))) for own in medians]
        counts = [len(own) for own in medians]
        cells = cells.assign(medians=medians, means=medians, seconds=seconds, repeats=counts)
        pairs = [pair for pair in words.estimate(cells).pairs if not pair.is_decided]
        chosen = repeats.choose(pairs, dict.fromkeys(keys, 1.0), left)
        left -= len(chosen)
        measured |= {name: min(measured[name] + 1, MOST) for name in chosen}
    return cells


def _overall(cells: pd.DataFrame) -> list[overall.Overall]:
    pairs = both_ways(words.estimate(cells).pairs)
    return list(overall.overall(words.places(cells, pairs), pairs).values())


def _environment(key: str) -> str:
    return key.split("/")[-1].split(".")[0]


def _is_of(pair: Pair, environment: str) -> bool:
    return environment in (_environment(pair.one), _environment(pair.other))


def _held(cells: pd.DataFrame) -> tuple[float, float]:
    """The shares of times and of ratios whose interval holds 1, the truth."""
    said = words.estimate(cells)
    times = []
    for row in cells.to_dict("records"):
        medians = list(row["medians"].values())
        prior = said.times.get(tuple(row[name] for name in KIND))
        times.append(intervals.of_repeats(medians, combined(spread_of(np.log(medians)), prior)))
    pairs = [pair.with_error.interval for pair in said.pairs if pair.with_error]
    return tuple(np.mean([low <= 1 <= high for _, low, high in each]) for each in (times, pairs))


def _found(cells: pd.DataFrame) -> float:
    said = words.estimate(cells).words
    second = cells[cells["environment"] == "1"]
    return float(np.mean([said[words.key(row)] == words.SLOWER for _, row in second.iterrows()]))


def seen(folder: Path) -> None:
    """Prints what the shards of a results folder say."""
    parts = [shard.read_parts(path) for path in sorted(folder.glob("cells/*/step/*.parquet"))]
    frame = pd.concat(
        [pd.DataFrame([row] * len(table)).assign(**table.to_pandas()) for row, table, _ in parts],
        ignore_index=True,
    )
    cells = summarise(frame)
    timed = cells[(cells["status"] == "ok") & (cells["repeats"] > 1)]
    disturbed = sum(interference.disturbed(row) for row, _, _ in parts if row["status"] == "ok")
    print(f"{len(timed)} results of several processes; {disturbed} processes were disturbed.")
    for _, alike in timed.groupby(KIND, sort=False):
        print(f"\n{alike['threads'].iloc[0]} threads, {len(alike)} results")
        ends = zip(alike["high"], alike["low"], strict=True)
        line("half an interval of a time", [math.log(high / low) / 2 for high, low in ends])
        trials(alike)
        twice(alike)


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
    """A/A: each two processes of a result that follow one another, by what the other results let expect of two."""
    logs = [np.log(list(each.values())) for each in cells["medians"]]
    own = [spread_of(list(each)) for each in logs]
    different = []
    for at, each in enumerate(logs):
        prior = priors({"": own[:at] + own[at + 1 :]})[""]
        limit = t.ppf(0.975, prior.degrees) * math.sqrt(2 * prior.scale)
        different += list(np.abs(np.diff(each)) > limit)
    share = binomtest(int(sum(different)), len(different)).proportion_ci(0.95, "exact")
    print(
        f"  A/A: {sum(different)} of {len(different)} pairs of processes called different = "
        f"{100 * np.mean(different):.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f} %)"
    )


if __name__ == "__main__":
    main()
