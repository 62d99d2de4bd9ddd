"""Matrix product of the last axis with weight (in, units), and bias (units) if `bias` is true."""

import math

from steptime.networks.layers import BIAS_BOUND, LayerKind, parameter


def shape(node, source):
    return source[:-1] + [node["units"]]


def parameters(node):
    features, units = node["in_shape"][-1], node["units"]
    weight = parameter(node, "weight", [features, units], math.sqrt(3 / features))
    return [weight] + ([parameter(node, "bias", [units], BIAS_BOUND)] if node["bias"] else [])


def multiply_adds(node):
    return math.prod(node["in_shape"]) * node["units"]


def forward(node, own, x):
    y = x @ own["weight"] + own.get("bias", 0.0)

    def backward(dy):
        rows = dy.reshape(-1, dy.shape[-1])
        gradients = {"weight": x.reshape(-1, x.shape[-1]).T @ rows, "bias": rows.sum(0)}
        return [dy @ own["weight"].T], {role: gradients[role] for role in own}

    return y, backward


LAYER = LayerKind(
    forward,
    needs=("units",),
    defaults={"bias": True},
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    example=({"kind": "dense", "shape": [6]}, [{"dense": {"units": 4}}]),
)
