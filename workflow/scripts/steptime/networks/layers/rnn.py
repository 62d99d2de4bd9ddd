"""Plain recurrence over (steps, features) with input (in, units), recurrent (units, units) and bias (units).

The output is tanh(step x input + last output x recurrent + bias). The output before the first step is zero (Elman
1990).
"""

from steptime.networks.arrays import np
from steptime.networks.layers import recurrent


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


LAYER = recurrent("rnn", 1, forward)
