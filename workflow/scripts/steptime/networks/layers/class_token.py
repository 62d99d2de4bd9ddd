"""Puts a trainable step, weight (units), before a sequence (steps, units) (Dosovitskiy et al. 2021, equation 1)."""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind, parameter


def shape(node, source):
    steps, units = source
    return [steps + 1, units]


def parameters(node):
    return [parameter(node, "weight", node["in_shape"][-1:], math.sqrt(3) * node["deviation"])]


def numbers_moved(node, batch, weights):
    """Counts each step once more, read and written, forward and backward."""
    return 5 * weights + 4 * batch * math.prod(node["in_shape"])


def forward(node, own, x):
    first = np.broadcast_to(own["weight"], (len(x), 1, x.shape[-1]))
    y = np.concatenate([first, x], axis=1)
    return y, lambda dy: ([dy[:, 1:]], {"weight": dy[:, 0].sum(0)})


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    defaults={"deviation": 0.02},
    shape=shape,
    parameters=parameters,
    numbers_moved=numbers_moved,
    example=(WORDS, [EMBEDDING, {"class_token": {"deviation": 1.0}}, "mean_steps"]),
)
