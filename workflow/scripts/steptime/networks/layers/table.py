"""A trainable matrix, weight (rows, units), for layers that share it: `lookup` and `unembedding`.

Its input is ignored. `deviation` is that of the start values.
"""

import math

from steptime.networks.layers import WORDS, LayerKind, parameter


def shape(node, source):
    return [node["rows"], node["units"]]


def parameters(node):
    bound = math.sqrt(3) * node["deviation"]
    return [parameter(node, "weight", [node["rows"], node["units"]], bound)]


def numbers_moved(node, batch, weights):
    """Counts the update alone: it reads the weight and its gradient, and writes the weight."""
    return 3 * weights


def forward(node, own, x):
    return own["weight"], lambda dy: ([0.0], {"weight": dy})


LAYER = LayerKind(
    forward,
    takes=("words", "row", "sequence", "image"),
    needs=("rows", "units"),
    defaults={"deviation": 0.02},
    shape=shape,
    parameters=parameters,
    numbers_moved=numbers_moved,
    example=(
        WORDS,
        [
            {"table": {"rows": 11, "units": 6, "deviation": 1.0, "name": "words"}},
            {"lookup": {"inputs": ["input", "words"], "name": "found"}},
            {"unembedding": {"inputs": ["found", "words"]}},
        ],
    ),
)
