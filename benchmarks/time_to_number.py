"""Seconds until a number is known: this project's sampling beside a fixed protocol and pyperf's, on the same step.

    .venv/bin/python benchmarks/time_to_number.py FILE [MINUTES]

Each of the three trains the same network in the same framework, in turn. `ours` stops when the 95 % interval is within
2 % or its budget is spent, `fixed` runs 50 iterations after 10 of warm-up, and `pyperf` follows that tool's documented
defaults: 20 processes of one warm-up value and 3 values of at least 0.1 s. It is emulated, and only RUN of its
processes are run: their mean time counts 20 times, and their spread gives the interval that 20 would have. Runs are
added to FILE; it stops after MINUTES (4) and goes on the next time.
"""

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cells
import pandas as pd
from cells import configuration, grid
from scipy.special import stdtrit

from shared.statistics import median, median_interval
from steptime import machine, networks
from steptime.cells import measure as measure_cell
from steptime.environments import interpreter
from steptime.machine.variables import isolated
from steptime.supervisor import supervise

# A network whose step is slower than a block, and one of which several make a block; mini-batch sizes.
NETWORKS = {"slow": ("alexnet", 8), "fast": ("lstm32", 8)}
SAMPLING = {"budget_seconds": 10, "precision": 0.02, "least_samples": 6}
PRECISION = 2.0  # %, the half interval that a number is wanted with
PROCESSES = 20
RUN = 9
Numbers = tuple[float, ...]
COLUMNS = ("step ms", "wall s", "half interval %", "alike: half interval %", "to 2 % s")
ROUNDS = 3


def main() -> None:
    """Runs what is missing for a while, and prints the table."""
    loaded = configuration.load(cells.ROOT, {"grid": "ci"})
    plan = grid.expand(loaded, len(os.sched_getaffinity(0)))
    runners = {cell.environment: cell for cell in plan.cells.values()}
    path = Path(sys.argv[1])
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    end = time.monotonic() + 60 * float(sys.argv[2] if len(sys.argv) > 2 else 4)
    for key in [key for key in keys(runners) if key not in [run["key"] for run in done]]:
        if time.monotonic() > end:
            break
        done.append({"key": key} | timed(loaded, runners[key[2]], *NETWORKS[key[1]], key[3]))
        path.write_text("".join(json.dumps(run) + "\n" for run in done))
    print(table(done).to_string(index=False))


def keys(runners: dict[str, grid.Cell]) -> list[list[Any]]:
    """[round, speed, environment, protocol, process] of every run, in the order in which they are made: every second
    round the other way round.
    """
    return [
        [turn, speed, environment, protocol, process]
        for turn in range(ROUNDS)
        for speed in NETWORKS
        for environment in runners
        for protocol in ("ours", "pyperf", "fixed")[:: -1 if turn % 2 else 1]
        for process in range(RUN // ROUNDS if protocol == "pyperf" else 1)
    ]


def timed(
    loaded: configuration.Configuration, cell: grid.Cell, network: str, batch: int, protocol: str
) -> dict[str, Any]:
    """One process of a protocol, as a worker is run: its samples, and the wall seconds from its start to its end."""
    framework = loaded.entry_of(cell.environment)
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "protocol": protocol,
            "task": "step",
            "precision": "float32",
            "device": "cpu",
            "rank": 0,
            "ranks": 1,
            "exchange": "",
            "adapter": framework["adapter"],
            "spec": networks.specify(network, loaded.networks),
            "batch": batch,
            "threads": 1,
            "mode": cell.mode,
            "sampling": SAMPLING,
            "answer": f"{folder}/answer.json",
        }
        prefix = interpreter.prefix_of(cell.environment)
        variables = measure_cell.fill(framework["variables"], 1, cell.mode, prefix)
        variables |= supervise.own_folders(prefix, folder)
        before = time.monotonic()
        ran = subprocess.run(
            [prefix / "bin/python", Path(__file__).with_name("protocol.py")],
            input=json.dumps(job),
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=isolated(variables, "cpu", supervise.worker_path(folder)),
            preexec_fn=lambda: os.sched_setaffinity(0, machine.cpus_for(1)),
        )
        wall = time.monotonic() - before
        if ran.returncode:
            sys.exit(ran.stderr)
        return {"wall": wall} | json.loads(Path(job["answer"]).read_text())


def table(done: list[dict[str, Any]]) -> pd.DataFrame:
    """One row for each network, framework and protocol: its wall seconds, its half interval, and that interval as it
    would be if it knew that neighbouring samples are alike; and the wall seconds to an interval of PRECISION by the
    latter: as many times the samples as it is too wide, squared.
    """
    runs = pd.DataFrame(done)
    runs[["speed", "environment", "protocol"]] = [key[1:4] for key in runs["key"]]
    rows = []
    for (speed, environment, protocol), same in runs.groupby(
        ["speed", "environment", "protocol"], sort=False
    ):
        found = _of_processes(same) if protocol == "pyperf" else _of_one_process(same)
        names = {
            "network": f"{speed} {NETWORKS[speed][0]}",
            "environment": environment,
            "protocol": protocol,
        }
        rows.append(names | dict(zip(COLUMNS, found, strict=True)))
    return pd.DataFrame(rows).round(1)


def _of_one_process(runs: pd.DataFrame) -> Numbers:
    """Medians over the rounds, each of one process with the interval of its samples."""
    found = []
    for run in runs.to_dict("records"):
        middle, (low, high) = median(run["seconds"]), median_interval(run["seconds"])
        half = 50 * (high - low) / middle
        honest = half * _widening(run["seconds"])
        found.append(
            (1000 * middle, run["wall"], half, honest, _needed(run["wall"], run["sampled"], honest))
        )
    return tuple(map(median, zip(*found, strict=True)))


def _widening(samples: list[float]) -> float:
    """By how much an interval grows that knows the correlation r of each sample with the next: sqrt((1 + r) / (1 - r))
    (Bayley and Hammersley, "The effective number of independent observations in an autocorrelated time series",
    Supplement to the Journal of the Royal Statistical Society 8, 1946), of the logarithms' first autocorrelation.
    """
    logs = [math.log(value) for value in samples]
    middle = statistics.fmean(logs)
    beside = sum((one - middle) * (other - middle) for one, other in itertools.pairwise(logs))
    r = max(0.0, beside / sum((value - middle) ** 2 for value in logs))
    return math.sqrt((1 + r) / (1 - r))


def _of_processes(runs: pd.DataFrame) -> Numbers:
    """What PROCESSES of these processes take and give: Student's interval of their means, which are independent."""
    means = [statistics.fmean(seconds) for seconds in runs["seconds"]]
    deviation = statistics.stdev(means) if len(means) > 1 else math.nan
    half = (
        100
        * stdtrit(PROCESSES - 1, 0.975)
        * deviation
        / math.sqrt(PROCESSES)
        / statistics.fmean(means)
    )
    wall = PROCESSES * runs["wall"].mean()
    return 1000 * statistics.fmean(means), wall, half, half, _needed(wall, wall, half)


def _needed(wall: float, sampled: float, half: float) -> float:
    """Wall seconds to an interval of PRECISION, when `sampled` of `wall` seconds made one of +-`half` %."""
    return wall + sampled * max(0.0, (half / PRECISION) ** 2 - 1)


if __name__ == "__main__":
    main()
