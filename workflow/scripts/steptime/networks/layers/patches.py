"""The pixels of an image (channels, height, width), row by row, as a sequence (pixels, channels)."""

import math

from steptime.networks.layers import CONV, IMAGES, LayerKind, moved_by_fused


def shape(node, source):
    channels, *extents = source
    return [math.prod(extents), channels]


def forward(node, own, x):
    y = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
    return y, lambda dy: ([dy.swapaxes(1, 2).reshape(x.shape)], {})


LAYER = LayerKind(
    forward,
    takes=("image",),
    shape=shape,
    numbers_moved=moved_by_fused,
    example=(IMAGES, [CONV, "patches", {"dense": {"units": 4}}, "mean_steps"]),
)
