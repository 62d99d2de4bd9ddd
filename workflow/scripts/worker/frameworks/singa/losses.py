"""Losses of outputs and targets, without classes, as operators of SINGA's primitives.

Plain Python that 3.6 can import: standard library, numpy and SINGA.
"""

from singa import autograd
from singa import singa_wrap as core

from . import repair as singa_repair
from .layers import softened


class _Distance(autograd.Operator):
    """The mean over all outputs of what they are from their targets."""

    def __init__(self, targets):
        super(_Distance, self).__init__()
        self.targets = targets

    def forward(self, x):
        self.kept = x
        return core.MultFloat(core.SumAll(self.each(x)), 1.0 / x.Size())

    def backward(self, dy=1.0):
        return core.MultFloat(self.slope(self.kept), dy / self.kept.Size())


class MeanSquares(_Distance):
    """Of the squares of what they miss their targets by."""

    def each(self, x):
        return core.Square(core.__sub__(x, self.targets))

    def slope(self, x):
        return core.MultFloat(core.__sub__(x, self.targets), 2.0)


class BinaryCrossEntropy(_Distance):
    """Of each output and its target from 0 to 1."""

    def each(self, x):
        return core.__sub__(softened(x), core.__mul__(x, self.targets))

    def slope(self, x):
        return core.__sub__(core.Sigmoid(x), self.targets)


class EvidenceBound(BinaryCrossEntropy):
    """Of a decoder's outputs, and behind them the means and logarithms of variances of a code."""

    def _parts(self, x):
        decoded, width = self.targets.shape()[1], x.shape()[1]
        middle = (decoded + width) // 2
        return [
            core.SliceOn(x, *ends)
            for ends in ((0, decoded, 1), (decoded, middle, 1), (middle, width, 1))
        ]

    def each(self, x):
        decoded, mean, spread = self._parts(x)
        apart = core.__sub__(core.AddFloat(core.Exp(spread), -1.0), spread)
        halves = [core.MultFloat(each, 0.5) for each in (core.Square(mean), apart)]
        return singa_repair.joined([super(EvidenceBound, self).each(decoded)] + halves)

    def slope(self, x):
        decoded, mean, spread = self._parts(x)
        apart = core.MultFloat(core.AddFloat(core.Exp(spread), -1.0), 0.5)
        return singa_repair.joined([super(EvidenceBound, self).slope(decoded), mean, apart])


class MeanOutput(_Distance):
    """Of the outputs themselves."""

    def each(self, x):
        return x

    def slope(self, x):
        return singa_repair.filled(1.0, *x.shape())


DISTANCES = {
    "mean_squares": MeanSquares,
    "binary_cross_entropy": BinaryCrossEntropy,
    "evidence_bound": EvidenceBound,
    "adversarial": BinaryCrossEntropy,
    "mean_output": MeanOutput,
}
