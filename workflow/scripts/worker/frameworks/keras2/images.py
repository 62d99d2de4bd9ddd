"""Layers of Keras 2.0 of images, but for those of the papers' first networks.

Each gives a list of Keras's own layers, or takes a node, its parameters and its inputs and is written in functions of
Keras's backend. What was chosen here: docs/adapters/keras2.md.

Plain Python that 3.6 can import: standard library, numpy and Keras.
"""

import numpy as np
from keras import backend, layers

from shared import specification

from .layers import Written, channels_first, cut, normal, placed, shaped, wide

# What no maximum is.
_LOWEST = float(np.finfo(np.float32).min)


def _around(node, made):
    """Layers with the padding of a node in front of them."""
    return [layers.ZeroPadding2D(node["padding"])] + made if node["padding"] else made


def conv_transpose(node, mode):
    """Keras's own, of which what padding takes off is cut off."""
    conv = layers.Conv2DTranspose(
        node["channels"],
        node["kernel"],
        strides=node["stride"],
        use_bias=node["bias"],
        kernel_initializer="zeros",
    )
    return [conv, layers.Cropping2D(node["padding"])] if node["padding"] else [conv]


def avg_pool(node, mode):
    """Padding counts."""
    return _around(node, [layers.AveragePooling2D(node["kernel"], node["stride"])])


def max_pool(node, mode):
    """Keras's own, and padding with zeros where nothing is below zero."""
    if mode == "theano" and node["repeating"]:
        return [Written(node, _first_maxima)]
    if node["padding"] and not node["positive"]:
        return [Written(node, _bordered)]
    return _around(node, [layers.MaxPooling2D(node["kernel"], node["stride"])])


def _bordered(node, own, value):
    """A pool that is padded with what no maximum is; Keras pads with zeros alone."""
    edges = (node["kernel"],) * 2, (node["stride"],) * 2
    return backend.pool2d(_with_border(node, value), *edges, pool_mode="max")


def _with_border(node, value):
    edge, (_, height, width) = node["padding"], node["in_shape"]
    if not edge:
        return value
    border = np.full((1, height + 2 * edge, width + 2 * edge), _LOWEST, np.float32)
    border[:, edge:-edge, edge:-edge] = 0.0
    border = border if channels_first() else border[0, ..., None]
    value = backend.spatial_2d_padding(value, ((edge, edge),) * 2)
    return value + backend.constant(border, shape=border.shape)


def _first_maxima(node, own, value):
    """The first of equal maxima has the whole gradient; of Theano's own pool, all of them have it."""
    value, found = _with_border(node, value), None
    for taken in _taps(node, value):
        found = (
            taken if found is None else backend.switch(backend.greater(taken, found), taken, found)
        )
    return found


def _taps(node, value):
    """What stands at each place of a window, for all windows."""
    (_, height, width), stride = node["shape"], node["stride"]
    for row in range(node["kernel"]):
        for column in range(node["kernel"]):
            rows = slice(row, row + (height - 1) * stride + 1, stride)
            columns = slice(column, column + (width - 1) * stride + 1, stride)
            if channels_first():
                yield value[:, :, rows, columns]
            else:
                yield value[:, rows, columns]


def adaptive_avg_pool(node, own, value):
    """The mean of each share of rows, then of columns."""
    size, front = node["size"], 2 if channels_first() else 1
    for axis, extent in zip((front, front + 1), node["in_shape"][1:]):
        ends = [(at * extent // size, -(-(at + 1) * extent // size)) for at in range(size)]
        shares = [cut(value, axis, begin, end) for begin, end in ends]
        means = [backend.mean(share, axis=axis, keepdims=True) for share in shares]
        value = backend.concatenate(means, axis=axis)
    return value


def grouped_conv(node, mode):
    """A convolution of each group, behind one another; of one channel each, Keras has none in time."""
    return _around(node, [Written(node, _depthwise if _is_depthwise(node) else _in_groups)])


def _is_depthwise(node):
    return node["groups"] == node["in_shape"][0] == node["channels"]


def _depthwise(node, own, value):
    """Kernels come as (out, 1, height, width)."""
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        steps = [1, node["stride"], node["stride"], 1]
        weight = backend.permute_dimensions(own["weight"], (2, 3, 0, 1))
        made = tf.nn.depthwise_conv2d(value, weight, steps, "VALID")
    else:
        kernel = node["kernel"]
        weight = backend.reshape(own["weight"], (node["channels"], kernel * kernel))
        made = sum(
            taken * wide(node, backend.reshape(cut(weight, 1, at, at + 1), (node["channels"],)))
            for at, taken in enumerate(_taps(node, value))
        )
    return made + wide(node, own["bias"]) if node["bias"] else made


def _in_groups(node, own, value):
    """Kernels come as (out, in / groups, height, width)."""
    groups, axis = node["groups"], 1 if channels_first() else 3
    width, count = node["in_shape"][0] // groups, node["channels"] // groups
    weight, made = own["weight"], []
    if backend.backend() == "theano":
        # It convolves.
        weight = weight[:, :, ::-1, ::-1]
    for group in range(groups):
        kernel = cut(weight, 0, group * count, (group + 1) * count)
        kernel = backend.permute_dimensions(kernel, (2, 3, 1, 0))
        kernel._keras_shape = (node["kernel"],) * 2 + (width, count)
        part = cut(value, axis, group * width, (group + 1) * width)
        made.append(backend.conv2d(part, kernel, (node["stride"],) * 2))
    made = backend.concatenate(made, axis=axis) if groups > 1 else made[0]
    return made + wide(node, own["bias"]) if node["bias"] else made


def channel_shuffle(node, mode):
    """Groups of channels, one channel of each in turn."""
    (channels, height, width), groups = node["shape"], node["groups"]
    parts, turn = (groups, channels // groups), (2, 1, 3)
    parts, turn = (
        (parts + (height * width,), turn)
        if channels_first()
        else ((height * width,) + parts, (1, 3, 2))
    )
    whole = placed(node["shape"])
    return [layers.Reshape(parts), layers.Permute(turn), layers.Reshape(whole)]


def local_response_norm(node, own, value):
    """Divided by the squares of neighbouring channels."""
    channels, half = node["shape"][0], node["size"] // 2
    # Its channels stand where another order of axes has its rows or columns, which Keras can pad.
    if channels_first():
        around, order, axis = ((half, half), (0, 0)), "channels_last", 1
    else:
        around, order, axis = ((0, 0), (half, half)), "channels_first", 3
    squares = backend.spatial_2d_padding(backend.square(value), around, order)
    near = sum(cut(squares, axis, first, first + channels) for first in range(node["size"]))
    scale = 1.0 + near * (1.0 / (node["inverse_alpha"] * node["size"]))
    return value * backend.exp(-0.75 * backend.log(scale))


def group_norm(node, own, value):
    """Each group of channels of a sample by its own mean and variance."""
    (channels, height, width), groups = node["shape"], node["groups"]
    if channels_first():
        parts, axes = shaped(value, groups, channels // groups * height * width), 2
    else:
        parts, axes = shaped(value, height * width, groups, channels // groups), [1, 3]
    value = normal(parts, axes, specification.BATCH_NORM_EPSILON)
    value = shaped(value, *placed(node["shape"]))
    return value * wide(node, own["gamma"]) + wide(node, own["beta"])
