"""Trains one network on real images until an accuracy, and writes what every epoch took and reached, and what it used.

    python -m train.cell --job JSON --networks config/networks.yaml --manifest results/environments/E.json \
        --proof results/proofs/E.M-N.json --train T.npz --test T.npz --shard results/training/... --log
        logs/training/...

As for a cell that is timed, every way to fail becomes a file with a status and a reason.
"""

import os
import sys
from typing import Any

from steptime.cells import measure as cells
from steptime.datasets import DatasetError, sums
from steptime.supervisor import resources
from steptime.supervisor.supervise import Outcome

TIMED_REGION = ("feed", "copy", *cells.TIMED_REGION)
STOPPED = {
    "accuracy": "the accuracy was reached",
    "epochs": "all epochs were trained",
    "seconds": "the time was over",
}


def main() -> None:
    """Command line. Exits with 0 when a file was written, whatever its status."""
    options = cells.parse(
        "Train one network on real images.", train="images to train on", test="images to test on"
    )
    attempt = cells.Attempt(options)
    try:
        checked = sums(options.train, options.test)
    except DatasetError as error:
        sys.exit(str(error))
    images = {"train": str(options.train.absolute()), "test": str(options.test.absolute())}
    used = resources.Watch(attempt.devices)
    outcome = attempt.run({"task": "training", "plan": attempt.job["plan"], "images": images}, used)
    facts = attempt.columns(outcome, TIMED_REGION) | column_values(
        attempt.job, attempt.spec, outcome
    )
    facts |= {"dataset_sha256": checked, "host_energy_joules": used.host_joules()}
    from steptime.cells import shard

    attempt.write(
        shard.write_training,
        facts,
        outcome,
        outcome.epochs,
        {"resources": used.series()},
        result(outcome),
    )


def result(outcome: Outcome) -> str:
    """What came out of a training, in words."""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.reason}"
    last, count = outcome.epochs[-1], len(outcome.epochs)
    seconds = sum(epoch["seconds"] for epoch in outcome.epochs)
    why = STOPPED[outcome.events["trained"]["stopped"]]
    return f"{100 * last['accuracy']:.2f} % after {count} epoch{'s'[: count != 1]} and {seconds:.4g} s: {why}"


def column_values(job: dict[str, Any], spec: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The constant columns of a training alone that follow from its job, its specification and what the worker said."""
    plan = job["plan"]
    return {
        "dataset_label": job["dataset"],
        "whole_dataset": spec["dataset"],
        "seed": plan["seed"],
        "target_accuracy": plan["target_accuracy"],
        "most_epochs": plan["epochs"],
        "budget_seconds": plan["budget_seconds"],
        "stopped": outcome.events.get("trained", {}).get("stopped"),
    }


if __name__ == "__main__":
    main()
    # As in measure.cell: to take pandas and pyarrow down would cost the next one a fifth of a second.
    sys.stderr.flush()
    os._exit(0)
