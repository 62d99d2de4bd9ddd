"""Two rows of features as the two steps of a sequence, so that the next layers judge both by the same weights."""

from steptime.networks.arrays import np
from steptime.networks.layers import ROW, LayerKind, moved_by_copy


def shape(node, first, second):
    if first != second:
        raise ValueError(
            f"its other input, '{node['inputs'][1]}', has shape {second}: write two inputs of as "
            "many features, without steps"
        )
    return [2, *first]


def forward(node, own, first, second):
    return np.stack([first, second], 1), lambda dy: ([dy[:, 0], dy[:, 1]], {})


ONE = {"dense": {"units": 5, "name": "one"}}
OTHER = {"dense": {"units": 5, "inputs": ["input"], "name": "other"}}

LAYER = LayerKind(
    forward,
    takes=("row",),
    inputs=2,
    shape=shape,
    numbers_moved=moved_by_copy,
    example=(ROW, [ONE, OTHER, {"stack": {"inputs": ["one", "other"]}}]),
)
