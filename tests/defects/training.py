"""An adapter without a framework that also trains on batches that it is fed, to plant defects of training in."""

from types import SimpleNamespace

import numpy as np
from defects import stand_in

from steptime.prove import golden


class Trainer(stand_in.Trainer):
    """Trains as an adapter's trainer must, dropout and all; a defect overrides what it breaks."""

    def __init__(self, spec, weights, inputs, labels):
        super().__init__(spec, weights, inputs, labels)
        self.judged = spec

    def step(self):
        return self.learn(self.inputs, self.labels, self.spec["optimiser"]["learning_rate"])

    def train(self, batches):
        losses = [self.learn(inputs, labels, rate) for inputs, labels, rate in batches]
        return float(np.mean(losses))

    def learn(self, inputs, labels, rate):
        spec = dict(self.spec, optimiser=dict(self.spec["optimiser"], learning_rate=rate))
        with stand_in.computing(self.operations):
            taken = golden.train_step(spec, self.values, inputs, labels, self.state)
        self.update(taken)
        return float(np.float32(taken.loss))

    def scores(self, inputs):
        return golden.forward(self.judged, self.values, inputs)[0]


def adapter(trainer=Trainer):
    """An adapter whose trainers are of this class."""
    return SimpleNamespace(build=lambda job: trainer(job.spec, job.weights, job.inputs, job.labels))


class Unfed(Trainer):
    """Trains on its first batch, whatever it is fed."""

    def train(self, batches):
        return float(
            np.mean([self.learn(self.inputs, self.labels, rate) for _, _, rate in batches])
        )


class Rateless(Trainer):
    """Takes no learning rate but its first."""

    def train(self, batches):
        rate = self.spec["optimiser"]["learning_rate"]
        return float(np.mean([self.learn(inputs, labels, rate) for inputs, labels, _ in batches]))


class LastLoss(Trainer):
    """Returns the last loss in place of the mean."""

    def train(self, batches):
        return [self.learn(*batch) for batch in batches][-1]


class Forgetful(Trainer):
    """Begins its averages anew in each step."""

    def learn(self, inputs, labels, rate):
        self.state = {}
        return super().learn(inputs, labels, rate)


class Descending(Trainer):
    """Trains by plain SGD, whatever the optimiser."""

    def learn(self, inputs, labels, rate):
        self.spec = dict(self.spec, optimiser={"name": "sgd", "learning_rate": rate})
        return super().learn(inputs, labels, rate)


class DroppingScores(Trainer):
    """Judges with dropout."""

    def scores(self, inputs):
        return golden.forward(self.spec, self.values, inputs)[0]
