"""Layers of CNTK.

Each takes a node, its parameters and its inputs, of one sample. Sequences have a dynamic axis where a network
recurs, and are matrices (steps, features) elsewhere. What was chosen here: docs/adapters/cntk.md.

Plain Python that 3.6 can import: standard library, numpy and CNTK.
"""

import cntk
import numpy as np

from shared import specification


def grouped_conv(node, own, value):
    """A convolution for each group, behind one another: on CPUs CNTK has no convolution in groups."""
    groups, steps = node["groups"], (node["stride"],) * 2
    width, count = node["in_shape"][0] // groups, node["channels"] // groups
    value = surrounded(node, value)
    made = [
        cntk.convolution(
            cntk.slice(own["weight"], 0, group * count, (group + 1) * count),
            cntk.slice(value, 0, group * width, (group + 1) * width),
            steps,
            auto_padding=[False] * 3,
        )
        for group in range(groups)
    ]
    value = cntk.splice(*made, axis=0) if groups > 1 else made[0]
    return value + _wide(own["bias"]) if node["bias"] else value


def conv_transpose(node, own, value):
    """Weights come as (in, out, height, width); what padding takes off is cut off."""
    (channels, height, width), edge = node["shape"], node["padding"]
    value = cntk.convolution_transpose(
        own["weight"],
        value,
        (node["stride"],) * 2,
        auto_padding=[False] * 3,
        output_shape=(channels, height + 2 * edge, width + 2 * edge),
    )
    if edge:
        value = cntk.slice(value, [1, 2], [edge, edge], [edge + height, edge + width])
    return value + _wide(own["bias"]) if node["bias"] else value


def _wide(vector):
    """A vector of channels, to be combined with images."""
    return cntk.reshape(vector, (-1, 1, 1))


def surrounded(node, value, filling=0.0):
    """An image with its padding, which CNTK itself sets about the windows."""
    around = (node["padding"],) * 2
    if not node["padding"]:
        return value
    return cntk.pad(value, [(0, 0), around, around], cntk.CONSTANT_PAD, filling)


def avg_pool(node, own, value):
    """Padding counts."""
    window, steps = ((node[extent],) * 2 for extent in ("kernel", "stride"))
    value = surrounded(node, value)
    return cntk.pooling(value, cntk.AVG_POOLING, window, steps, auto_padding=[False])


