"""Matrix products and convolutions of MXNet 1.0, one at a time: those of MXNet, without oneDNN (see `worker.parts`)."""

from ...contract import Unsupported
from ..mxnet import parts as mxnet_parts
from ..mxnet.parts import start as start

TASKS = ("products", "convolutions")


def build(part):
    """An operation of its own."""
    if part.kind == "product":
        return mxnet_parts.build(part)
    if part.way != "im2col":
        raise Unsupported("MXNet 1.0 unfolds the images and multiplies (im2col), and nothing else")
    return mxnet_parts.convolution(part)
