"""The largest value of each window of an image; padding never is the largest."""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind
from steptime.networks.windows import blank, pad, places, unpad, windowed_shape


def shape(node, source):
    if node["padding"] >= node["kernel"]:
        raise ValueError("a window of padding alone has no largest value: write less padding")
    return windowed_shape(node, source[0], source)


def forward(node, own, x):
    padded = pad(x, node, -np.inf)
    extents = padded.shape
    first, *others = places(padded, node)
    y, chosen = first.copy("K"), np.zeros_like(first, np.uint16)
    for number, seen in enumerate(others, 1):
        # Of equal ones, the first.
        chosen[seen > y] = number
        np.maximum(y, seen, out=y)

    def backward(dy):
        dx = blank(extents)
        for number, place in enumerate(places(dx, node)):
            place += dy * (chosen == number)
        return [unpad(dx, node)], {}

    return y, backward


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("kernel", "stride"),
    defaults={"padding": 0},
    shape=shape,
    example=(IMAGES, [CONV, {"max_pool": {"kernel": 2, "stride": 2}}, "flatten"]),
)
