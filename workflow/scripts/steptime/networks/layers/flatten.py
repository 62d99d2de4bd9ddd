"""All values of a sample in one row, channels first: (c, h, w) becomes c*h*w."""

import math

from steptime.networks.layers import IMAGES, LayerKind, moved_by_fused


def shape(node, source):
    return [math.prod(source)]


def forward(node, own, x):
    return x.reshape(len(x), -1), lambda dy: ([dy.reshape(x.shape)], {})


LAYER = LayerKind(
    forward,
    takes=("image",),
    shape=shape,
    numbers_moved=moved_by_fused,
    example=(IMAGES, ["flatten"]),
)
