"""Collects what a proof needs from a framework: losses and weights of a few training steps of the narrow network.

Two trainers are built from the same start values. The first takes one step at `RECOVERY_RATE`; its weights show the
gradient of the very step that is timed. The second takes ten steps at the specification's own rate, in calls of `CALLS`
steps. `prove.compare` judges them. The job has masks (see `collect`) and output, the file to write.
"""

import numpy as np

from shared import data
from shared.narrow import CALLS, RECOVERY_RATE
from shared.specification import at_rate, without_dropout

from .. import building, masks
from . import training


def run(loaded, job, emit):
    """Writes what was collected to the job's `output`."""
    write(job["output"], collect(loaded.adapter, job))
    emit("done")


def collect(adapter, job):
    """Trains a job's specification as a proof wants it; returns numbers and arrays by name.

    `parameters`, `frozen_parameters`: the framework's own counts. `first_losses` (2): loss of the first step of each
    trainer. `losses` (calls): loss of the last step of each call. `recovery/<name>`: weights after one step at
    `RECOVERY_RATE`. `after1/<name>`, `after4/<name>` ...: weights after so many steps at the specification's rate, at
    the end of each call. `statistics/<name>`: running averages of batch normalisation after the one step, where the
    trainer shows them. Dropout is off. `masks/<name>`: what dropout drops, for each specification in the job's `masks`.
    For a network that is trained on real images, also the numbers of `_collect_training`.
    """
    spec, batch = job["spec"], job["batch"]

    def build(spec):
        inputs, labels = data.synthetic_batch(spec, batch)
        return building.make(adapter, job, spec, data.initial_weights(spec), inputs, labels)

    still = without_dropout(spec)
    trainer = build(at_rate(still, RECOVERY_RATE))
    first_loss = trainer.run(1)
    collected = {
        "parameters": int(trainer.parameters),
        "frozen_parameters": int(getattr(trainer, "frozen_parameters", 0)),
    }
    keep(collected, "recovery", trainer)
    if hasattr(trainer, "statistics"):
        known = trainer.statistics()
        for node in spec["nodes"]:
            for role in ("mean", "variance") if node["op"] == "batch_norm" else ():
                name = "{}/{}".format(node["name"], role)
                kept = known.get(name, np.zeros(node["in_shape"][:1]))
                collected["statistics/" + name] = np.array(kept, np.float32)
    del trainer

    trainer = build(still)
    losses, done = [], 0
    for steps in CALLS:
        losses.append(trainer.run(steps))
        done += steps
        keep(collected, "after{}".format(done), trainer)
    collected["losses"] = np.array(losses, np.float64)
    collected["first_losses"] = np.array([first_loss, losses[0]], np.float64)
    del trainer
    if "dataset" in spec:
        _collect_training(collected, build, job)
    for name, small in job["masks"].items():
        collected["masks/" + name] = masks.read(adapter, job, small)
    return collected


def fed(job, number=0):
    """Returns the mini-batches that the rank of a job is fed in a proof."""
    ranks = job["ranks"]
    shares = (
        [np.split(values, ranks)[job["rank"]] for values in (inputs, labels)] + [rate]
        for inputs, labels, rate in data.fed_batches(job["spec"], job["batch"])
    )
    return training.Fed("proof", number, len(data.FED), shares)


def _collect_training(collected, build, job):
    """Collects `scores` of a fresh trainer, and `fed_loss`, `fed/<name>` after a `train` with `data.fed_batches`."""
    spec = job["spec"]
    trainer = build(dict(spec, seed=data.SEED))
    inputs, _ = data.synthetic_batch(spec, job["batch"])
    collected["scores"] = np.array(trainer.scores(inputs), np.float32)
    del trainer
    trainer = build(without_dropout(spec))
    collected["fed_loss"] = np.float64(trainer.train(fed(job)))
    keep(collected, "fed", trainer)


def write(path, collected):
    """Writes what was collected as one .npz file with exactly this name."""
    with open(str(path), "wb") as handle:
        np.savez(handle, **collected)


def keep(collected, when, trainer):
    """Keeps the weights that a trainer has now."""
    for name, values in trainer.weights().items():
        # A copy: some frameworks hand out a view that the next step writes to.
        collected["{}/{}".format(when, name)] = np.array(values, np.float32)
