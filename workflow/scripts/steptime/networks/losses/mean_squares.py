"""Mean over all outputs of the squared difference from their targets."""

from steptime.networks.losses import Loss


def each(outputs, targets):
    return (outputs - targets) ** 2


def value(outputs, targets):
    missed = outputs - targets
    return (missed**2).mean(), 2.0 * missed / missed.size


# It reads the outputs and their targets, and writes the gradient.
LOSS = Loss(value, each, moves=3)
