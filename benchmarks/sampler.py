"""What it costs a training that its resources are noted: epochs of one process, noted and not, in turn (A/A/B).

    python benchmarks/sampler.py --environment mxnet-1.9 --rounds 5

Four epochs are a round, in an order that changes from round to round: "off" twice (A/A: what differs without a
reason), "on" as every training is watched, and "often", fifty times as often. Told are the ratios of an epoch to the
"off" of its round, in seconds and in CPU seconds of the worker: other programs on the machine change the first much
more.
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import geometric_mean

import psutil
from cells import ROOT, configuration, prove

from steptime import machine, networks
from steptime.cells.measure import fill
from steptime.environments import interpreter
from steptime.plan import grid
from steptime.plan.cell import Cell
from steptime.supervisor import resources, supervise

INTERVALS = {
    "off": None,
    "off again": None,
    "on": resources.INTERVAL_SECONDS,
    "often": resources.INTERVAL_SECONDS / 50,
}
KINDS = list(INTERVALS)


class Alternating(resources.Watch):
    """Notes in some epochs and not in others; `outcome` is what tells which epoch it is."""

    def __init__(self, outcome: supervise.Outcome) -> None:
        super().__init__()
        self.outcome = outcome

    def look(self, pid: int) -> None:
        self.interval = INTERVALS[kind_of(len(self.outcome.epochs) + 1)]
        if self.interval is not None:
            super().look(pid)


def kind_of(epoch: int) -> str:
    """What is done in an epoch, counted from 1, which is warm-up."""
    number, place = divmod(epoch - 2, len(KINDS))
    return KINDS[(place + number) % len(KINDS)]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="What noting resources costs a training.")
    loaded = configuration.load(ROOT, {"grid": "desktop"})
    parser.add_argument("--environment", default=loaded.environments_of("torch")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.chdir(ROOT)
    cells = grid.expand(loaded, len(os.sched_getaffinity(0))).cells.values()
    training = next(
        cell
        for cell in cells
        if cell.task == "training" and cell.environment == options.environment
    )
    prove([training])
    outcome = supervise.Outcome()
    watch = Alternating(outcome)
    supervise.Outcome = lambda: outcome  # The watch must know which epoch it is.
    supervise.POLL_SECONDS = INTERVALS["often"]
    train(loaded, training, options.threads, 1 + len(KINDS) * options.rounds, watch)
    if outcome.status != "ok":
        sys.exit(f"{outcome.status}: {outcome.reason}")
    print(
        f"{len(watch.rows)} notes took {1e6 * watch.own_seconds / len(watch.rows):.0f} us of CPU time each"
    )
    for value in ("seconds", "cpu_seconds"):
        rounds = [
            outcome.epochs[start : start + len(KINDS)]
            for start in range(1, len(outcome.epochs), len(KINDS))
        ]
        for kind in KINDS:
            ratios = [
                next(epoch[value] for epoch in group if kind_of(epoch["epoch"]) == kind)
                / next(epoch[value] for epoch in group if kind_of(epoch["epoch"]) == "off")
                for group in rounds
            ]
            print(
                f"{value}, {kind}: {geometric_mean(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f}) of 'off'"
            )


def train(
    loaded: configuration.Configuration,
    training: Cell,
    threads: int,
    epochs: int,
    watch: resources.Watch,
) -> None:
    """Trains so many epochs in one process."""
    framework, prefix = (
        loaded.entry_of(training.environment),
        interpreter.prefix_of(training.environment),
    )
    spec = networks.specify(training.network, loaded.networks)
    folder = ROOT / "results/datasets" / training.dataset
    if not folder.is_dir():
        sys.exit(
            f"{folder} has no images: run `snakemake --cores 1 {folder.relative_to(ROOT)}/train.npz` first."
        )
    supervise.run_worker(
        prefix,
        {
            "task": "training",
            "adapter": framework["adapter"],
            "spec": spec,
            "mode": training.mode,
            "precision": "float32",
            "batch": training.batch,
            "threads": threads,
            "device": training.device,
            "rank": 0,
            "ranks": 1,
            "exchange": "",
            "parameters": networks.count_parameters(spec),
            "plan": {
                "seed": training.FIRST_SEED,
                "epochs": epochs,
                "target_accuracy": 2,
                "budget_seconds": 10**6,
            },
            "images": {split: str(folder / f"{split}.npz") for split in ("train", "test")},
        },
        machine.cpus_for(threads),
        fill(framework["variables"], threads, training.mode, prefix),
        3600,
        psutil.virtual_memory().total,
        Path("logs/benchmarks/sampler.log"),
        watches=[watch],
    )


if __name__ == "__main__":
    main()
