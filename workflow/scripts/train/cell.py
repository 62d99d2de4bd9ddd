"""Trains one network on real images until an accuracy, and writes what every epoch took and reached, and what it used.

    python -m train.cell --job JSON --networks config/networks.yaml --manifest results/environments/E.json \
        --proof results/proofs/E.M-N.json --train T.npz --test T.npz --shard results/training/... --log
        logs/training/...

As for a cell that is timed, every way to fail becomes a file with a status and a reason.
"""

import argparse
import json
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from datasets import DatasetError, sums
from environments import interpreter
from measure import cell as cells
from measure import gpu, interference, machine, placement, progress, resources, software
from measure.supervise import Outcome, Watch, run_worker
from worker import networks

TIMED_REGION = ("feed", "copy", *cells.TIMED_REGION)
STOPPED = {"accuracy": "the accuracy was reached", "epochs": "all epochs were trained", "seconds": "the time was over"}


def main() -> None:
    """Command line. Exits with 0 when a file was written, whatever its status."""
    options = _options()
    job = json.loads(options.job)
    cell = job["cell"]
    title = f"{cells.describe(cell)}, trained on {job['dataset']}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if refused := placement.refusal(cell["platform"]):
        options.log.parent.mkdir(parents=True, exist_ok=True)
        options.log.write_text(f"{refused}\n")
        sys.exit(refused)
    progress.announce(title)
    began, clock = datetime.now(UTC), time.monotonic()
    manifest = json.loads(options.manifest.read_text())
    proof = json.loads(options.proof.read_text())
    catalogue = yaml.load(options.networks.read_text(), Loader=yaml.CSafeLoader)
    spec = networks.specify(cell["network"], catalogue)
    try:
        images_sums = sums(options.train, options.test)
    except DatasetError as error:
        sys.exit(str(error))
    surroundings = cells.Surroundings(options.shard)
    shown = placement.visible_devices(cell["devices"]) if cell["device"] == "gpu" else {}
    devices = gpu.Watch(shown["CUDA_VISIBLE_DEVICES"].split(",")) if shown else None
    used = resources.Watch(devices)
    if manifest["status"] != "ok":
        outcome = Outcome(manifest["status"], manifest["reason"])
    elif proof["status"] != "ok":
        outcome = Outcome(proof["status"], proof["reason"])
    else:
        images = {split: str(getattr(options, split).absolute()) for split in ("train", "test")}
        watches = [*([devices] if devices else []), used]
        outcome = train(job, spec, images, options.log, watches, shown, surroundings)
    surroundings.look()
    facts = column_values(job, spec, outcome, catalogue) | (devices.columns() if devices else {})
    facts |= {
        "dataset_sha256": images_sums,
        "host_energy_joules": used.host_joules(),
        "proof_id": proof.get("proof_id"),
        "environment_digest": manifest["digest"],
        "machine_id": machine.identify(surroundings.machine),
        "workflow_commit": surroundings.workflow["commit"],
        "started_at": began,
    }
    footer = {
        "machine": surroundings.machine,
        "software": software.describe(cell, outcome, manifest),
        "workflow": surroundings.workflow,
        "job": job,
        "worker": outcome.events,
        "resources": used.series(),
        "ended_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    from measure import shard

    try:
        shard.write_training(options.shard, facts, outcome.epochs, footer)
    except OSError as error:
        sys.exit(f"{options.shard} cannot be written ({error.strerror}): free some space and run again.")
    marked = " (disturbed: something else was at work)" if interference.disturbed(facts) else ""
    progress.report(title, result(outcome) + marked, time.monotonic() - clock)


def train(
    job: dict[str, Any],
    spec: dict[str, Any],
    images: dict[str, str],
    log: Path,
    watches: list[Watch],
    shown: dict[str, str],
    surroundings: cells.Surroundings,
) -> Outcome:
    """Runs the worker of a training whose environment stands and whose network is proven; `shown` are its GPUs."""
    cell, limits = job["cell"], job["limits"]
    memory = limits.get("memory_gib", cells.available_gib(cell["platform"]) * cells.MEMORY_SHARE)
    prefix = interpreter.prefix_of(cell["environment"])
    return run_worker(
        prefix,
        {
            "task": "train",
            "adapter": job["adapter"],
            "spec": spec,
            "mode": cell["adapter_mode"],
            "batch": cell["batch"],
            "threads": cell["threads"],
            "device": cell["device"],
            "parameters": networks.count_parameters(spec),
            "plan": job["plan"],
            "images": images,
        },
        machine.cpus_for(cell["threads"]),
        cells.fill(job["variables"], cell["threads"], cell["adapter_mode"], prefix) | shown,
        limits["seconds"],
        int(memory * 2**30),
        log,
        meanwhile=surroundings.look,
        watches=watches,
    )


def result(outcome: Outcome) -> str:
    """What came out of a training, in words."""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.reason}"
    last, count = outcome.epochs[-1], len(outcome.epochs)
    seconds = sum(epoch["seconds"] for epoch in outcome.epochs)
    why = STOPPED[outcome.events["trained"]["stopped"]]
    return f"{100 * last['accuracy']:.2f} % after {count} epoch{'s'[: count != 1]} and {seconds:.4g} s: {why}"


def column_values(
    job: dict[str, Any], spec: dict[str, Any], outcome: Outcome, catalogue: dict[str, Any]
) -> dict[str, Any]:
    """The constant columns that follow from the cell, its specification and what the worker said."""
    plan = job["plan"]
    return cells.columns_of_worker(job["cell"], spec, outcome, catalogue, TIMED_REGION) | {
        "dataset_label": job["dataset"],
        "whole_dataset": spec["dataset"],
        "seed": plan["seed"],
        "target_accuracy": plan["target_accuracy"],
        "most_epochs": plan["epochs"],
        "budget_seconds": plan["budget_seconds"],
        "stopped": outcome.events.get("trained", {}).get("stopped"),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train one network on real images.")
    parser.add_argument("--job", required=True, help="the cell and when its training ends, as JSON")
    for name, text in {
        "networks": "config/networks.yaml",
        "manifest": "manifest of the environment",
        "proof": "proof of the network in the environment",
        "train": "images to train on",
        "test": "images to test on",
        "shard": "the Parquet file to write",
        "log": "what the framework prints",
    }.items():
        parser.add_argument(f"--{name}", required=True, type=Path, help=text)
    return parser.parse_args()


if __name__ == "__main__":
    main()
    # As in measure.cell: to take pandas and pyarrow down would cost the next one a fifth of a second.
    sys.stderr.flush()
    os._exit(0)
