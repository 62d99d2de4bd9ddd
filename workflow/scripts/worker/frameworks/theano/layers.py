"""Layers of Theano that stand in none of the networks of the papers' first tables.

Each takes a node, its parameters and its inputs. Images are (batch, channels, height, width), sequences (steps, batch,
features).
"""

import numpy as np
import theano
from theano import tensor
from theano.tensor import nnet
from theano.tensor.signal import pool

from ...contract import Unsupported

# Before 1.0, a convolution has no groups.
_GROUPED = int(theano.__version__.split(".")[0]) > 0
_GIVEN = "gx[0] = gx[0] + gz[0];"


class _OfOne(pool.MaxPoolGrad):
    """Theano's own gives each of several equal maxima the whole gradient. Here, what was met equals nothing more."""

    def c_code(self, *asked):
        return super().c_code(*asked).replace(_GIVEN, _GIVEN + " maximum = NAN;")

    def c_code_cache_version(self):
        return super().c_code_cache_version() + ("of one",)


# Theano's pools look their gradient up by this name.
pool.MaxPoolGrad = _OfOne


def max_pool(node, own, value):
    """Padding never is the largest."""
    return _pooled(node, value, "max")


def grouped_conv(node, own, value):
    """A convolution with groups of its own."""
    if not _GROUPED:
        raise Unsupported("before Theano 1.0 a convolution has no groups")
    groups, kernel, seen = node["groups"], node["kernel"], node["in_shape"][0]
    return nnet.conv2d(
        value,
        own["weight"],
        input_shape=(None, seen) + tuple(node["in_shape"][1:]),
        filter_shape=(node["channels"], seen // groups, kernel, kernel),
        border_mode=(node["padding"],) * 2,
        subsample=(node["stride"],) * 2,
        filter_flip=False,
        num_groups=groups,
    )


def avg_pool(node, own, value):
    """Padding counts."""
    return _pooled(node, value, "average_inc_pad")


def _pooled(node, value, mode):
    window, steps, edge = ((node[extent],) * 2 for extent in ("kernel", "stride", "padding"))
    return pool.pool_2d(value, ws=window, stride=steps, pad=edge, ignore_border=True, mode=mode)


def channel_shuffle(node, own, value):
    """The first of each group, then the second of each."""
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = value.reshape((value.shape[0], groups, channels // groups, height * width))
    return parts.dimshuffle(0, 2, 1, 3).reshape((value.shape[0], channels, height, width))


def local_response_norm(node, own, value):
    """Divided by the squares of neighbouring channels."""
    (channels, height, width), size = node["shape"], node["size"]
    half, share = size // 2, np.float32(1 / (node["inverse_alpha"] * size))
    empty = tensor.zeros((value.shape[0], channels + 2 * half, height, width), dtype="float32")
    squares = tensor.set_subtensor(empty[:, half : half + channels], value**2)
    near = sum(squares[:, first : first + channels] for first in range(size))
    return value * (1 + share * near) ** np.float32(-0.75)


def rows(value):
    """Of features, whatever stands before them."""
    return value if value.ndim == 2 else value.reshape((-1, value.shape[-1]), ndim=2)


def rnn(node, own, value):
    """A loop, as an LSTM's is, behind one product of the inputs of all steps."""
    products = tensor.dot(rows(value), own["input"]) + own["bias"]
    products = products.reshape((value.shape[0], value.shape[1], -1), ndim=3)

    def step(given, output, recurrent):
        return tensor.tanh(given + tensor.dot(output, recurrent))

    start = tensor.zeros((value.shape[1], node["units"]), dtype="float32")
    return theano.scan(step, [products], [start], [own["recurrent"]], strict=True)[0]


def concat(node, own, *values):
    """The channels of images behind one another."""
    return tensor.concatenate(list(values), 1)
