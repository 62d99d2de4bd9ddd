"""What it costs a training that its resources are noted: the same epochs with and without, in turn (A/A/B).

    python benchmarks/sampler.py --environment torch-2.13 --rounds 5

Each round is four processes in a changing order: "off" twice (A/A: what differs without any reason), "on" as every
training is watched, and "often", fifty times as often. Told are the ratios of the median epoch to that of the round's
first "off".
"""

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import geometric_mean, median

import psutil
from cells import ROOT, configuration, prove

from environments import interpreter
from measure import machine, resources, supervise
from measure.cell import fill
from train import plan
from worker import networks

INTERVALS = {"off": None, "off again": None, "on": resources.INTERVAL_SECONDS, "often": resources.INTERVAL_SECONDS / 50}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="What noting resources costs a training.")
    parser.add_argument("--environment", default="torch-2.13")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    os.chdir(ROOT)
    loaded = configuration.load(ROOT, {"grid": "quick"})
    found = plan.expand(loaded, len(os.sched_getaffinity(0))).values()
    training = max((entry for entry in found if entry.environment == options.environment), key=lambda e: e.threads)
    prove([training])
    ratios: dict[str, list[float]] = {name: [] for name in INTERVALS}
    for number in range(options.rounds):
        names = list(INTERVALS)
        names = names[number % len(names) :] + names[: number % len(names)]
        seconds = {name: epoch_seconds(loaded, training, INTERVALS[name], options.epochs) for name in names}
        for name, value in seconds.items():
            ratios[name].append(value / seconds["off"])
        print({name: round(value, 4) for name, value in seconds.items()}, flush=True)
    for name, found in ratios.items():
        print(f"{name}: {geometric_mean(found):.4f} (of {min(found):.4f} to {max(found):.4f}) of 'off'")


def epoch_seconds(
    loaded: configuration.Configuration, training: plan.Training, interval: float | None, epochs: int
) -> float:
    """The median of all epochs but the first of one process."""
    watch = resources.Watch(interval=interval) if interval else None
    supervise.POLL_SECONDS = min(0.5, interval or 0.5)
    framework, prefix = loaded.entry_of(training.environment), interpreter.prefix_of(training.environment)
    spec = networks.specify(training.network, loaded.networks)
    folder = ROOT / "results/datasets" / training.dataset
    outcome = supervise.run_worker(
        prefix,
        {
            "task": "train",
            "adapter": framework["adapter"],
            "spec": spec,
            "mode": training.adapter_mode,
            "batch": training.batch,
            "threads": training.threads,
            "device": training.device,
            "parameters": networks.count_parameters(spec),
            "plan": {"seed": training.seed, "epochs": epochs, "target_accuracy": 2, "budget_seconds": 10**6},
            "images": {split: str(folder / f"{split}.npz") for split in ("train", "test")},
        },
        machine.cpus_for(training.threads),
        fill(framework["variables"], training.threads, training.adapter_mode, prefix),
        3600,
        psutil.virtual_memory().total,
        Path("logs/benchmarks/sampler.log"),
        watches=[watch] if watch else [],
    )
    if outcome.status != "ok":
        sys.exit(f"{outcome.status}: {outcome.reason}")
    if watch:
        rows, own = len(watch.rows), watch.own_seconds
        print(json.dumps({"notes": rows, "microseconds_a_note": round(1e6 * own / rows, 1)}), flush=True)
    return median(epoch["seconds"] for epoch in outcome.epochs[1:])


if __name__ == "__main__":
    main()
