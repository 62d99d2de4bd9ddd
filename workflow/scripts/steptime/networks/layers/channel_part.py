"""Some channels of an image in succession; others are for other layers."""

from dataclasses import replace

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, part


def shape(node, source):
    features, *extents = source
    return [*part.shape(node, [features]), *extents]


def forward(node, own, x):
    kept = slice(node["start"], node["start"] + node["size"])

    def backward(dy):
        dx = np.zeros_like(x)
        dx[:, kept] = dy
        return [dx], {}

    return x[:, kept], backward


LAYER = replace(
    part.LAYER,
    forward=forward,
    takes=("image",),
    shape=shape,
    example=(IMAGES, [CONV, {"channel_part": {"start": 1, "size": 3}}, "flatten"]),
)
