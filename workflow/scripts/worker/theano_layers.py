"""Layers of Theano that stand in no network of fully connected or recurrent layers alone: of images and
of generative networks.

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
from theano.tensor.signal.pool import pool_2d

# Before 1.0, a convolution has no groups.
_GROUPED = int(theano.__version__.split(".")[0]) > 0
# 0.9 multiplies constants by floats of the machine, which are of 64 bits.
_HALF = np.float32(0.5)


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
    window, steps, edge = ((node[extent],) * 2 for extent in ("kernel", "stride", "padding"))
    options = {"ignore_border": True, "mode": "average_inc_pad"}
    return pool_2d(value, ws=window, stride=steps, pad=edge, **options)


def upsample(node, own, value):
    """Each pixel as a square of its own value."""
    (channels, height, width), factor = node["in_shape"], node["factor"]
    shape = value.shape[0], channels, height, factor, width, factor
    spread = tensor.alloc(value.dimshuffle(0, 1, 2, "x", 3, "x"), *shape)
    return spread.reshape((value.shape[0],) + tuple(node["shape"]))


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


def _products(own, value):
    """Of each step with the inputs, as one large one in place of one for each step."""
    rows = value.reshape((-1, value.shape[2]), ndim=2)
    products = tensor.dot(rows, own["input"]) + own["bias"]
    return products.reshape((value.shape[0], value.shape[1], -1), ndim=3)


def _scanned(node, own, value, step):
    start = tensor.zeros((value.shape[1], node["units"]), dtype="float32")
    return theano.scan(step, [_products(own, value)], [start], [own["recurrent"]], strict=True)[0]


def rnn(node, own, value):
    """A loop, as an LSTM's is."""

    def step(given, output, recurrent):
        return tensor.tanh(given + tensor.dot(output, recurrent))

    return _scanned(node, own, value, step)


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
