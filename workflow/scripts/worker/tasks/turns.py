"""Collects what a proof of ranks that do not wait for one another needs: steps of each alone, and of all at once.

What such ranks come to depends on chance: on which of them is first. But when the others rest, a rank, or a group of
ranks that take each step together, must take a step of its own share of the mini-batch from the weights that the others
have left. And where a learning rate is so small that gradients hardly change, all steps at once come to the sum of all
gradients, each taken once. `prove.turns` judges them. The job has output, the file to write.
"""

import numpy as np

from shared import data, grouping
from shared.narrow import RECOVERY_RATE, SLOW, TOGETHER, TRIALS, TURNS
from shared.specification import at_rate, without_dropout

from .. import building
from . import proof


def run(loaded, job, emit):
    """Writes what was collected to the job's `output`."""
    proof.write(job["output"], collect(loaded.adapter, job))
    emit("done")


def collect(adapter, job):
    """Trains a job's specification in turns, and all at once; returns numbers and arrays by name.

    `alone<group>/<name>`: weights after the one step of a group at `RECOVERY_RATE`. `turn<number>.<group>/<name>`:
    after each of TURNS, at the specification's rate, group by group. `alone_losses` (groups) and `turn_losses` (turns,
    groups): of their last steps. For a network that is trained on real images also `fed<group>/<name>`, after a call of
    `train` in a group's turn with its share of `data.fed_batches`, and `fed_losses` (groups). `together<trial>/<name>`:
    after TOGETHER steps of all, in each of TRIALS. `staleness` of these, NaN where the framework does not know it.
    Dropout is off.
    """
    spec, batch = without_dropout(job["spec"]), job["batch"]
    groups = range(len(grouping.groups(job["ranks"], job["exchange"])))

    def build(rate):
        inputs, labels = data.synthetic_batch(spec, batch)
        start = data.initial_weights(spec)
        return building.make(adapter, job, at_rate(spec, rate), start, inputs, labels)

    collected, alone = {}, []
    for group in groups:
        trainer = build(RECOVERY_RATE)
        alone.append(trainer.turn(group, 1))
        proof.keep(collected, "alone{}".format(group), trainer)
        del trainer
    rate = spec["optimiser"]["learning_rate"]
    losses = []
    trainer = build(rate)
    for number, steps in enumerate(TURNS):
        for group in groups:
            losses.append(trainer.turn(group, steps))
            proof.keep(collected, "turn{}.{}".format(number, group), trainer)
    del trainer
    if "dataset" in spec:
        _feed(collected, build(rate), job, groups)
    trainer, step = build(rate * SLOW), 0.0
    for trial in range(TRIALS):
        trainer.run(TOGETHER, apart=step * trial / TRIALS)
        step = max(trainer.last_seconds) / TOGETHER
        proof.keep(collected, "together{}".format(trial), trainer)
    told = trainer.staleness()
    collected["staleness"] = np.float64(np.nan if told is None else told)
    collected["alone_losses"] = np.array(alone, np.float64)
    collected["turn_losses"] = np.array(losses, np.float64).reshape(len(TURNS), len(groups))
    return collected


def _feed(collected, trainer, job, groups):
    fed = []
    for group in groups:
        fed.append(trainer.feed(group, proof.fed(job)))
        proof.keep(collected, "fed{}".format(group), trainer)
    collected["fed_losses"] = np.array(fed, np.float64)
