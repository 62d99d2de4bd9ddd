"""Two rows of features as the two steps of a sequence, so that what follows judges both by the same weights."""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind


def shape(node, first, second):
    if first != second:
        raise ValueError(
            f"its other input, '{node['inputs'][1]}', has shape {second}: write two inputs of as "
            "many features, without steps"
        )
    return [2, *first]


def numbers_moved(node, batch, weights):
    """A copy, and another one of the gradient on the way back."""
    return 4 * batch * math.prod(node["shape"])


def forward(node, own, first, second):
    return np.stack([first, second], 1), lambda dy: ([dy[:, 0], dy[:, 1]], {})


ONE = {"dense": {"units": 5, "name": "one"}}
OTHER = {"dense": {"units": 5, "inputs": ["input"], "name": "other"}}

LAYER = LayerKind(
    forward,
    takes=("row",),
    inputs=2,
    shape=shape,
    numbers_moved=numbers_moved,
    example=(
        {"kind": "dense", "shape": [6]},
        [ONE, OTHER, {"stack": {"inputs": ["one", "other"]}}],
    ),
)
