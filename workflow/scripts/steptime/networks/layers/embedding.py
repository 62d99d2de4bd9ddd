"""The row of weight (vocabulary, units) for each word id."""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind, parameter


def shape(node, source):
    return source + [node["units"]]


def parameters(node):
    return [parameter(node, "weight", [node["vocabulary"], node["units"]], math.sqrt(3))]


def numbers_moved(node, batch, weights):
    """Counts rows of the mini-batch's words, their gradient, and the words, which are read twice."""
    source, result = batch * math.prod(node["in_shape"]), batch * math.prod(node["shape"])
    rows = min(node["vocabulary"], source) * node["units"]
    return 5 * rows + 2 * source + 2 * result


def forward(node, own, tokens):
    def backward(dy):
        gradient = np.zeros_like(own["weight"])
        np.add.at(gradient, tokens, dy)
        # The tokens are the network's input: nothing flows to them.
        return [0.0], {"weight": gradient}

    return own["weight"][tokens], backward


LAYER = LayerKind(
    forward,
    takes=("words",),
    needs=("vocabulary", "units"),
    shape=shape,
    parameters=parameters,
    numbers_moved=numbers_moved,
    example=(WORDS, [EMBEDDING]),
)
