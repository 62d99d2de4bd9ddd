"""The mean of each window of an image, where zeros of the padding count. Sizes may be [of rows, of columns]."""

import math

from shared.specification import pair
from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, SIDES, LayerKind
from steptime.networks.windows import fold, pad, windowed_shape, windows


def shape(node, source):
    return windowed_shape(node, source[0], source)


def forward(node, own, x):
    padded, size = pad(x, node, 0.0), math.prod(pair(node["kernel"]))

    def backward(dy):
        pieces = np.broadcast_to(dy[..., None] / size, (*dy.shape, size))
        return [fold(pieces, padded.shape, node)], {}

    return windows(padded, node).mean((-2, -1)), backward


def example(**options):
    options = {"kernel": 3, "stride": 2, "padding": 1} | options
    return IMAGES, [CONV, {"avg_pool": options}, "flatten"]


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("kernel", "stride"),
    defaults={"padding": 0},
    options={SIDES: example(kernel=[3, 1], padding=[1, 0])},
    sided=("kernel", "stride", "padding"),
    shape=shape,
    example=example(),
)
