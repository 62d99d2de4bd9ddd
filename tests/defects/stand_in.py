"""An adapter without a framework: the golden code with weights kept in float32, to plant defects in."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from shared import data, narrow
from shared.specification import drawing
from steptime import networks
from steptime.networks.layers import LAYERS
from steptime.prove import golden
from steptime.tasks import that_proves

RIGHT = {kind: layer.forward for kind, layer in LAYERS.items()}


@contextmanager
def computing(operations):
    """Layers are computed by these functions, by kind, as long as this lasts."""
    rightful = golden.forward_of
    golden.forward_of = operations.__getitem__
    try:
        yield
    finally:
        golden.forward_of = rightful


class Trainer:
    """Trains a specification as an adapter's trainer does; a defect overrides what it breaks."""

    operations = RIGHT
    threads = 1
    settings: dict[str, str] = {}

    def __init__(self, spec, weights, inputs, labels):
        # Its masks are drawn anew in each step.
        random = np.random.RandomState(spec.get("seed", 0))
        self.spec = drawing(spec, random)
        self.inputs, self.labels = inputs, labels
        self.values, self.state = weights, {}
        self.parameters = sum(values.size for values in weights.values())

    def run(self, steps):
        for _ in range(steps):
            loss = self.step()
        return loss

    def step(self):
        with computing(self.operations):
            taken = golden.train_step(self.spec, self.values, self.inputs, self.labels, self.state)
        self.update(taken)
        return float(np.float32(taken.loss))

    def update(self, taken):
        self.values = {name: values.astype(np.float32) for name, values in taken.updated.items()}

    def weights(self, names=None):
        return self.values


def replacing(**operations):
    """A trainer in which some operations are others."""
    return type("Replaced", (Trainer,), {"operations": dict(RIGHT, **operations)})


def job(spec):
    """The job of a worker that collects what a proof of the specification needs."""
    return {
        "task": "proof",
        "proves": that_proves(spec),
        "spec": spec,
        "masks": networks.masks.of_network(spec, narrow.BATCH),
        "mode": "eager",
        "precision": "float32",
        "batch": narrow.BATCH,
        "threads": 1,
        "device": "cpu",
        "rank": 0,
        "ranks": 1,
        "exchange": "",
    }


def adapter(trainer=Trainer, mutate=None, feed=None):
    """An adapter that trains `mutate(spec)` by `trainer` on `feed(inputs, labels)`.

    Parameters that the mutated network shares with the given one, in name and shape, start as given.
    """

    def build(job):
        spec, weights, inputs, labels = job.spec, job.weights, job.inputs, job.labels
        if mutate:
            rate = spec["optimiser"]["learning_rate"]
            spec = dict(mutate(spec), optimiser={"name": "sgd", "learning_rate": rate})
            own = data.initial_weights(spec)
            weights = {
                name: weights[name]
                if name in weights and weights[name].shape == values.shape
                else values
                for name, values in own.items()
            }
        if feed:
            inputs, labels = feed(inputs, labels)
        return trainer(spec, weights, inputs, labels)

    return SimpleNamespace(build=build)
