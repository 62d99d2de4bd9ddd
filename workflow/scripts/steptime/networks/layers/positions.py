"""Adds to each step of a sequence (steps, units) the row of its number in a weight (rows, units).

With `each`, as many steps in succession share a row, as the words of a sentence do in BERT. Rows beyond the last step
are parameters that no gradient reaches. `deviation` is that of the start values.
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind, moved_by_fused, parameter


def shape(node, source):
    steps, _ = source
    if steps > node["rows"] * node["each"]:
        raise ValueError(f"{node['rows']} rows for {steps} steps: write rows: {steps}, or more")
    return list(source)


def parameters(node):
    bound = math.sqrt(3) * node["deviation"]
    return [parameter(node, "weight", [node["rows"], node["in_shape"][-1]], bound)]


def forward(node, own, x):
    rows = np.arange(x.shape[1]) // node["each"]

    def backward(dy):
        gradient = np.zeros_like(own["weight"])
        np.add.at(gradient, rows, dy.sum(0))
        return [dy], {"weight": gradient}

    return x + own["weight"][rows], backward


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    needs=("rows",),
    defaults={"each": 1, "deviation": 0.02},
    shape=shape,
    parameters=parameters,
    numbers_moved=moved_by_fused,
    example=(WORDS, [EMBEDDING, {"positions": {"rows": 5, "deviation": 1.0}}]),
)
