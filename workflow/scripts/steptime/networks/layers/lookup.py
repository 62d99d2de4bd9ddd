"""The row of a `table`, its second input, for each word id of its first."""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind
from steptime.networks.layers.table import LAYER as TABLE


def shape(node, words, table):
    return words + table[-1:]


def numbers_moved(node, batch, weights):
    """Counts rows of the mini-batch's words, their gradient, and the words, which are read twice."""
    source, result = batch * math.prod(node["in_shape"]), batch * math.prod(node["shape"])
    return 2 * source + 4 * result


def forward(node, own, tokens, table):
    def backward(dy):
        gradient = np.zeros_like(table)
        np.add.at(gradient, tokens, dy)
        # The tokens are the network's input: nothing flows to them.
        return [0.0, gradient], {}

    return table[tokens], backward


LAYER = LayerKind(
    forward,
    takes=("words",),
    beside="table",
    inputs=2,
    shape=shape,
    numbers_moved=numbers_moved,
    example=TABLE.example,
)
