"""Defects of plain recurrent layers and GRU."""

import numpy as np
from defects.planting import wrong
from defects.stand_in import RIGHT


def swapped_gates(node, own, x):
    """A GRU whose gates stand in Keras's order: update, reset, new."""

    def swapped(values):
        r, z, n = np.split(values, 3, axis=-1)
        return np.concatenate([z, r, n], axis=-1)

    y, backward = RIGHT["gru"](node, {role: swapped(values) for role, values in own.items()}, x)

    def back(dy):
        dx, gradients = backward(dy)
        return dx, {role: swapped(values) for role, values in gradients.items()}

    return y, back


def forgetting(node, own, x):
    """A recurrence whose steps know nothing of those before them."""
    return RIGHT["rnn"](node, dict(own, recurrent=0.0 * own["recurrent"]), x)


def in_reading_order(node, own, x):
    """What reads backwards gives its outputs in the order in which it reads, as Keras's `go_backwards` does."""
    units = node["units"]
    y, backward = RIGHT["lstm"](node, own, x)

    def turned(values):
        return np.concatenate([values[..., :units], values[:, ::-1, units:]], -1)

    return turned(y), lambda dy: backward(turned(dy))


PLANTED = {
    "gates of a GRU in another order": wrong("gru32", gru=swapped_gates),
    "no recurrence": wrong("rnn32", rnn=forgetting),
    "the second way in reading order": wrong("lstm bidirectional", lstm=in_reading_order),
}
