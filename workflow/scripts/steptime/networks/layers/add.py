"""The sum of two inputs of the same shape."""

import math

from steptime.networks.layers import CONV, IMAGES, LayerKind


def shape(node, first, second):
    if first != second:
        such = ", such as a shortcut of one conv with kernel 1" if node["op"] == "add" else ""
        raise ValueError(
            f"{node['op']} takes two inputs of one shape, and the other, '{node['inputs'][1]}', has shape "
            f"{second}: write layers that give both the same{such}"
        )
    return list(first)


def numbers_moved(node, batch, weights):
    """Counts the second operand, which is read; the first is at hand where the sum is made."""
    return batch * math.prod(node["in_shape"])


def forward(node, own, first, second):
    return first + second, lambda dy: ([dy, dy], {})


LAYER = LayerKind(
    forward,
    inputs=2,
    shape=shape,
    numbers_moved=numbers_moved,
    example=(IMAGES, [CONV, {"residual": {"layers": [CONV]}}, "flatten"]),
)
