"""Gated recurrent unit over (steps, features): input (in, 3 units), recurrent (units, 3 units), bias (3 units).

The order of gates is reset, update, new. The reset gate multiplies the recurrent product, and not its input: the form
of cuDNN (Cho et al. 2014 have the other one, in which no large product is left). The output before the first step is
zero.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import recurrent
from steptime.networks.layers.sigmoid import logistic


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


LAYER = recurrent("gru", 3, forward)
