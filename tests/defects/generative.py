"""Defects of networks that make samples or give them back: autoencoders, GANs and Boltzmann machines."""

import copy

import numpy as np
from defects.judging import JUDGE
from defects.planting import CATALOGUE, changed, losing, replacing
from defects.stand_in import RIGHT, adapter

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
    """An autoencoder whose code is drawn, and held against nothing."""
    decoded = targets.shape[1]
    loss, gradient = LOSSES["binary_cross_entropy"].value(outputs[:, :decoded], targets)
    share, code = decoded / outputs.shape[1], np.zeros_like(outputs[:, decoded:])
    return loss * share, np.concatenate([gradient * share, code], 1)


def drawn_by_the_variance(node, own, x, noise):
    """The logarithm of the variance taken for that of the standard deviation."""
    units = noise.shape[1]
    doubled = np.concatenate([x[:, :units], 2.0 * x[:, units:]], 1)
    y, backward = RIGHT["sampled_code"](node, own, doubled, noise)

    def wrong(dy):
        (dx, d_noise), gradients = backward(dy)
        return [np.concatenate([dx[:, :units], 2.0 * dx[:, units:]], 1), d_noise], gradients

    return y, wrong


def untied_machine(node, own, visible, noise):
    """A Boltzmann machine whose weight is held constant in the energy of the chain's end."""
    y, backward = RIGHT["rbm"](node, own, visible, noise)

    def half(dy):
        to_inputs, gradients = backward(dy)
        _, _, end = rbm.chain(own, visible, noise)
        again = dy[:, :1] * sigmoid.logistic(end @ own["weight"] + own["hidden"])
        return to_inputs, gradients | {"weight": gradients["weight"] - end.T @ again}

    return y, half


def undrawn(node, own, visible, noise):
    """The chances of hidden units in place of units that are drawn by them."""
    rightful = rbm.chain

    def chain(own, visible, noise):
        visible, chances, _ = rightful(own, visible, noise)
        end = sigmoid.logistic(chances @ own["weight"].T + own["visible"])
        return visible, chances, end

    rbm.chain = chain
    try:
        return RIGHT["rbm"](node, own, visible, noise)
    finally:
        rbm.chain = rightful


def detached(node, own, x):
    """A generator that no gradient reaches."""
    return x, lambda dy: ([np.zeros_like(dy)], {})


def detached_judge(node, own, x):
    """A judge that no gradient reaches."""
    y, backward = RIGHT["dense"](node, own, x)
    held = 0.0 if node["name"] in JUDGE else 1.0

    def wrong(dy):
        to_inputs, gradients = backward(dy)
        return to_inputs, {role: held * each for role, each in gradients.items()}

    return y, wrong


def two_judges():
    """A discriminator for what is real and another one for what is generated."""
    layers = copy.deepcopy(CATALOGUE["gan"]["layers"])
    judging = ["judged", "judged", 1]
    end = layers.index("unstack")
    branches = []
    for name in ("real", "made"):
        before = name
        for number, units in enumerate(judging):
            last = number == len(judging) - 1
            own = {"units": units, "inputs": [before]}
            branches.append({"dense": own | {"name": f"{name}{number}"}})
            before = f"{name}{number}"
            if not last:
                branches.append({"relu": {"name": before}})
    stacked = {"stack": {"inputs": ["real2", "made2"]}}
    start = next(number for number, layer in enumerate(layers) if "stack" in layer)
    return [*layers[:start], *branches, stacked, *layers[end:]]


# {defect: (network, adapter, words of the refusal)}
PLANTED = {
    "KL left out": ("vae", adapter(losing(without_divergence)), "the first loss is"),
    "a log variance taken for a deviation's": (
        "vae",
        adapter(replacing(sampled_code=drawn_by_the_variance)),
        "the first loss is",
    ),
    "noise that is left out": (
        "vae",
        adapter(
            replacing(
                sampled_code=lambda node, own, x, noise: RIGHT["sampled_code"](
                    node, own, x, np.zeros_like(noise)
                )
            )
        ),
        "the first loss is",
    ),
    "a detached generator": (
        "gan",
        adapter(replacing(reversal=detached)),
        "the loss does not depend on dense1, dense2, dense3",
    ),
    "a detached judge": (
        "gan",
        adapter(replacing(dense=detached_judge)),
        "the loss does not depend on dense4, dense5, dense6",
    ),
    "a generator that helps its judge": (
        "gan",
        adapter(replacing(reversal=lambda node, own, x: (x, lambda dy: ([dy], {})))),
        "the gradient of dense",
    ),
    "two judges": ("gan", adapter(mutate=changed("gan", layers=two_judges())), "lacks"),
    "a machine's weight untied": ("rbm", adapter(replacing(rbm=untied_machine)), "the gradient of"),
    "hidden units that are not drawn": (
        "dbn",
        adapter(replacing(rbm=undrawn)),
        "the first loss is",
    ),
    "half of the squares": ("deconv", adapter(losing(half_squares)), "the first loss is"),
    "squashed twice": ("autoencoder", adapter(losing(squashed_twice)), "the first loss is"),
}
