"""Plain recurrence over (steps, features): the hyperbolic tangent of the product of a step with input
(in, units), plus that of the output before it with recurrent (units, units), plus bias (units).

The first step has an output of zero before it (Elman 1990).
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import BIAS_BOUND, EMBEDDING, WORDS, LayerKind, parameter


def shape(node, source):
    steps, _ = source
    return [steps, node["units"]]


def parameters(node):
    features, units = node["in_shape"][-1], node["units"]
    return [
        parameter(node, "input", [features, units], math.sqrt(3 / features)),
        parameter(node, "recurrent", [units, units], math.sqrt(3 / units)),
        parameter(node, "bias", [units], BIAS_BOUND),
    ]


def second_bias(node):
    """One for each unit, as cuDNN's form of the layer has it."""
    return node["units"]


def multiply_adds(node):
    steps, features = node["in_shape"]
    return steps * (features + node["units"]) * node["units"]


def inner_multiply_adds(node):
    """The recurrent product, whose input is the layer's own output."""
    return node["shape"][0] * node["units"] ** 2


def forward(node, own, x):
    samples, steps, units = len(x), x.shape[1], node["units"]
    sums = x @ own["input"] + own["bias"]
    # Before the first step, and after each.
    hidden = np.zeros((steps + 1, samples, units))
    for step in range(steps):
        hidden[step + 1] = np.tanh(sums[:, step] + hidden[step] @ own["recurrent"])

    def backward(dy):
        d_sums, carried = np.empty_like(sums), 0.0
        for step in reversed(range(steps)):
            d_sums[:, step] = (dy[:, step] + carried) * (1.0 - hidden[step + 1] ** 2)
            carried = d_sums[:, step] @ own["recurrent"].T
        rows, before = d_sums.reshape(-1, units), hidden[:-1].swapaxes(0, 1)
        gradients = {
            "input": x.reshape(-1, x.shape[-1]).T @ rows,
            "recurrent": before.reshape(-1, units).T @ rows,
            "bias": rows.sum(0),
        }
        return [d_sums @ own["input"].T], gradients

    return hidden[1:].swapaxes(0, 1), backward


LAYER = LayerKind(
    forward,
    needs=("units",),
    shape=shape,
    parameters=parameters,
    spare_parameters=second_bias,
    counted=True,
    multiply_adds=multiply_adds,
    inner_multiply_adds=inner_multiply_adds,
    example=(WORDS, [EMBEDDING, {"rnn": {"units": 5}}]),
)
