"""Convolution of images with weight (out, in, kernel, kernel), and bias (out) if `bias` is true."""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import BIAS_BOUND, CONV, IMAGES, LayerKind, parameter
from steptime.networks.windows import fold, pad, windowed_shape, windows


def shape(node, source):
    return windowed_shape(node, node["channels"], source)


def parameters(node):
    """Weights start in +-1/sqrt(fan-in), the default of torch.nn.

    Wider ones (He et al. 2015) make AlexNet at full size, which has nothing that normalises,
    diverge at a learning rate of 0.01.
    """
    channels, kernel = node["in_shape"][0], node["kernel"]
    weight_shape = [node["channels"], channels, kernel, kernel]
    weight = parameter(node, "weight", weight_shape, 1 / math.sqrt(channels * kernel * kernel))
    bias = parameter(node, "bias", [node["channels"]], BIAS_BOUND)
    return [weight] + ([bias] if node["bias"] else [])


def multiply_adds(node):
    return math.prod(node["shape"]) * node["in_shape"][0] * node["kernel"] ** 2


def forward(node, own, x):
    """A matrix product of all windows, one a row, with all filters."""
    padded = pad(x, node, 0.0) if node["padding"] else x
    batch, channels, height, width = windows(padded, node).shape[:4]

    def columns():
        # Nine times the image for a kernel of 3: made twice, since to keep it takes more memory than the rest.
        rows = windows(padded, node).transpose(0, 2, 3, 1, 4, 5)
        return rows.reshape(batch * height * width, -1)

    filters = own["weight"].reshape(len(own["weight"]), -1)
    y = columns() @ filters.T + own.get("bias", 0.0)

    def backward(dy):
        rows = np.moveaxis(dy, 1, -1).reshape(-1, len(filters))
        gradients = {
            "weight": (rows.T @ columns()).reshape(own["weight"].shape),
            "bias": rows.sum(0),
        }
        gradients = {role: gradients[role] for role in own}
        if node["inputs"] == ["input"]:
            # Nobody asks how the loss depends on the images, and the first windows are the largest.
            return [0.0], gradients
        pieces = (rows @ filters).reshape(batch, height, width, channels, -1)
        return [fold(np.moveaxis(pieces, 3, 1), padded.shape, node)], gradients

    return np.moveaxis(y.reshape(batch, height, width, -1), -1, 1), backward


LAYER = LayerKind(
    forward,
    needs=("channels", "kernel"),
    defaults={"stride": 1, "padding": 0, "bias": True},
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    example=(IMAGES, [CONV, "flatten"]),
)
