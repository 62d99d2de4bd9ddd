"""Scores of words: the features of each step times each row of a `table`, its second input (Press and Wolf 2017)."""

import math

from steptime.networks.layers import LayerKind
from steptime.networks.layers.table import LAYER as TABLE


def shape(node, source, table):
    if source[-1] != table[-1]:
        raise ValueError(
            f"its table, '{node['inputs'][1]}', has rows of {table[-1]}: write a dense layer of "
            f"{table[-1]} units before it"
        )
    return source[:-1] + table[:1]


def multiply_adds(node):
    return math.prod(node["in_shape"]) * node["shape"][-1]


def numbers_moved(node, batch, weights):
    """Counts the table, which is read forward and backward, its gradient, and what a dense layer moves besides."""
    table = node["in_shape"][-1] * node["shape"][-1]
    source, result = batch * math.prod(node["in_shape"]), batch * math.prod(node["shape"])
    return 3 * table + 3 * source + 2 * result


def forward(node, own, x, table):
    def backward(dy):
        rows = dy.reshape(-1, dy.shape[-1])
        return [dy @ table, rows.T @ x.reshape(-1, x.shape[-1])], {}

    return x @ table.T, backward


LAYER = LayerKind(
    forward,
    takes=("row", "sequence"),
    beside="table",
    inputs=2,
    shape=shape,
    counted=True,
    multiply_adds=multiply_adds,
    numbers_moved=numbers_moved,
    example=TABLE.example,
)