def adaptive_avg_pool(node, own, value):
    """The mean of each share of rows, then of columns."""
    size = node["size"]
    for axis, extent in zip((1, 2), node["in_shape"][1:]):
        ends = [(at * extent // size, -(-(at + 1) * extent // size)) for at in range(size)]
        shares = [cntk.slice(value, axis, begin, end) for begin, end in ends]
        value = cntk.splice(*[cntk.reduce_mean(share, axis) for share in shares], axis=axis)
    return value


def upsample(node, own, value):
    """Each pixel as a square of its own value."""
    (channels, height, width), factor = node["in_shape"], node["factor"]
    value = cntk.reshape(value, (channels, height, 1, width, 1))
    value = cntk.splice(*[value] * factor, axis=2)
    value = cntk.splice(*[value] * factor, axis=4)
    return cntk.reshape(value, tuple(node["shape"]))


def channel_shuffle(node, own, value):
    """Groups of channels, one channel of each in turn."""
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = cntk.reshape(value, (groups, channels // groups, height, width))
    return cntk.reshape(cntk.transpose(parts, (1, 0, 2, 3)), tuple(node["shape"]))


def local_response_norm(node, own, value):
    """Divided by the squares of neighbouring channels."""
    channels, half = node["shape"][0], node["size"] // 2
    around = [(half, half), (0, 0), (0, 0)]
    squares = cntk.pad(cntk.square(value), around, cntk.CONSTANT_PAD, 0.0)
    near = sum(cntk.slice(squares, 0, first, first + channels) for first in range(node["size"]))
    scale = 1.0 + near * (1.0 / (node["inverse_alpha"] * node["size"]))
    return value * cntk.exp(-0.75 * cntk.log(scale))


def _normal(value, axis, epsilon):
    centred = value - cntk.reduce_mean(value, axis)
    return centred / cntk.sqrt(cntk.reduce_mean(cntk.square(centred), axis) + epsilon)


def batch_norm(node, own, value):
    """CNTK's own, of which the averages are not read."""
    shape = (node["shape"][0],)
    return cntk.batch_normalization(
        value,
        own["gamma"],
        own["beta"],
        cntk.constant(0, shape),
        cntk.constant(0, shape),
        spatial=True,
        epsilon=specification.BATCH_NORM_EPSILON,
        use_cudnn_engine=False,
        running_count=cntk.constant(0),
    )


def group_norm(node, own, value):
    """Each group of channels of a sample by its own mean and variance."""
    groups, size = node["groups"], 1
    for extent in node["shape"]:
        size *= extent
    parts = cntk.reshape(value, (groups, size // groups))
    normal = _normal(parts, 1, specification.BATCH_NORM_EPSILON)
    return cntk.reshape(normal, tuple(node["shape"])) * _wide(own["gamma"]) + _wide(own["beta"])


def _features(node, vector):
    return _wide(vector) if _is_image(node) else vector


def _is_image(node):
    return len(node["shape"]) == 3


def _axis(node):
    """That of the features: the first one of images, and the last one else."""
    return 0 if _is_image(node) else -1


def layer_norm(node, own, value):
    """By the mean and the variance of the features."""
    normal = _normal(value, _axis(node), node["epsilon"]) * _features(node, own["weight"])
    return normal + _features(node, own["bias"]) if node["bias"] else normal


def rms_norm(node, own, value):
    """By the root of the mean of squares."""
    squares = cntk.reduce_mean(cntk.square(value), -1)
    return value / cntk.sqrt(squares + node["epsilon"]) * own["weight"]


def layer_scale(node, own, value):
    """Each feature times its own weight."""
    return value * _features(node, own["weight"])


def gelu_tanh(node, own, value):
    """By the hyperbolic tangent."""
    bent = cntk.tanh(0.7978845608028654 * (value + 0.044715 * value * value * value))
    return 0.5 * value * (1.0 + bent)


def lstm(node, own, value):
    """A loop, beside which stands the product with the inputs, so CNTK takes it once for all steps."""
    units = node["units"]

    @cntk.Function
    def step(output, cell, given):
        sums = given + cntk.times(output, own["recurrent"])
        i, f, g, o = (cntk.slice(sums, -1, gate * units, (gate + 1) * units) for gate in range(4))
        cell = cntk.sigmoid(f) * cell + cntk.sigmoid(i) * cntk.tanh(g)
        return cntk.sigmoid(o) * cntk.tanh(cell), cell

    return cntk.layers.Recurrence(step)(cntk.times(value, own["input"]) + own["bias"])


def rnn(node, own, value):
    """A loop, as an LSTM's is."""

    @cntk.Function
    def step(output, given):
        return cntk.tanh(given + cntk.times(output, own["recurrent"]))

    return cntk.layers.Recurrence(step)(cntk.times(value, own["input"]) + own["bias"])


def gru(node, own, value):
    """The same with gates; that of the reset multiplies the recurrent product."""
    units = node["units"]

    @cntk.Function
    def step(output, given):
        inner = cntk.times(output, own["recurrent"])
        gates = cntk.sigmoid(
            cntk.slice(given, -1, 0, 2 * units) + cntk.slice(inner, -1, 0, 2 * units)
        )
        reset, update = (cntk.slice(gates, -1, gate * units, (gate + 1) * units) for gate in (0, 1))
        new = cntk.slice(given, -1, 2 * units, 3 * units)
        new = cntk.tanh(new + reset * cntk.slice(inner, -1, 2 * units, 3 * units))
        return new + update * (output - new)

    return cntk.layers.Recurrence(step)(cntk.times(value, own["input"]) + own["bias"])


def recur(spec):
    """Whether a network takes the steps of its sequences one after the other."""
    return any(node["op"] in ("lstm", "rnn", "gru") for node in spec["nodes"])


def lookup(node, own, words, table):
    """A product with what is one-hot and sparse, and rows by their numbers else."""
    return cntk.times(words, table) if words.is_sparse else cntk.gather(table, words)


def positions(node, own, value):
    """A row for each step, or for each of several."""
    numbers = np.arange(node["shape"][0]) // node["each"]
    return value + cntk.gather(own["weight"], cntk.constant(numbers.astype(np.float32)))


def attention(node, own, value):
    """Head after head: CNTK's products of two values of a sample take one pair of matrices."""
    (steps, units), heads = node["shape"], node["heads"]
    size, found = units // heads, []
    unseen = np.triu(np.full((steps, steps), -1e30, np.float32), 1)
    for head in range(heads):
        begins = [number * units + head * size for number in range(3)]
        q, k, v = (cntk.slice(value, -1, begin, begin + size) for begin in begins)
        scores = cntk.times_transpose(q * size**-0.5, k)
        scores = scores + cntk.constant(unseen) if node.get("causal") else scores
        found.append(cntk.times(cntk.softmax(scores, axis=-1), v))
    return cntk.splice(*found, axis=-1)


def patches(node, own, value):
    """Each pixel as a step."""
    pixels, channels = node["shape"]
    return cntk.swapaxes(cntk.reshape(value, (channels, pixels)), 0, 1)


def class_token(node, own, value):
    """The same for each sample."""
    token = cntk.reshape(own["weight"], (1, -1))
    return cntk.splice(token, value, axis=0)


def first_step(node, own, value):
    """The first row."""
    return cntk.reshape(cntk.slice(value, 0, 0, 1), tuple(node["shape"]))


def mean_steps(node, own, value):
    """Of all rows."""
    return cntk.reshape(cntk.reduce_mean(value, 0), tuple(node["shape"]))


def concat(node, own, *values):
    """Features, or the channels of images, behind one another."""
    return cntk.splice(*values, axis=_axis(node))


def part(node, own, value):
    """Some of the features."""
    return cntk.slice(value, -1, node["start"], node["start"] + node["size"])


def stack(node, own, *values):
    """Rows of a matrix: steps that every sample has are no sequence to CNTK."""
    return cntk.splice(*[cntk.reshape(value, (1, -1)) for value in values], axis=0)


def unstack(node, own, value):
    """Rows, or the steps of a sequence, behind one another: what its last step sees of those before it."""
    if len(value.shape) > 1:
        return cntk.reshape(value, (node["shape"][0],))
    before = [
        cntk.sequence.past_value(value, time_step=step)
        for step in range(node["in_shape"][0] - 1, 0, -1)
    ]
    return cntk.sequence.last(cntk.splice(*before + [value], axis=0))


def sampled_code(node, own, value, noise):
    """Means and logarithms of variances come behind one another."""
    code = node["shape"][-1]
    mean, spread = cntk.slice(value, 0, 0, code), cntk.slice(value, 0, code, 2 * code)
    return mean + cntk.exp(0.5 * spread) * noise


def rbm(node, own, visible, noise):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    visible = cntk.stop_gradient(visible)
    scores = cntk.times(visible, own["weight"]) + own["hidden"]
    chances = cntk.stop_gradient(cntk.sigmoid(scores))
    drawn = cntk.stop_gradient(cntk.greater(2.0 * chances - 1.0, noise))
    end = cntk.sigmoid(cntk.times_transpose(drawn, own["weight"]) + own["visible"])
    end = cntk.stop_gradient(end)
    again = cntk.times(end, own["weight"]) + own["hidden"]
    energy = cntk.reduce_sum(cntk.softplus(again) - cntk.softplus(scores), 0)
    energy = energy + cntk.reduce_sum((end - visible) * own["visible"], 0)
    return cntk.splice(energy, chances, axis=0)
