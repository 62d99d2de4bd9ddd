"""Each pixel of an image `factor` times, in rows and in columns."""

from steptime.networks.layers import CONV, IMAGES, LayerKind


def shape(node, source):
    channels, height, width = source
    return [channels, height * node["factor"], width * node["factor"]]


def forward(node, own, x):
    factor, (batch, channels, height, width) = node["factor"], x.shape

    def backward(dy):
        blocks = dy.reshape(batch, channels, height, factor, width, factor)
        return [blocks.sum((3, 5))], {}

    return x.repeat(factor, 2).repeat(factor, 3), backward


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("factor",),
    shape=shape,
    example=(IMAGES, [CONV, {"upsample": {"factor": 2}}, "flatten"]),
)
