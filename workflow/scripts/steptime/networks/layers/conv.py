"""Convolution of images with weight (out, in, kernel, kernel), and bias (out) if `bias` is true.

`kernel`, `stride`, `padding` and `dilation`, the distance of a window's places, may be [of rows, of columns].
"""

import math

from shared.specification import pair
from steptime.networks.arrays import np
from steptime.networks.layers import (
    BIAS_BOUND,
    CONV,
    IMAGES,
    SIDES,
    LayerKind,
    over_places,
    parameter,
)
from steptime.networks.windows import fold, pad, windowed_shape, windows

# Windows hold each number of the images as often as a kernel has places: so many numbers at once.
AT_ONCE = 2**20


def shape(node, source):
    return windowed_shape(node, node["channels"], source)


def parameters(node):
    """Starts weights in +-1/sqrt(fan-in), the default of torch.nn.

    With larger ones (He et al. 2015) AlexNet, which has no normalisation, diverges at full size and a learning rate of
    0.01. `wide_start` asks for them, where so many layers follow one another that float32 would lose the gradients.
    """
    channels, kernel = node["in_shape"][0], pair(node["kernel"])
    weight_shape = [node["channels"], channels, *kernel]
    fan_in = channels * math.prod(kernel) / (6 if node.get("wide_start") else 1)
    weight = parameter(node, "weight", weight_shape, 1 / math.sqrt(fan_in))
    bias = parameter(node, "bias", [node["channels"]], BIAS_BOUND)
    return [weight] + ([bias] if node["bias"] else [])


def multiply_adds(node):
    return math.prod(node["shape"]) * node["in_shape"][0] * math.prod(pair(node["kernel"]))


def forward(node, own, x):
    """Multiplies all windows, one a row, by all filters.

    Where a node has `summed`, that adds up samples' parts of its gradients.
    """
    padded = pad(x, node, 0.0)
    seen, count = windows(padded, node).transpose(0, 2, 3, 4, 5, 1), len(own["weight"])
    extents, length = seen.shape[:3], math.prod(seen.shape[3:])
    many = 1 if "summed" in node else max(1, AT_ONCE // math.prod(seen.shape[1:]))
    parts = [slice(start, start + many) for start in range(0, len(x), many)]
    (batch, channels, *size), filters = x.shape, _filters(own["weight"])
    y = np.empty((*extents, count))
    for part in parts:
        np.matmul(seen[part].reshape(-1, length), filters, out=y[part].reshape(-1, count))
    if "bias" in own:
        y += own["bias"]

    def backward(dy):
        rows = np.ascontiguousarray(np.moveaxis(dy, 1, -1))
        products = (
            seen[part].reshape(-1, length).T @ rows[part].reshape(-1, count) for part in parts
        )
        summed = node.get("summed")
        total = summed(products, math.prod(extents[1:])) if summed else sum(products)
        weight = total.reshape(*seen.shape[3:], count).transpose(3, 2, 0, 1)
        gradients = {"weight": weight, "bias": over_places(node, rows)}
        gradients = {role: gradients[role] for role in own}
        if node["inputs"] == ["input"]:
            # Nobody asks how the loss depends on the images, and the first windows are the largest.
            return [0.0], gradients
        dx = np.moveaxis(np.empty((batch, *size, channels)), -1, 1)
        turned = _filters(own["weight"]).T
        for part in parts:
            pieces = (rows[part].reshape(-1, count) @ turned).reshape(
                *rows[part].shape[:3], -1, channels
            )
            pieces = pieces.transpose(0, 4, 1, 2, 3)
            dx[part] = fold(pieces, padded[part].shape, node)
        return [dx], gradients

    return np.moveaxis(y, -1, 1), backward


def _filters(weight):
    """Returns the filters, one a column, in the order of a window's values."""
    return weight.transpose(2, 3, 1, 0).reshape(-1, len(weight))


TALL = {"kernel": [3, 1], "padding": [0, 1], "stride": [1, 2]}
APART = {"kernel": 3, "dilation": 2}
SIDED = ("kernel", "stride", "padding", "dilation")


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("channels", "kernel"),
    defaults={"stride": 1, "padding": 0, "bias": True},
    flags=("wide_start",),
    options={
        SIDES: (IMAGES, [{"conv": {"channels": 4} | TALL}, "flatten"]),
        "dilation": (IMAGES, [{"conv": {"channels": 4} | APART}, "flatten"]),
    },
    sided=SIDED,
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    example=(IMAGES, [CONV, "flatten"]),
)
