"""The mean of each map of an image."""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind


def shape(node, source):
    channels, _, _ = source
    return [channels]


def forward(node, own, x):
    def backward(dy):
        return [np.broadcast_to(dy[:, :, None, None], x.shape) / x[0, 0].size], {}

    return x.mean((2, 3)), backward


LAYER = LayerKind(
    forward, takes=("image",), shape=shape, example=(IMAGES, [CONV, "global_average_pool"])
)
