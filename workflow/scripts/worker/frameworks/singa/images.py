"""Operators of SINGA's primitives, and layers of them, of images.

Images are (batch, channels, height, width). What was chosen here: docs/adapters/singa.md.

Plain Python that 3.6 can import: standard library, numpy and SINGA.
"""

import numpy as np
from singa import autograd
from singa import singa_wrap as core

from shared import specification

from . import repair as singa_repair
from .layers import below, is_data, once, shares


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
    """SINGA's own."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    sizes = node["in_shape"][0], node["channels"], node["bias"], 1
    handle = once(lambda x: core.ConvHandle(x, *(window + list(sizes))))
    arrays = trainer.own(node, "weight", "bias")
    return lambda x: Conv(handle(x))(x, *arrays)[0]


def _raised(images, bias):
    """Images, each channel with a number added to it."""
    return core.__add__(images, _wide(bias))


def _wide(vector):
    """A number for each channel, to be combined with images."""
    return core.Reshape(vector, [1, vector.shape()[0], 1, 1])


def _sums(images):
    """The sum of each channel."""
    batch, channels, height, width = images.shape()
    sums = core.Sum(core.Reshape(images, [batch, channels * height * width]), 0)
    return core.Sum(core.Reshape(sums, [channels, height * width]), 1)


class _Grouped(autograd.Operator):
    """A convolution for each group, behind one another: SINGA's own has no groups on a CPU."""

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
        arriving, dx, dw = shares(dy, self.groups, 1), [], []
        for share, x, w in zip(arriving, *self.kept):
            if not is_data(self):
                dx.append(core.CpuConvBackwardx(share, w, x, self.handle))
            dw.append(core.CpuConvBackwardW(share, x, w, self.handle))
        found = singa_repair.joined(dx) if dx else None, below(dw)
        return found if self.bias is None else found + (_sums(dy),)


def grouped_conv(trainer, node):
    """A convolution for each group."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    groups = node["groups"]
    sizes = node["in_shape"][0] // groups, node["channels"] // groups, False, 1

    def make(x):
        like = singa_repair.empty(x.shape()[0], sizes[0], *node["in_shape"][1:])
        return core.ConvHandle(like, *(window + list(sizes)))

    handle, arrays = once(make), trainer.own(node, "weight", "bias")
    return lambda x: _Grouped(handle(x), groups)(x, *arrays)[0]


class _ConvTranspose(autograd.Operator):
    """The way back of a convolution of the image that it makes."""

    def __init__(self, handle, like):
        super(_ConvTranspose, self).__init__()
        self.handle, self.like = handle, like

    def forward(self, x, w, b=None):
        self.kept = x, w, b
        y = core.CpuConvBackwardx(x, w, self.like, self.handle)
        return y if b is None else _raised(y, b)

    def backward(self, dy):
        x, w, b = self.kept
        none = singa_repair.filled(0.0, x.shape()[1])
        dx = None if is_data(self) else core.CpuConvForward(dy, w, none, self.handle)
        found = dx, core.CpuConvBackwardW(x, dy, w, self.handle)
        return found if b is None else found + (_sums(dy),)


def conv_transpose(trainer, node):
    """Weights come as (in, out, height, width)."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    sizes = [node["channels"], node["in_shape"][0], False, 1]

    def make(x):
        like = singa_repair.empty(x.shape()[0], *node["shape"])
        return core.ConvHandle(like, *(window + sizes)), like

    both, arrays = once(make), trainer.own(node, "weight", "bias")
    return lambda x: _ConvTranspose(*both(x))(x, *arrays)[0]


def pool(trainer, node):
    """The largest of a window, or its mean, in which padding counts."""
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    handle = once(lambda x: core.PoolingHandle(x, *(window + [node["op"] == "max_pool"])))
    if node["op"] == "max_pool" or not node["padding"]:
        return lambda x: autograd.pooling_2d(handle(x), x)
    # SINGA's mean is that of the pixels in a window alone, so it is less by what the window has of padding.
    seen = once(lambda x: _seen(x.shape()[0], node))
    return lambda x: _Times(seen(x))(autograd.pooling_2d(handle(x), x))[0]


class _Times(autograd.Operator):
    """Each number times one that is always the same."""

    def __init__(self, factors):
        super(_Times, self).__init__()
        self.factors = factors

    def forward(self, x):
        return core.__mul__(x, self.factors)

    def backward(self, dy):
        return core.__mul__(dy, self.factors)


def _seen(batch, node):
    """How much of each window is no padding."""
    sides = []
    for extent, count in zip(node["in_shape"][1:], node["shape"][1:]):
        begin = np.arange(count) * node["stride"] - node["padding"]
        sides.append(np.minimum(begin + node["kernel"], extent) - np.maximum(begin, 0))
    shares = np.outer(*sides) / float(node["kernel"] ** 2)
    made = singa_repair.empty(batch, *node["shape"])
    singa_repair.view(made).reshape(-1, shares.size)[:] = shares.reshape(-1)
    return made


