"""Layers of Theano that stand in none of the networks of the papers' first tables: of images, sequences, attention
and generative networks.

Each takes a node, its parameters and its inputs. Images are (batch, channels, height, width), sequences (steps, batch,
features). What was chosen here: docs/adapters/theano.md.

Plain Python that 3.6 can import: standard library, numpy and Theano.
"""

import numpy as np
import theano
from theano import tensor
from theano.gradient import disconnected_grad
from theano.tensor import nnet
from theano.tensor.nnet.abstract_conv import conv2d_grad_wrt_inputs
from theano.tensor.signal import pool

from shared import specification

# Before 1.0, a convolution has no groups.
_GROUPED = int(theano.__version__.split(".")[0]) > 0
# 0.9 multiplies constants by floats of the machine, which are of 64 bits.
_HALF = np.float32(0.5)
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
    """A convolution with groups of its own, or one for each group behind one another where Theano has none."""
    groups, count = node["groups"], node["channels"] // node["groups"]
    width = node["in_shape"][0] // groups
    if _GROUPED:
        value = _convolved(node, own["weight"], value, node["channels"], num_groups=groups)
    else:
        parts = [
            _convolved(
                node,
                own["weight"][group * count : (group + 1) * count],
                value[:, group * width : (group + 1) * width],
                count,
            )
            for group in range(groups)
        ]
        value = tensor.concatenate(parts, 1)
    return value + own["bias"].dimshuffle("x", 0, "x", "x") if node["bias"] else value


def _convolved(node, weight, value, channels, **grouped):
    groups, kernel = node["groups"], node["kernel"]
    width = node["in_shape"][0] // groups
    seen = node["in_shape"][0] if grouped else width
    return nnet.conv2d(
        value,
        weight,
        input_shape=(None, seen) + tuple(node["in_shape"][1:]),
        filter_shape=(channels, width, kernel, kernel),
        border_mode=(node["padding"],) * 2,
        subsample=(node["stride"],) * 2,
        filter_flip=False,
        **grouped,
    )


def conv_transpose(node, own, value):
    """What a convolution does on its way back; weights come as (in, out, height, width)."""
    kernel = node["kernel"]
    value = conv2d_grad_wrt_inputs(
        value,
        own["weight"],
        (None,) + tuple(node["shape"]),
        (node["in_shape"][0], node["channels"], kernel, kernel),
        border_mode=(node["padding"],) * 2,
        subsample=(node["stride"],) * 2,
        filter_flip=False,
    )
    return value + own["bias"].dimshuffle("x", 0, "x", "x") if node["bias"] else value


def avg_pool(node, own, value):
    """Padding counts."""
    return _pooled(node, value, "average_inc_pad")


def _pooled(node, value, mode):
    window, steps, edge = ((node[extent],) * 2 for extent in ("kernel", "stride", "padding"))
    return pool.pool_2d(value, ws=window, stride=steps, pad=edge, ignore_border=True, mode=mode)


def adaptive_avg_pool(node, own, value):
    """A product from each side: shares of pixels overlap where they are not alike."""
    rows, columns = (_shares(node["size"], extent) for extent in node["in_shape"][1:])
    found = tensor.dot(value, columns.T)
    return tensor.dot(found.dimshuffle(0, 1, 3, 2), rows.T).dimshuffle(0, 1, 3, 2)


def _shares(size, extent):
    """What each of `extent` pixels is to each of `size` means."""
    means = np.zeros((size, extent), np.float32)
    for share in range(size):
        first, end = share * extent // size, -(-(share + 1) * extent // size)
        means[share, first:end] = 1 / (end - first)
    return means


def upsample(node, own, value):
    """Each pixel as a square of its own value."""
    (channels, height, width), factor = node["in_shape"], node["factor"]
    shape = value.shape[0], channels, height, factor, width, factor
    spread = tensor.alloc(value.dimshuffle(0, 1, 2, "x", 3, "x"), *shape)
    return spread.reshape((value.shape[0],) + tuple(node["shape"]))


