"""Defects of training planted around a real adapter: the framework trains, feeds or drops as the defect says.

Copied into a worker beside the adapters; the worker reads the defect's name from PLANTED_DEFECT. Plain Python that
3.6 can import: standard library and numpy.
"""

import copy
import os

import numpy as np

from shared import data
from shared.specification import at_rate


def build(adapter, job):
    """The trainer of an adapter's module, with the defect."""
    return DEFECTS[os.environ["PLANTED_DEFECT"]](adapter, job)


class Right:
    """The adapter's own trainer as it is."""

    def __init__(self, adapter, job):
        self.adapter, self.job = adapter, job
        self.trainer = self.anew(job)

    def anew(self, job, weights=None):
        """Another trainer, from these weights or from those of the job."""
        own = copy.copy(job)
        weights = job.weights if weights is None else weights
        # Copies: some frameworks hand out views of what they train.
        own.weights = {name: np.array(value, np.float32) for name, value in weights.items()}
        return self.adapter.build(own)

    def __getattr__(self, name):
        return getattr(self.trainer, name)


class Unfed(Right):
    """Trains on its first batch, whatever it is fed."""

    def train(self, batches):
        own = data.synthetic_batch(self.job.spec, len(self.job.inputs))
        return self.trainer.train(own + (rate,) for _, _, rate in batches)


class Rateless(Right):
    """Takes no learning rate but its first."""

    def train(self, batches):
        rate = self.job.learning_rate
        return self.trainer.train((inputs, labels, rate) for inputs, labels, _ in batches)


class LastLoss(Right):
    """Returns the last loss in place of the mean."""

    def train(self, batches):
        return [self.trainer.train([batch]) for batch in batches][-1]


class Forgetful(Right):
    """Begins its averages anew in each step."""

    def run(self, steps):
        for _ in range(steps):
            self.trainer = self.anew(self.job, self.trainer.weights())
            loss = self.trainer.run(1)
        return loss


class Descending(Right):
    """Trains by plain SGD, whatever the optimiser."""

    def __init__(self, adapter, job):
        job = copy.copy(job)
        job.spec = at_rate(job.spec, job.learning_rate)
        super().__init__(adapter, job)


class DroppingScores(Right):
    """Judges without some of the values that go into the dense layers behind a dropout."""

    def scores(self, inputs):
        random, weights = np.random.RandomState(1), dict(self.trainer.weights())
        dropped = {}
        for node in self.job.spec["nodes"]:
            rate = node.get("rate") if node["op"] == "dropout" else dropped.get(node["inputs"][0])
            if node["op"] in ("dropout", "flatten"):
                dropped[node["name"]] = rate
            elif node["op"] == "dense" and rate:
                weight = np.array(weights[node["name"] + "/weight"])
                kept = (random.random_sample(len(weight)) >= rate) / (1 - rate)
                weights[node["name"] + "/weight"] = np.float32(weight * kept[:, None])
        return self.anew(self.job, weights).scores(inputs)


DEFECTS = {
    kind.__name__: kind
    for kind in (Right, Unfed, Rateless, LastLoss, Forgetful, Descending, DroppingScores)
}
