"""The largest value of each window of an image; padding never is the largest."""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind
from steptime.networks.windows import fold, pad, windowed_shape, windows


def shape(node, source):
    return windowed_shape(node, source[0], source)


def forward(node, own, x):
    padded = pad(x, node, -np.inf)
    seen = windows(padded, node)
    seen = seen.reshape(*seen.shape[:4], -1)
    chosen, extents = seen.argmax(-1), padded.shape

    def backward(dy):
        pieces = dy[..., None] * (np.arange(node["kernel"] ** 2) == chosen[..., None])
        return [fold(pieces, extents, node)], {}

    return seen.max(-1), backward


LAYER = LayerKind(
    forward,
    needs=("kernel", "stride"),
    defaults={"padding": 0},
    shape=shape,
    example=(IMAGES, [CONV, {"max_pool": {"kernel": 2, "stride": 2}}, "flatten"]),
)