class _Upsampled(autograd.Operator):
    """Each pixel as a square of its own value: what a mean of squares does on its way back, times their pixels."""

    def __init__(self, handle, like, pixels):
        super(_Upsampled, self).__init__()
        self.handle, self.like, self.pixels = handle, like, pixels

    def forward(self, x):
        spread = core.CpuPoolingBackward(self.handle, x, self.like, x)
        return core.MultFloat(spread, self.pixels)

    def backward(self, dy):
        return core.MultFloat(core.CpuPoolingForward(self.handle, dy), self.pixels)


def upsample(trainer, node):
    """Each pixel as a square of its own value."""
    side = [node["factor"]] * 2

    def make(x):
        like = singa_repair.filled(0.0, x.shape()[0], *node["shape"])
        return core.PoolingHandle(like, side, side, [0, 0], False), like

    both = once(make)
    return lambda x: _Upsampled(*both(x) + (float(node["factor"] ** 2),))(x)[0]


class _Shuffled(autograd.Operator):
    """Groups of channels, one channel of each in turn."""

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
    """Groups of channels, one channel of each in turn."""
    return lambda x: _Shuffled(node["groups"])(x)[0]


class _LocalResponseNorm(autograd.Operator):
    """Divided by the squares of neighbouring channels."""

    def __init__(self, node):
        super(_LocalResponseNorm, self).__init__()
        self.size, self.share = node["size"], 1.0 / (node["inverse_alpha"] * node["size"])

    def near(self, x):
        """The sum over the channels around each."""
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
    """Of SINGA's primitives."""
    return lambda x: _LocalResponseNorm(node)(x)[0]


class _Shared(autograd.Operator):
    """A product of the pixels of each channel with a matrix that stays as it is."""

    def __init__(self, weights, sides):
        super(_Shared, self).__init__()
        self.weights, self.sides = weights, sides

    def forward(self, x):
        self.shape = list(x.shape())
        batch, channels, height, width = self.shape
        means = core.Mult(core.Reshape(x, [batch * channels, height * width]), self.weights)
        return core.Reshape(means, [batch, channels] + self.sides)

    def backward(self, dy):
        batch, channels, height, width = dy.shape()
        rows = core.Reshape(dy, [batch * channels, height * width])
        return core.Reshape(core.Mult(rows, core.DefaultTranspose(self.weights)), self.shape)


def adaptive_avg_pool(trainer, node):
    """The mean of each share of rows and columns, as one product."""
    size, shares = node["size"], []
    for extent in node["in_shape"][1:]:
        shares.append(np.zeros((extent, size), np.float32))
        for share in range(size):
            first, end = share * extent // size, -(-(share + 1) * extent // size)
            shares[-1][first:end, share] = 1.0 / (end - first)
    means = np.kron(*shares)
    weights = singa_repair.empty(*means.shape)
    singa_repair.view(weights)[:] = means.reshape(-1)
    return lambda x: _Shared(weights, [size, size])(x)[0]


class _GroupNorm(autograd.Operator):
    """By the mean and the biased variance of each group of channels of a sample."""

    def __init__(self, groups):
        super(_GroupNorm, self).__init__()
        self.groups = groups

    def mean(self, rows):
        count, size = rows.shape()
        return core.Reshape(core.MultFloat(core.Sum(rows, 1), 1.0 / size), [count, 1])

    def forward(self, x, gamma, beta):
        shape = list(x.shape())
        rows = core.Reshape(x, [shape[0] * self.groups, x.Size() // (shape[0] * self.groups)])
        centred = core.__sub__(rows, self.mean(rows))
        variance = self.mean(core.Square(centred))
        scale = core.PowFloat(core.AddFloat(variance, specification.BATCH_NORM_EPSILON), -0.5)
        normal = core.__mul__(centred, scale)
        self.kept = normal, scale, gamma
        scaled = core.__mul__(core.Reshape(normal, shape), _wide(gamma))
        return _raised(scaled, beta)

    def backward(self, dy):
        normal, scale, gamma = self.kept
        shape = list(dy.shape())
        flowing = core.Reshape(core.__mul__(dy, _wide(gamma)), list(normal.shape()))
        centred = core.__sub__(flowing, self.mean(flowing))
        along = core.__mul__(normal, self.mean(core.__mul__(flowing, normal)))
        dx = core.__mul__(core.__sub__(centred, along), scale)
        d_gamma = _sums(core.__mul__(dy, core.Reshape(normal, shape)))
        return core.Reshape(dx, shape), d_gamma, _sums(dy)


def group_norm(trainer, node):
    """Of SINGA's primitives."""
    arrays = trainer.own(node, "gamma", "beta")
    return lambda x: _GroupNorm(node["groups"])(x, *arrays)[0]
