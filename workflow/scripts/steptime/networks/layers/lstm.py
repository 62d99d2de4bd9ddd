"""Long short-term memory over (steps, features): input (in, 4 units), recurrent (units, 4 units), bias (4 units).

The order of gates is i, f, g, o; both states start at zero (Hochreiter and Schmidhuber 1997, Gers et al. 2000).
"""

from steptime.networks.arrays import np
from steptime.networks.layers import recurrent
from steptime.networks.layers.sigmoid import logistic


def forward(node, own, x):
    samples, steps, units = len(x), x.shape[1], node["units"]
    # Steps first: each one's numbers in one piece. At its step, the sums become the gates.
    seen = np.ascontiguousarray(np.swapaxes(x, 0, 1)).reshape(steps * samples, -1)
    gates = (seen @ own["input"]).reshape(steps, samples, -1)
    gates += own["bias"]
    # Before the first step, and after each.
    hidden, cell = np.zeros((2, steps + 1, samples, units))
    squashed = np.empty((steps, samples, units))
    for step in range(steps):
        gates[step] += hidden[step] @ own["recurrent"]
        i, f, g, o = np.split(gates[step], 4, axis=1)
        for gate in (i, f, o):
            gate[:] = logistic(gate)
        np.tanh(g, out=g)
        cell[step + 1] = f * cell[step] + i * g
        np.tanh(cell[step + 1], out=squashed[step])
        hidden[step + 1] = o * squashed[step]

    def backward(dy):
        d_sums, d_hidden, d_cell = np.empty_like(gates), 0.0, 0.0
        for step in reversed(range(steps)):
            i, f, g, o = np.split(gates[step], 4, axis=1)
            d_hidden = dy[:, step] + d_hidden
            d_cell = d_cell + d_hidden * o * (1.0 - squashed[step] ** 2)
            of_gates = [
                d_cell * g * i * (1.0 - i),
                d_cell * cell[step] * f * (1.0 - f),
                d_cell * i * (1.0 - g**2),
                d_hidden * squashed[step] * o * (1.0 - o),
            ]
            np.concatenate(of_gates, axis=1, out=d_sums[step])
            d_hidden, d_cell = d_sums[step] @ own["recurrent"].T, d_cell * f
        rows = d_sums.reshape(-1, 4 * units)
        gradients = {
            "input": seen.T @ rows,
            "recurrent": hidden[:-1].reshape(-1, units).T @ rows,
            "bias": rows.sum(0),
        }
        dx = (rows @ own["input"].T).reshape(steps, samples, -1)
        return [np.swapaxes(dx, 0, 1)], gradients

    return np.swapaxes(hidden[1:], 0, 1), backward


LAYER = recurrent("lstm", 4, forward)
