"""The adapter of a stand-in framework whose ranks do not wait for one another. Its mode is what is wrong with it.

Tests put it beside the real adapters of a worker. It computes by the golden code.
"""

import fcntl
import os
import sys
from pathlib import Path

import numpy as np

sys.path.append(os.environ["STAND_IN_SCRIPTS"])

from steptime.prove import golden  # noqa: E402

from ... import ranks  # noqa: E402
from ...common_memory import Shared  # noqa: E402

MODES = (
    "right", "averaged", "twice", "silent", "stale",
    "stale_call", "dropping", "shared_batch", "unfed", "fed_rateless",
)  # fmt: skip
TASKS = ("step", "stragglers", "training", "follow", "turns")


def versions():
    return {"framework_version": "1.0"}


def build(job):
    return ranks.joined(Trainer)(job)


class Trainer:
    threads = 1
    settings = {}

    def __init__(self, job):
        self.job, self.spec, start = job, job.spec, job.weights
        self.shared = Shared(job, [values.size for values in start.values()])
        self.values = {
            name: memory.reshape(start[name].shape)
            for name, memory in zip(start, self.shared.arrays, strict=True)
        }
        self.parameters, self.steps = sum(each.size for each in start.values()), 0
        if job.rank == 0:
            for name, values in start.items():
                self.values[name][...] = values
        self.seen = {name: np.array(values) for name, values in start.items()}
        self.staleness, self.is_first = self.shared.staleness, job.rank == 0
        if job.mode == "shared_batch":
            job.rank = 0
        self.inputs, self.labels = ranks.share(job)

    def run(self, steps):
        rate = self.spec["optimiser"]["learning_rate"]
        for number in range(steps):
            loss = self.learn(self.inputs, self.labels, rate, number)
        return loss

    def learn(self, inputs, labels, rate, number=0):
        mode, before = self.job.mode, self.shared.others()
        if mode != "stale" and not (mode == "stale_call" and number):
            self.seen = self.weights()
        taken = golden.train_step(self.spec, self.seen, inputs, labels)
        times = {"twice": 2, "averaged": 1 / self.job.ranks}.get(mode, 1)
        if mode == "silent" and not self.is_first or mode == "dropping" and number > 4:
            times = 0
        self.update({name: times * rate * each for name, each in taken.gradients.items()})
        self.shared.count(before)
        return float(np.float32(taken.loss))

    def update(self, steps):
        """One rank at a time: these steps are so short that two would often meet, and one of them be lost."""
        with Path(os.environ["STEPTIME_MEETING"], "turn").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            for name, step in steps.items():
                self.values[name] -= np.float32(step)

    def train(self, batches):
        mode, losses = self.job.mode, []
        for inputs, labels, rate in batches:
            if mode == "unfed" and self.job.ranks > 1:
                inputs, labels = self.inputs, self.labels
            if mode == "fed_rateless" and self.job.ranks > 1:
                rate = self.spec["optimiser"]["learning_rate"]
            losses.append(self.learn(inputs, labels, rate))
        return float(np.mean(losses))

    def scores(self, inputs):
        return golden.forward(self.spec, self.values, inputs)[0]

    def weights(self, names=None):
        return {name: np.array(self.values[name]) for name in names or self.values}
