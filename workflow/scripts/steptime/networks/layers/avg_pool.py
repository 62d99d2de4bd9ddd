"""The mean of each window of an image, in which the zeros of its padding count."""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind
from steptime.networks.windows import fold, pad, windowed_shape, windows


def shape(node, source):
    return windowed_shape(node, source[0], source)


def forward(node, own, x):
    padded, size = pad(x, node, 0.0), node["kernel"] ** 2

    def backward(dy):
        pieces = np.broadcast_to(dy[..., None] / size, (*dy.shape, size))
        return [fold(pieces, padded.shape, node)], {}

    return windows(padded, node).mean((-2, -1)), backward


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("kernel", "stride"),
    defaults={"padding": 0},
    shape=shape,
    example=(IMAGES, [CONV, {"avg_pool": {"kernel": 3, "stride": 2, "padding": 1}}, "flatten"]),
)
