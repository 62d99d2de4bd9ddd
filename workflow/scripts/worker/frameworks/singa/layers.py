"""Operators and layers made of SINGA's primitives: sequences (steps x batch, features), images with channels first."""

import numpy as np
from singa import autograd
from singa import singa_wrap as core

from . import repair as singa_repair


def is_data(operator):
    """Tells whether an operator's first argument is the batch or a part of it, whose gradient is not needed."""
    source = operator.src[0][0]
    return isinstance(source, autograd.Dummy) or not source.requires_grad


def once(make):
    """Calls `make` only with the first tensor: SINGA's handles are made for a shape."""
    made = []

    def get(x):
        if not made:
            made.append(make(x.data))
        return made[0]

    return get


def shares(x, count, axis):
    """Cuts a tensor into equally large pieces."""
    size = x.shape()[axis] // count
    return [core.SliceOn(x, at * size, (at + 1) * size, axis) for at in range(count)]


class _Joined(autograd.Operator):
    """Joins features, or the channels of images."""

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
    """Joins tensors of one shape, one below the other."""
    rows, size = parts[0].shape()[0], parts[0].Size()
    made = singa_repair.empty(rows * len(parts), *parts[0].shape()[1:])
    for at, each in enumerate(parts):
        core.CopyDataToFrom(made, each, size, at * size, 0)
    return made


class _Rnn(autograd.Operator):
    """Computes a recurrence's outputs (steps x batch, units) from the products of its inputs, of the same shape."""

    def __init__(self, steps):
        super(_Rnn, self).__init__()
        self.steps = steps

    def forward(self, products, recurrent):
        self.recurrent = recurrent
        self.kept = []
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
    """Returns 1 - x."""
    return core.AddFloat(core.MultFloat(x, -1.0), 1.0)


def rnn(dense):
    """Returns a recurrence after one product, by an operator `dense`, of all steps' inputs."""

    def make(trainer, node):
        entry, recurrent = trainer.own(node, "input", "bias"), trainer.own(node, "recurrent")
        return lambda x: _Rnn(node["in_shape"][0])(dense()(x, *entry)[0], *recurrent)[0]

    return make


def concat(trainer, node):
    return lambda *parts: _Joined()(*parts)[0]


class Conv(autograd._Conv2d):
    """SINGA's convolution, without the gradient of the batch."""

    def backward(self, dy):
        x, w = self.inputs[:2]
        dx = None if is_data(self) else core.CpuConvBackwardx(dy, w, x, self.handle)
        found = dx, core.CpuConvBackwardW(dy, x, w, self.handle)
        return (
            found + (core.CpuConvBackwardb(dy, self.inputs[2], self.handle),)
            if self.handle.bias_term
            else found
        )


