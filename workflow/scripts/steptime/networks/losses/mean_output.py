"""The mean of all outputs, where the last layers themselves give the loss of each sample."""

from steptime.networks.arrays import np
from steptime.networks.losses import Loss


def each(outputs, targets):
    return outputs


def value(outputs, targets):
    return outputs.mean(), np.full(outputs.shape, 1.0 / outputs.size)


# It reads the outputs, and writes the gradient.
LOSS = Loss(value, each, moves=2)
