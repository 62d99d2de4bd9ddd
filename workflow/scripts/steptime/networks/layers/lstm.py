"""Long short-term memory over (steps, features): input (in, 4 units), recurrent (units, 4 units),
bias (4 units).

Gates stand in the order i, f, g, o, and both states start at zero (Hochreiter and Schmidhuber
1997, Gers et al. 2000).
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import BIAS_BOUND, EMBEDDING, WORDS, LayerKind, parameter
from steptime.networks.layers.sigmoid import logistic


def shape(node, source):
    steps, _ = source
    return [steps, node["units"]]


def parameters(node):
    features, units = node["in_shape"][-1], node["units"]
    return [
        parameter(node, "input", [features, 4 * units], math.sqrt(3 / features)),
        parameter(node, "recurrent", [units, 4 * units], math.sqrt(3 / units)),
        parameter(node, "bias", [4 * units], BIAS_BOUND),
    ]


def second_bias(node):
    """One for each gate, as cuDNN's form of the layer has it."""
    return 4 * node["units"]


def multiply_adds(node):
    steps, features = node["in_shape"]
    return steps * (features + node["units"]) * 4 * node["units"]


def inner_multiply_adds(node):
    """The recurrent product, whose input is the layer's own output."""
    return node["shape"][0] * node["units"] * 4 * node["units"]


def forward(node, own, x):
    samples, steps, units = len(x), x.shape[1], node["units"]
    hidden, cell = np.zeros((samples, units)), np.zeros((samples, units))
    memory, outputs = [], []
    for step in range(steps):
        sums = x[:, step] @ own["input"] + hidden @ own["recurrent"] + own["bias"]
        i, f, g, o = np.split(sums, 4, axis=1)
        i, f, g, o = logistic(i), logistic(f), np.tanh(g), logistic(o)
        memory.append((hidden, cell, i, f, g, o))
        cell = f * cell + i * g
        hidden = o * np.tanh(cell)
        outputs.append((hidden, np.tanh(cell)))

    def backward(dy):
        dx, d_hidden, d_cell = np.zeros_like(x), 0.0, 0.0
        gradients = {role: np.zeros_like(values) for role, values in own.items()}
        for step in reversed(range(steps)):
            before, cell_before, i, f, g, o = memory[step]
            squashed = outputs[step][1]
            d_hidden = dy[:, step] + d_hidden
            d_cell = d_cell + d_hidden * o * (1.0 - squashed**2)
            d_sums = np.concatenate(
                [
                    d_cell * g * i * (1.0 - i),
                    d_cell * cell_before * f * (1.0 - f),
                    d_cell * i * (1.0 - g**2),
                    d_hidden * squashed * o * (1.0 - o),
                ],
                axis=1,
            )
            gradients["input"] += x[:, step].T @ d_sums
            gradients["recurrent"] += before.T @ d_sums
            gradients["bias"] += d_sums.sum(0)
            dx[:, step] = d_sums @ own["input"].T
            d_hidden, d_cell = d_sums @ own["recurrent"].T, d_cell * f
        return [dx], gradients

    return np.stack([hidden for hidden, _ in outputs], axis=1), backward


LAYER = LayerKind(
    forward,
    needs=("units",),
    shape=shape,
    parameters=parameters,
    spare_parameters=second_bias,
    counted=True,
    multiply_adds=multiply_adds,
    inner_multiply_adds=inner_multiply_adds,
    example=(WORDS, [EMBEDDING, {"lstm": {"units": 5}}]),
)