def conv(trainer, node):
    """Returns SINGA's own convolution."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    sizes = node["in_shape"][0], node["channels"], node["bias"], 1
    handle = once(lambda x: core.ConvHandle(x, *(window + list(sizes))))
    arrays = trainer.own(node, "weight", "bias")
    return lambda x: Conv(handle(x))(x, *arrays)[0]


def _raised(images, bias):
    """Adds a number to each channel of images."""
    return core.__add__(images, _wide(bias))


def _wide(vector):
    """Returns a number for each channel, in a shape to be combined with images."""
    return core.Reshape(vector, [1, vector.shape()[0], 1, 1])


def _sums(images):
    """Returns the sum of each channel."""
    batch, channels, height, width = images.shape()
    sums = core.Sum(core.Reshape(images, [batch, channels * height * width]), 0)
    return core.Sum(core.Reshape(sums, [channels, height * width]), 1)


class _Grouped(autograd.Operator):
    """Convolves each group in succession: on a CPU, SINGA's own has no groups."""

    def __init__(self, handle, groups):
        super(_Grouped, self).__init__()
        self.handle, self.groups = handle, groups

    def forward(self, x, w, b=None):
        self.kept, self.bias = (shares(x, self.groups, 1), shares(w, self.groups, 0)), b
        none = singa_repair.filled(0.0, w.shape()[0] // self.groups)
        y = singa_repair.joined(
            [core.CpuConvForward(*each, none, self.handle) for each in zip(*self.kept)]
        )
        return y if b is None else _raised(y, b)

    def backward(self, dy):
        arriving = shares(dy, self.groups, 1)
        dx = []
        dw = []
        for share, x, w in zip(arriving, *self.kept):
            if not is_data(self):
                dx.append(core.CpuConvBackwardx(share, w, x, self.handle))
            dw.append(core.CpuConvBackwardW(share, x, w, self.handle))
        found = singa_repair.joined(dx) if dx else None, below(dw)
        return found if self.bias is None else found + (_sums(dy),)


def grouped_conv(trainer, node):
    """Returns a convolution for each group."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    groups = node["groups"]
    sizes = node["in_shape"][0] // groups, node["channels"] // groups, False, 1

    def make(x):
        like = singa_repair.empty(x.shape()[0], sizes[0], *node["in_shape"][1:])
        return core.ConvHandle(like, *(window + list(sizes)))

    handle, arrays = once(make), trainer.own(node, "weight", "bias")
    return lambda x: _Grouped(handle(x), groups)(x, *arrays)[0]


def pool(trainer, node):
    """Returns a pool: the largest value of a window, or its mean, in which padding counts."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    handle = once(lambda x: core.PoolingHandle(x, *(window + [node["op"] == "max_pool"])))
    if node["op"] == "max_pool" or not node["padding"]:
        return lambda x: autograd.pooling_2d(handle(x), x)
    # SINGA's mean is that of the pixels in a window alone, so it is less by what the window has of padding.
    seen = once(lambda x: _seen(x.shape()[0], node))
    return lambda x: _Times(seen(x))(autograd.pooling_2d(handle(x), x))[0]


class _Times(autograd.Operator):
    """Multiplies each number by one that never changes."""

    def __init__(self, factors):
        super(_Times, self).__init__()
        self.factors = factors

    def forward(self, x):
        return core.__mul__(x, self.factors)

    def backward(self, dy):
        return core.__mul__(dy, self.factors)


def _seen(batch, node):
    """Returns the share of each window that is not padding."""
    sides = []
    for extent, count in zip(node["in_shape"][1:], node["shape"][1:]):
        begin = np.arange(count) * node["stride"] - node["padding"]
        sides.append(np.minimum(begin + node["kernel"], extent) - np.maximum(begin, 0))
    shares = np.outer(*sides) / float(node["kernel"] ** 2)
    made = singa_repair.empty(batch, *node["shape"])
    singa_repair.view(made).reshape(-1, shares.size)[:] = shares.reshape(-1)
    return made


class _Shuffled(autograd.Operator):
    """Reorders channels: one of each group in turn."""

    def __init__(self, groups):
        super(_Shuffled, self).__init__()
        self.groups = groups

    def forward(self, x):
        return self.turned(x, self.groups)

    def backward(self, dy):
        return self.turned(dy, dy.shape()[1] // self.groups)

    def turned(self, x, groups):
        batch, channels, height, width = x.shape()
        parts = [
            core.Reshape(each, [batch, channels // groups, 1, height * width])
            for each in shares(x, groups, 1)
        ]
        shape = [batch * (channels // groups), 1, height * width]
        turns = singa_repair.joined([core.Reshape(each, shape) for each in parts])
        return core.Reshape(turns, [batch, channels, height, width])


def channel_shuffle(trainer, node):
    return lambda x: _Shuffled(node["groups"])(x)[0]


class _LocalResponseNorm(autograd.Operator):
    """Divides by the squares of neighbouring channels."""

    def __init__(self, node):
        super(_LocalResponseNorm, self).__init__()
        self.size, self.share = node["size"], 1.0 / (node["inverse_alpha"] * node["size"])

    def near(self, x):
        """Returns the sum over the channels around each."""
        batch, channels, height, width = x.shape()
        edge = singa_repair.filled(0.0, batch, self.size // 2, height, width)
        padded, total = singa_repair.joined([edge, x, edge]), singa_repair.filled(0.0, *x.shape())
        for first in range(self.size):
            total += core.SliceOn(padded, first, first + channels, 1)
        return total

    def forward(self, x):
        scale = core.AddFloat(core.MultFloat(self.near(core.Square(x)), self.share), 1.0)
        shrunk = core.PowFloat(scale, -0.75)
        y = core.__mul__(x, shrunk)
        self.kept = x, scale, shrunk, y
        return y

    def backward(self, dy):
        x, scale, shrunk, y = self.kept
        others = self.near(core.__div__(core.__mul__(dy, y), scale))
        others = core.MultFloat(core.__mul__(x, others), -1.5 * self.share)
        return core.__add__(core.__mul__(dy, shrunk), others)


def local_response_norm(trainer, node):
    """Returns a local response normalisation made of SINGA's primitives."""
    return lambda x: _LocalResponseNorm(node)(x)[0]
