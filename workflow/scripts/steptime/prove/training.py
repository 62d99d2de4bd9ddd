"""Proves two things that training steps do not show.

A network with dropout drops what it must. One that is trained on real images is trained on what it is fed, at the rates
that it is given, and judged without dropout.
"""

import numpy as np

from shared import data, masks
from steptime import networks
from steptime.prove import golden

# Weights may be as far off as `compare` allows after several steps; scores by a thousandth of their spread.
FED_LOSS = 1e-5
FED_UPDATE = 1e-2
SCORES = 1e-3


def check_scores(spec, expected, measured, details):
    """Checks that the scores by which a network is judged have no dropout in them; returns a reason, or None."""
    if "dataset" not in spec:
        return None
    inputs, _ = data.synthetic_batch(spec, expected.batch)
    wanted, _ = golden.forward(
        spec, {name: np.float64(values) for name, values in expected.start.items()}, inputs
    )
    error = np.abs(measured["scores"] - wanted).max() / wanted.std()
    details["scores_error"] = float(error)
    if not error <= SCORES:
        return (
            f"the scores by which the network is judged are off by {error:.2g} of their spread: "
            "dropout may be in them"
        )
    return None


def check_feeding(spec, expected, measured, details):
    """Checks weights and mean loss after one call that feeds several mini-batches, each at its own learning rate."""
    if "dataset" not in spec:
        return None
    weights, losses, state = expected.start, [], {}
    for inputs, labels, rate in data.fed_batches(spec, expected.batch):
        at_rate = dict(spec, optimiser=dict(spec["optimiser"], learning_rate=rate))
        taken = golden.train_step(at_rate, weights, inputs, labels, state, expected.shares)
        weights = taken.updated
        losses.append(taken.loss)
    error = abs(measured["fed_loss"] - np.mean(losses)) / np.mean(losses)
    details["fed_loss_error"] = float(error)
    if not error <= FED_LOSS:
        return (
            f"the mean loss over {len(losses)} mini-batches that were fed is {float(measured['fed_loss']):.6g} in the "
            f"framework and {np.mean(losses):.6g} in the specification"
        )
    found = {name: measured[f"fed/{name}"] for name in weights}
    off, worst = farthest(found, weights, expected.start)
    details.update(fed_update=off, fed_update_of=worst)
    if not off <= FED_UPDATE:
        way = f"off by {off:.2g} of the way it should have gone"
        return f"{worst} is wrong after {len(losses)} mini-batches were fed: {way}"
    return None


def farthest(found, wanted, start):
    """Returns the largest error of an array, as a share of its way, and the array's name. NaN counts as largest."""
    off = {
        name: float(np.linalg.norm(found[name] - end) / np.linalg.norm(end - start[name]))
        for name, end in wanted.items()
    }
    worst = max(off, key=lambda name: np.nan_to_num(off[name], nan=np.inf))
    return off[worst], worst


def check_dropout(spec, expected, measured, details):
    """Checks what each kind of dropout layer drops; returns a reason, or None."""
    for name, small in networks.masks.of_network(spec, expected.batch).items():
        found = measured[f"masks/{name}"]
        details[f"dropout_{name.replace('-', '_')}_kept"] = masks.kept(found, small)
        if reason := masks.fault(found, small):
            return reason
    return None


CHECKS = {"scores": check_scores, "feeding": check_feeding, "dropout": check_dropout}
