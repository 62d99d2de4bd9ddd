"""A restricted Boltzmann machine that learns by one step of contrastive divergence (Hinton 2002).

Its inputs are the visible units, and a noise from -1 to 1 for each hidden unit. A hidden unit is 1 where its chance is
above its noise. From the hidden units follow new visible units, the end of the chain. The layer's first output is the
free energy of its input minus that of the end; the others are the chances of the hidden units. Only the energies have a
gradient, in which the input and the end of the chain are constants. That gradient is CD-1 with its sign turned: <v h>
of the end minus <v h> of the data.
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind, parameter
from steptime.networks.layers.sigmoid import logistic


def shape(node, source, noise):
    if noise != [node["units"]]:
        raise ValueError(
            f"its noise, '{node['inputs'][1]}', has shape {noise}: write {node['units']} features, "
            "as many as it has hidden units"
        )
    return [1 + node["units"]]


def parameters(node):
    (visible,), hidden = node["in_shape"], node["units"]
    bound = (3.0 / visible) ** 0.5
    return [
        parameter(node, "weight", [visible, hidden], bound),
        parameter(node, "visible", [visible], 0.02),
        parameter(node, "hidden", [hidden], 0.02),
    ]


def multiply_adds(node):
    """Counts three products: up, down and up again."""
    return 3 * math.prod(node["in_shape"]) * node["units"]


def inner_multiply_adds(node):
    """Returns a correction: the weight's gradient takes two products, not one for each of the three on the way up."""
    return -math.prod(node["in_shape"]) * node["units"]


def chain(own, visible, noise):
    """Returns the constants of the energies: the visible units, the chances of hidden units, the end of the chain."""
    chances = logistic(visible @ own["weight"] + own["hidden"])
    drawn = (2.0 * chances - 1.0 > noise).astype(np.float64)
    return visible, chances, logistic(drawn @ own["weight"].T + own["visible"])


def softplus(x):
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def forward(node, own, visible, noise):
    visible, chances, end = chain(own, visible, noise)
    scores = [rows @ own["weight"] + own["hidden"] for rows in (visible, end)]
    energy = (softplus(scores[1]) - softplus(scores[0])).sum(1)
    energy += (end - visible) @ own["visible"]

    def backward(dy):
        flowing = dy[:, :1]
        up, again = (flowing * logistic(score) for score in scores)
        gradients = {
            "weight": end.T @ again - visible.T @ up,
            "visible": (flowing * (end - visible)).sum(0),
            "hidden": (again - up).sum(0),
        }
        return [np.zeros_like(visible), np.zeros_like(noise)], gradients

    return np.concatenate([energy[:, None], chances], 1), backward


def numbers_moved(node, batch, weights):
    """Counts the weight for each of five products and its update, and visible, hidden and drawn units, twice each."""
    units = sum(node["in_shape"]) + node["units"]
    return 8 * weights + 6 * batch * units


LAYER = LayerKind(
    forward,
    takes=("row",),
    needs=("units",),
    inputs=2,
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    inner_multiply_adds=inner_multiply_adds,
    numbers_moved=numbers_moved,
    example=(
        {"kind": "dense", "shape": [9]},
        [
            {"part": {"start": 0, "size": 5, "name": "seen"}},
            {"part": {"start": 5, "size": 4, "inputs": ["input"], "name": "noise"}},
            {"rbm": {"units": 4, "inputs": ["seen", "noise"]}},
        ],
    ),
)
