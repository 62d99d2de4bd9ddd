"""Mean of -t log s(y) - (1 - t) log(1 - s(y)) over outputs y, targets t from 0 to 1, s the logistic function."""

from steptime.networks.arrays import np
from steptime.networks.layers.sigmoid import logistic
from steptime.networks.losses import Loss


def each(outputs, targets):
    """Returns the terms, in a form in which no large output overflows."""
    return np.maximum(outputs, 0.0) - outputs * targets + np.log1p(np.exp(-np.abs(outputs)))


def value(outputs, targets):
    return each(outputs, targets).mean(), (logistic(outputs) - targets) / outputs.size


# It reads the outputs and their targets, and writes the gradient.
LOSS = Loss(value, each, moves=3)
