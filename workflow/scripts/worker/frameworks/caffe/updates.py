"""How a trainer of Caffe updates the parameters of a net: by rules in NumPy, in place, or by a solver of Caffe's own.

Each takes the optimiser of the specification, the net, its trained blobs, and the solver. What was chosen here:
docs/adapters/caffe.md.

Plain Python that 3.6 can import: standard library and numpy.
"""

import numpy as np


class Descent(object):
    """SGD: the learning rate is the weight of the loss, so that gradients come out as its steps."""

    said = "w -= g, with the learning rate as the weight of the loss"

    def __init__(self, wanted, net, trained, solver):
        self.loss = net.blobs["loss"]
        self.pairs = [(blob.data, blob.diff) for blob in trained]

    def set_rate(self, rate):
        self.loss.diff[...] = rate

    def update(self):
        for value, gradient in self.pairs:
            np.subtract(value, gradient, out=value)


class Adam(object):
    """Adam and AdamW in place: Caffe's own solver adds its epsilon to a root that is not corrected."""

    said = "Adam in NumPy, in place"

    def __init__(self, wanted, net, trained, solver):
        self.wanted, self.rate, self.taken = wanted, wanted["learning_rate"], 0
        self.kept = [
            (blob.data, blob.diff) + tuple(np.zeros_like(blob.data) for _ in range(3))
            for blob in trained
        ]

    def set_rate(self, rate):
        self.rate = rate

    def update(self):
        self.taken += 1
        beta1, beta2 = self.wanted["beta1"], self.wanted["beta2"]
        rate = self.rate / (1 - beta1**self.taken)
        root = 1 / (1 - beta2**self.taken) ** 0.5
        keeps = 1 - self.rate * self.wanted.get("weight_decay", 0.0)
        for value, gradient, mean, square, step in self.kept:
            mean *= beta1
            mean += np.multiply(gradient, 1 - beta1, out=step)
            square *= beta2
            square += np.multiply(np.square(gradient, out=step), 1 - beta2, out=step)
            np.multiply(np.sqrt(square, out=step), root, out=step)
            step += self.wanted["epsilon"]
            np.multiply(np.divide(mean, step, out=step), rate, out=step)
            if value.ndim > 1 and keeps != 1:
                value *= keeps
            value -= step


class OwnSolver(object):
    """What a solver of Caffe does with the gradients that are there."""

    said = "Caffe's own solver"

    def __init__(self, wanted, net, trained, solver):
        self.solver, self.update = solver, solver.apply_update

    def set_rate(self, rate):
        self.solver.param.base_lr = rate


PLAIN = {"sgd": Descent, "adam": Adam, "adamw": Adam}
