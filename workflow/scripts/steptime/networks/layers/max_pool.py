"""The largest value of each window of an image; padding never is the largest.

Rounded `up`, windows may reach beyond the image. Sizes may be [of rows, of columns].
"""

from shared.specification import pair
from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, SIDES, SWITCH, LayerKind
from steptime.networks.windows import blank, pad, places, unpad, windowed_shape


def shape(node, source):
    sides = zip(pair(node["padding"]), pair(node["kernel"]), strict=True)
    if any(edge >= size for edge, size in sides):
        raise ValueError("a window of padding alone has no largest value: write less padding")
    return windowed_shape(node, source[0], source)


def forward(node, own, x):
    padded = pad(x, node, -np.inf)
    extents = padded.shape
    first, *others = places(padded, node)
    y, chosen = first.copy("K"), np.zeros_like(first, np.uint16)
    for number, seen in enumerate(others, 1):
        # The first of equal ones.
        chosen[seen > y] = number
        np.maximum(y, seen, out=y)

    def backward(dy):
        dx = blank(extents)
        for number, place in enumerate(places(dx, node)):
            place += dy * (chosen == number)
        return [unpad(dx, node)], {}

    return y, backward


def example(**options):
    return IMAGES, [CONV, {"max_pool": {"kernel": 2, "stride": 2} | options}, "flatten"]


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("kernel", "stride"),
    defaults={"padding": 0},
    options={SIDES: example(kernel=[2, 1]), "up": example(kernel=3, up=True)},
    sided=("kernel", "stride", "padding"),
    values={"up": SWITCH},
    shape=shape,
    example=example(),
)
