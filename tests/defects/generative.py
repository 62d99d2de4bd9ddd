"""Defects of networks that make samples or give them back: autoencoders, GANs and Boltzmann machines."""

import numpy as np
from defects.planting import by, losing, wrong
from defects.stand_in import RIGHT

from steptime.networks.layers import rbm, sigmoid
from steptime.networks.losses import LOSSES


def half_squares(outputs, targets):
    """Caffe's Euclidean loss."""
    loss, gradient = LOSSES["mean_squares"].value(outputs, targets)
    return loss / 2, gradient / 2


def squashed_twice(outputs, targets):
    """Binary cross entropy of logits, given what was squashed already."""
    chances = sigmoid.logistic(outputs)
    loss, gradient = LOSSES["binary_cross_entropy"].value(chances, targets)
    return loss, gradient * chances * (1.0 - chances)


def without_divergence(outputs, targets):
    """An autoencoder whose code is drawn, and compared with nothing."""
    decoded = targets.shape[1]
    loss, gradient = LOSSES["binary_cross_entropy"].value(outputs[:, :decoded], targets)
    share, code = decoded / outputs.shape[1], np.zeros_like(outputs[:, decoded:])
    return loss * share, np.concatenate([gradient * share, code], 1)


def drawn_by_the_variance(node, own, x, noise):
    """The logarithm of the variance taken for that of the standard deviation."""
    units = noise.shape[1]
    doubled = np.concatenate([x[:, :units], 2.0 * x[:, units:]], 1)
    y, backward = RIGHT["sampled_code"](node, own, doubled, noise)

    def back(dy):
        (dx, d_noise), gradients = backward(dy)
        return [np.concatenate([dx[:, :units], 2.0 * dx[:, units:]], 1), d_noise], gradients

    return y, back


def untied_machine(node, own, visible, noise):
    """A Boltzmann machine whose weight is held constant in the energy of the chain's end."""
    y, backward = RIGHT["rbm"](node, own, visible, noise)

    def half(dy):
        to_inputs, gradients = backward(dy)
        _, _, end = rbm.chain(own, visible, noise)
        again = dy[:, :1] * sigmoid.logistic(end @ own["weight"] + own["hidden"])
        return to_inputs, gradients | {"weight": gradients["weight"] - end.T @ again}

    return y, half


def detached(node, own, x):
    """A generator that no gradient reaches."""
    return x, lambda dy: ([np.zeros_like(dy)], {})


PLANTED = {
    "KL left out": by("vae", losing(without_divergence)),
    "a log variance taken for a deviation's": wrong("vae", sampled_code=drawn_by_the_variance),
    "a detached generator": wrong(
        "gan", "the loss does not depend on dense1, dense2, dense3", reversal=detached
    ),
    "a generator that helps its judge": wrong(
        "gan", "the gradient of dense", reversal=lambda node, own, x: (x, lambda dy: ([dy], {}))
    ),
    "a machine's weight untied": wrong("rbm", "the gradient of", rbm=untied_machine),
    "half of the squares": by("deconv", losing(half_squares)),
    "squashed twice": by("autoencoder", losing(squashed_twice)),
}
