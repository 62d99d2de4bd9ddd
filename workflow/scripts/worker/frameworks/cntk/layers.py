"""Layers of CNTK.

Each takes a node, its parameters and its inputs, of one sample. Sequences have a dynamic axis.
"""

import cntk

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
    return cntk.splice(*made, axis=0) if groups > 1 else made[0]


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


def concat(node, own, *values):
    """The channels of images behind one another."""
    return cntk.splice(*values, axis=0)
