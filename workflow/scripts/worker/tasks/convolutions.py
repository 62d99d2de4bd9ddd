"""Times the convolutions of a network, in every way of computing them that a framework lets its users choose."""

from shared.specification import is_plain

from .. import parts
from ..contract import Unsupported

# What the framework takes by itself, and the ways that some have by name.
WAYS = ("own choice", "direct", "im2col", "winograd", "fft")


def run(loaded, job, emit):
    """Proves and times each convolution in each way."""
    nodes = [node for node in job["spec"]["nodes"] if node["op"] == "conv" and is_plain(node)]
    if not nodes:
        raise Unsupported("the network has no convolution of squares")
    parts.run(loaded, job, emit, convolutions(nodes, job["batch"]))


def convolutions(nodes, batch):
    """Yields the parts, each made when it is needed."""
    for node in nodes:
        images, kernel = " x ".join(map(str, node["in_shape"])), node["kernel"]
        name = "{}: {}, {} of {} x {}".format(
            node["name"], images, node["channels"], kernel, kernel
        )
        for way in WAYS:
            yield parts.Convolution(name, way, node, batch)
