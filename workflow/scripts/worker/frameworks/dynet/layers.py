"""Layers of DyNet that are made of its primitives.

As in the adapter, arrays are column-major with the batch last, and a sequence is a list of its steps, or, behind
a dense layer, all of them in one batch, steps first.
"""

import dynet

from shared import specification


def whole(x):
    """The steps of a sequence as one batch, so that one product takes them all."""
    return dynet.concatenate_to_batch(x) if isinstance(x, list) else x


def rnn(node, own, x):
    outputs = []
    for value in x:
        before = [own["recurrent"], outputs[-1]] if outputs else []
        sums = dynet.affine_transform([own["bias"], own["input"], value] + before)
        outputs.append(dynet.tanh(sums))
    return outputs


def avg_pool(node, x):
    """Mean of one strided part of the image for each place in a window: DyNet has no average pooling."""
    stride, kernel = node["stride"], node["kernel"]
    reach = [(extent - 1) * stride + 1 for extent in node["shape"][:0:-1]]
    parts = [
        dynet.strided_select(
            x, [stride, stride], [across, down], [across + reach[0], down + reach[1]]
        )
        for down in range(kernel)
        for across in range(kernel)
    ]
    return dynet.average(parts)


def local_response_norm(node, own, x):
    (channels, height, width), half = node["in_shape"], node["size"] // 2
    border = [dynet.zeros((width, height, half), batch_size=x.dim()[1])]
    squares = dynet.concatenate(border + [dynet.square(x)] + border, d=2)
    parts = [dynet.pick_range(squares, at, at + channels, 2) for at in range(node["size"])]
    sums = dynet.esum(parts) * (1 / (node["inverse_alpha"] * node["size"])) + 1.0
    return dynet.cmult(x, dynet.exp(dynet.log(sums) * -0.75))


def channel_shuffle(node, own, x):
    groups, (channels, height, width) = node["groups"], node["in_shape"]
    batch = x.dim()[1]
    parts = dynet.reshape(x, (width * height, channels // groups, groups), batch_size=batch)
    parts = dynet.transpose(parts, [0, 2, 1])
    return dynet.reshape(parts, (width, height, channels), batch_size=batch)


def concat(node, own, *values):
    """Images by their channels."""
    return dynet.concatenate(list(values), d=2)


def batch_norm(node, own, x):
    """From primitives, as all normalisation is: DyNet has none by the batch."""
    centred = x - wide(node, _of_channels(x))
    variance = _of_channels(dynet.square(centred))
    scale = dynet.cdiv(own["gamma"], dynet.sqrt(variance + specification.BATCH_NORM_EPSILON))
    return dynet.cmult(centred, wide(node, scale)) + wide(node, own["beta"])


def _of_channels(x):
    """Mean of each channel: first of each image, since one long sum in float32 is less exact."""
    (width, height, channels), batch = x.dim()
    columns = dynet.reshape(x, (width * height, channels), batch_size=batch)
    # A product, since what DyNet repeats for itself takes five times as long.
    means = dynet.constant((1, width * height), 1.0 / (width * height)) * columns
    return dynet.mean_batches(dynet.reshape(means, (channels,), batch_size=batch))


def wide(node, values):
    """One number a channel, to stand beside an image."""
    channels, height, width = node["shape"]
    rows = dynet.ones((width * height, 1)) * dynet.reshape(values, (1, channels))
    return dynet.reshape(rows, (width, height, channels))