def channel_shuffle(node, own, value):
    """The first of each group, then the second of each."""
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = value.reshape((value.shape[0], groups, channels // groups, height * width))
    return parts.dimshuffle(0, 2, 1, 3).reshape((value.shape[0], channels, height, width))


def group_norm(node, own, value):
    """From primitives, as all normalisation but that by the batch."""
    parts = value.reshape((value.shape[0], node["groups"], -1), ndim=3)
    normal = _normal(parts, 2, specification.BATCH_NORM_EPSILON)
    normal = normal.reshape((value.shape[0],) + tuple(node["shape"]))
    return normal * _wide(own["gamma"], normal) + _wide(own["beta"], normal)


def layer_norm(node, own, value):
    """Of images, over the channels of each pixel."""
    normal = _normal(value, _features(value), node["epsilon"])
    normal = normal * _wide(own["weight"], normal)
    return normal + _wide(own["bias"], normal) if node["bias"] else normal


def _normal(value, axis, epsilon):
    centred = value - value.mean(axis, keepdims=True)
    variance = tensor.sqr(centred).mean(axis, keepdims=True)
    return centred / tensor.sqrt(variance + np.float32(epsilon))


def rms_norm(node, own, value):
    """Divided by the root of the mean of squares."""
    squares = tensor.sqr(value).mean(-1, keepdims=True)
    return value / tensor.sqrt(squares + np.float32(node["epsilon"])) * own["weight"]


def layer_scale(node, own, value):
    """Of images, one number a channel."""
    return value * _wide(own["weight"], value)


def bias(node, own, value):
    """One number a feature."""
    return value + own["bias"]


def gelu(node, own, value):
    """By the error function, in C."""
    return _HALF * value * (1 + tensor.erf(value * np.float32(0.5**0.5)))


def gelu_tanh(node, own, value):
    """The approximation."""
    inner = value + np.float32(0.044715) * value**3
    return _HALF * value * (1 + tensor.tanh(np.float32((2 / np.pi) ** 0.5) * inner))


def silu(node, own, value):
    """A value times its logistic function."""
    return value * nnet.sigmoid(value)


def local_response_norm(node, own, value):
    """Divided by the squares of neighbouring channels."""
    (channels, height, width), size = node["shape"], node["size"]
    half, share = size // 2, np.float32(1 / (node["inverse_alpha"] * size))
    empty = tensor.zeros((value.shape[0], channels + 2 * half, height, width), dtype="float32")
    squares = tensor.set_subtensor(empty[:, half : half + channels], value**2)
    near = sum(squares[:, first : first + channels] for first in range(size))
    return value * (1 + share * near) ** np.float32(-0.75)


def _features(value):
    """The axis of the features: of images, the channels."""
    return 1 if value.ndim == 4 else value.ndim - 1


def _wide(weight, value):
    """One number a feature, to stand beside a value."""
    return weight.dimshuffle("x", 0, "x", "x") if value.ndim == 4 else weight


def rows(value):
    """Of features, whatever stands before them."""
    return value if value.ndim == 2 else value.reshape((-1, value.shape[-1]), ndim=2)


def _products(own, value):
    """Of each step with the inputs, as one large one in place of one for each step."""
    products = tensor.dot(rows(value), own["input"]) + own["bias"]
    return products.reshape((value.shape[0], value.shape[1], -1), ndim=3)


def _scanned(node, own, value, step):
    start = tensor.zeros((value.shape[1], node["units"]), dtype="float32")
    return theano.scan(step, [_products(own, value)], [start], [own["recurrent"]], strict=True)[0]


def rnn(node, own, value):
    """A loop, as an LSTM's is."""

    def step(given, output, recurrent):
        return tensor.tanh(given + tensor.dot(output, recurrent))

    return _scanned(node, own, value, step)


def gru(node, own, value):
    """A loop, as an LSTM's is."""
    units = node["units"]

    def step(given, output, recurrent):
        products = tensor.dot(output, recurrent)
        gates = nnet.sigmoid(given[:, : 2 * units] + products[:, : 2 * units])
        reset, update = gates[:, :units], gates[:, units:]
        new = tensor.tanh(given[:, 2 * units :] + reset * products[:, 2 * units :])
        return new + update * (output - new)

    return _scanned(node, own, value, step)


def positions(node, own, value):
    """A row for each step, or for each of several."""
    numbers = np.arange(node["shape"][0]) // node["each"]
    return value + own["weight"][numbers].dimshuffle(0, "x", 1)


def lookup(node, own, words, table):
    """A table is a parameter that several layers share."""
    return table[words.flatten()].reshape((words.shape[0], words.shape[1], table.shape[1]))


def unembedding(node, own, value, table):
    """One product of all rows."""
    scores = tensor.dot(rows(value), table.T)
    return scores.reshape((value.shape[0], value.shape[1], table.shape[0]))


def attention(node, own, value):
    """Two products for each head of each sample, and a softmax between them."""
    steps, heads = node["in_shape"][0], node["heads"]
    size = node["shape"][1] // heads
    parts = value.reshape((steps, -1, 3, heads, size), ndim=5).dimshuffle(2, 1, 3, 0, 4)
    parts = parts.reshape((3, -1, steps, size), ndim=4)
    q, k, v = parts[0], parts[1], parts[2]
    scores = tensor.batched_dot(q * np.float32(size**-0.5), k.dimshuffle(0, 2, 1))
    if node.get("causal"):
        scores = scores + np.triu(np.full((steps, steps), -1e30, np.float32), 1)
    shares = nnet.softmax(rows(scores)).reshape((-1, steps, steps), ndim=3)
    found = tensor.batched_dot(shares, v).reshape((-1, heads, steps, size), ndim=4)
    return found.dimshuffle(2, 0, 1, 3).reshape((steps, -1, heads * size), ndim=3)


def patches(node, own, value):
    """Each pixel as a step."""
    return value.flatten(3).dimshuffle(2, 0, 1)


def class_token(node, own, value):
    """The same for each sample."""
    token = tensor.alloc(own["weight"], 1, value.shape[1], value.shape[2])
    return tensor.concatenate([token, value], 0)


def part(node, own, value):
    """Some of the features."""
    return value[..., node["start"] : node["start"] + node["size"]]


def concat(node, own, *values):
    """Features, or the channels of images, behind one another."""
    return tensor.concatenate(list(values), _features(values[0]))


def reversal(node, own, value):
    """Its gradient is turned."""
    return 2 * disconnected_grad(value) - value


def sampled_code(node, own, value, noise):
    """Means and logarithms of variances come behind one another."""
    code = node["shape"][-1]
    return value[:, :code] + tensor.exp(_HALF * value[:, code:]) * noise


def rbm(node, own, visible, noise):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    visible = disconnected_grad(visible)
    scores = tensor.dot(visible, own["weight"]) + own["hidden"]
    chances = disconnected_grad(nnet.sigmoid(scores))
    drawn = tensor.cast(2 * chances - 1 > noise, "float32")
    end = nnet.sigmoid(tensor.dot(drawn, own["weight"].T) + own["visible"])
    end = disconnected_grad(end)
    again = tensor.dot(end, own["weight"]) + own["hidden"]
    energy = (nnet.softplus(again) - nnet.softplus(scores)).sum(1)
    energy = energy + tensor.dot(end - visible, own["visible"])
    return tensor.concatenate([energy.dimshuffle(0, "x"), chances], 1)
