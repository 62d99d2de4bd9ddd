"""The adapter of a stand-in framework whose ranks are groups of two that do not wait for one another.

Its mode is what is wrong with it. Tests put it beside the real adapters of a worker, with the two
stand-ins that it is made of.
"""

import numpy as np

from shared import grouping

from ... import ranks
from . import apart, together
from .apart import golden

# Wrong in one group too; the others are wrong where there are several.
ALWAYS = ("summed", "absent")
MODES = ("right", "summed", "absent", "averaged", "half_absent", "same_share")
TASKS = ("step", "stragglers", "training", "follow", "turns")
_WIRES = []


def versions():
    return {"framework_version": "1.0"}


def build(job):
    return ranks.joined(Trainer)(job)


class Trainer(apart.Trainer):
    """The first of a group tells the other its weights, hears the other's gradients, and updates the weights of all."""

    hear = together.Trainer.hear

    def __init__(self, job):
        groups = grouping.groups(job.ranks, job.exchange)
        (self.number,) = [number for number, each in enumerate(groups) if job.rank in each]
        members = groups[self.number]
        if not _WIRES:
            _WIRES.extend(together.meet(job, members))
        self.leads, (self.wire,) = job.rank == members[0], _WIRES
        self.wrong = job.mode if job.mode in ALWAYS or len(groups) > 1 else ""
        super().__init__(job)
        if self.wrong == "same_share":
            self.inputs, self.labels = ranks.share(job, job.rank - members[0])

    def learn(self, inputs, labels, rate, number=0):
        before = self.shared.others()
        self.seen = self.weights()
        self.told(self.seen)
        taken = golden.train_step(self.spec, self.seen, inputs, labels)
        self.average(taken.gradients)
        if self.leads:
            self.update({name: rate * each for name, each in taken.gradients.items()})
            self.seen = self.weights()
            self.shared.count(before)
        return float(np.float32(taken.loss))

    def told(self, arrays):
        """Those of the first of the group, in place."""
        own = flat(arrays)
        if self.leads:
            self.wire.sendall(own.tobytes())
        else:
            fill(arrays, self.hear(self.wire, own))

    def average(self, gradients):
        """The mean of both, in place of the first one's."""
        own = flat(gradients)
        if not self.leads:
            absent = self.wrong == "absent" or self.wrong == "half_absent" and self.number
            self.wire.sendall((own * (not absent)).tobytes())
        else:
            parts = {"summed": 1, "averaged": self.job.ranks}.get(self.wrong, 2)
            fill(gradients, (own + self.hear(self.wire, own)) / parts)


def flat(arrays):
    return np.concatenate([each.ravel() for each in arrays.values()]).astype(np.float64)


def fill(arrays, values):
    start = 0
    for name, each in arrays.items():
        arrays[name] = values[start : start + each.size].reshape(each.shape).astype(each.dtype)
        start += each.size
