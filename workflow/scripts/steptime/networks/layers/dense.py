"""Matrix product of the last axis with weight (in, units), and bias (units) if `bias` is true."""

import math

from steptime.networks.layers import BIAS_BOUND, LayerKind, over_places, parameter


def shape(node, source):
    return source[:-1] + [node["units"]]


def parameters(node):
    features, units = node["in_shape"][-1], node["units"]
    weight = parameter(node, "weight", [features, units], math.sqrt(3 / features))
    return [weight] + ([parameter(node, "bias", [units], BIAS_BOUND)] if node["bias"] else [])


def multiply_adds(node):
    return math.prod(node["in_shape"]) * node["units"]


def forward(node, own, x):
    seen = x.reshape(-1, x.shape[-1])
    y = seen @ own["weight"]
    if "bias" in own:
        y += own["bias"]

    def backward(dy):
        rows = dy.reshape(-1, dy.shape[-1])
        gradients = {"weight": seen.T @ rows, "bias": over_places(node, dy)}
        gradients = {role: gradients[role] for role in own}
        if node["inputs"] == ["input"]:
            # Nobody asks how the loss depends on the input, and the first matrix may be the largest.
            return [0.0], gradients
        return [(rows @ own["weight"].T).reshape(x.shape)], gradients

    return y.reshape(*x.shape[:-1], -1), backward


LAYER = LayerKind(
    forward,
    takes=("row", "sequence"),
    needs=("units",),
    defaults={"bias": True},
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    example=({"kind": "dense", "shape": [6]}, [{"dense": {"units": 4}}]),
)
