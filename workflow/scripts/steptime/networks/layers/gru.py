"""Gated recurrent unit over (steps, features): input (in, 3 units), recurrent (units, 3 units), bias
(3 units).

Gates stand in the order reset, update, new. The reset gate multiplies the recurrent product, and not
what goes into it: the form of cuDNN (Cho et al. 2014 have the other one, in which no large product is
left). The output before the first step is zero.
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
        parameter(node, "input", [features, 3 * units], math.sqrt(3 / features)),
        parameter(node, "recurrent", [units, 3 * units], math.sqrt(3 / units)),
        parameter(node, "bias", [3 * units], BIAS_BOUND),
    ]


def second_bias(node):
    """One for each gate, as cuDNN's form of the layer has it; it is held at zero."""
    return 3 * node["units"]


def multiply_adds(node):
    steps, features = node["in_shape"]
    return steps * (features + node["units"]) * 3 * node["units"]


def inner_multiply_adds(node):
    """The recurrent product, whose input is the layer's own output."""
    return node["shape"][0] * node["units"] * 3 * node["units"]


def forward(node, own, x):
    samples, steps, units = len(x), x.shape[1], node["units"]
    sums = x @ own["input"] + own["bias"]
    # Before the first step, and after each.
    hidden, kept = np.zeros((steps + 1, samples, units)), []
    for step in range(steps):
        products = hidden[step] @ own["recurrent"]
        gates = logistic(sums[:, step, : 2 * units] + products[:, : 2 * units])
        r, z = np.split(gates, 2, axis=1)
        n = np.tanh(sums[:, step, 2 * units :] + r * products[:, 2 * units :])
        hidden[step + 1] = (1.0 - z) * n + z * hidden[step]
        kept.append((r, z, n, products[:, 2 * units :]))

    def backward(dy):
        d_sums, carried = np.empty_like(sums), 0.0
        d_products = np.empty_like(sums)
        for step in reversed(range(steps)):
            r, z, n, product = kept[step]
            d_hidden = dy[:, step] + carried
            d_n = d_hidden * (1.0 - z) * (1.0 - n**2)
            d_r = d_n * product * r * (1.0 - r)
            d_z = d_hidden * (hidden[step] - n) * z * (1.0 - z)
            d_sums[:, step] = np.concatenate([d_r, d_z, d_n], axis=1)
            d_products[:, step] = np.concatenate([d_r, d_z, d_n * r], axis=1)
            carried = d_products[:, step] @ own["recurrent"].T + d_hidden * z
        rows, before = d_sums.reshape(-1, 3 * units), hidden[:-1].swapaxes(0, 1)
        gradients = {
            "input": x.reshape(-1, x.shape[-1]).T @ rows,
            "recurrent": before.reshape(-1, units).T @ d_products.reshape(-1, 3 * units),
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
    example=(WORDS, [EMBEDDING, {"gru": {"units": 5}}]),
)
