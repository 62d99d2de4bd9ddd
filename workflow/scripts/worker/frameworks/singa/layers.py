"""Operators of SINGA's primitives, and layers of them, of rows: a recurrence, and what joins tensors.

Sequences are matrices of (steps x batch, features).
"""

from singa import autograd
from singa import singa_wrap as core

from . import repair as singa_repair


def is_data(operator):
    """Whether the first argument of an operator is the batch or a part of it, whose gradient nobody asks for."""
    source = operator.src[0][0]
    return isinstance(source, autograd.Dummy) or not source.requires_grad


def once(make):
    """`make` called with the first tensor only: SINGA's handles are made for a shape."""
    made = []

    def get(x):
        if not made:
            made.append(make(x.data))
        return made[0]

    return get


def shares(x, count, axis):
    """Equally large pieces of a tensor."""
    size = x.shape()[axis] // count
    return [core.SliceOn(x, at * size, (at + 1) * size, axis) for at in range(count)]


class _Joined(autograd.Operator):
    """Features, or the channels of images, behind one another."""

    def forward(self, *parts):
        self.sizes = [part.shape()[1] for part in parts]
        return singa_repair.joined(parts)

    def backward(self, dy):
        found, end = [], 0
        for size in self.sizes:
            found.append(core.SliceOn(dy, end, end + size, 1))
            end += size
        return tuple(found)


def below(parts):
    """Tensors of one shape below one another in one."""
    rows, size = parts[0].shape()[0], parts[0].Size()
    made = singa_repair.empty(rows * len(parts), *parts[0].shape()[1:])
    for at, each in enumerate(parts):
        core.CopyDataToFrom(made, each, size, at * size, 0)
    return made


class _Rnn(autograd.Operator):
    """Outputs (steps x batch, units) from the products of its inputs, of the same shape."""

    def __init__(self, steps):
        super(_Rnn, self).__init__()
        self.steps = steps

    def forward(self, products, recurrent):
        self.recurrent, self.kept = recurrent, []
        for sums in shares(products, self.steps, 0):
            if self.kept:
                core.MultWithScale(1.0, self.kept[-1], recurrent, 1.0, sums)
            self.kept.append(core.Tanh(sums))
        return below(self.kept)

    def backward(self, dy):
        units = self.recurrent.shape()[0]
        d_recurrent = singa_repair.filled(0.0, units, units)
        turned, arriving = core.DefaultTranspose(self.recurrent), shares(dy, self.steps, 0)
        for step in reversed(range(self.steps)):
            output = self.kept[step]
            arriving[step] = core.__mul__(arriving[step], one_minus(core.Square(output)))
            if step:
                before = core.DefaultTranspose(self.kept[step - 1])
                core.MultWithScale(1.0, before, arriving[step], 1.0, d_recurrent)
                core.MultWithScale(1.0, arriving[step], turned, 1.0, arriving[step - 1])
        return below(arriving), d_recurrent


def one_minus(x):
    """1 - x."""
    return core.AddFloat(core.MultFloat(x, -1.0), 1.0)


def rnn(dense):
    """A recurrence behind one product, by an operator `dense`, of the inputs of all steps."""

    def make(trainer, node):
        entry, recurrent = trainer.own(node, "input", "bias"), trainer.own(node, "recurrent")
        return lambda x: _Rnn(node["in_shape"][0])(dense()(x, *entry)[0], *recurrent)[0]

    return make


def concat(trainer, node):
    """Features, or the channels of images, behind one another."""
    return lambda *parts: _Joined()(*parts)[0]
