"""What a proof needs from a framework: losses and weights of a few training steps of the narrow network.

Two trainers are built from the same start. The first takes one step at `RECOVERY_RATE`; its gradient is read
off the weights, so that it is the gradient of the very step that is timed. The second takes ten steps at the
specification's own rate, in calls of `CALLS` steps. Judged by `prove.compare`. Plain Python that 3.6 can
import: standard library and numpy.
"""

import numpy as np

from . import data

# Batch normalisation needs several samples where the last maps are 2 x 2; more samples only add work.
BATCH = 8

# float32 rounds w - rate * g to a part of 2**-24 of the larger term, so (w0 - w1) / rate holds g to 2**-24 *
# (1 + |w| / (rate |g|)). At this rate the second term is gone for every gradient above 1e-6 of its weight; a
# power of two adds no rounding of its own.
RECOVERY_RATE = 2.0**20

# Steps of each call; weights are read after the first two calls. The call of three shows that `run` does all
# its steps.
CALLS = (1, 3, 1, 1, 1, 1, 1, 1)
READ_AFTER = (1, 4)


def with_rate(spec, rate):
    """The specification with another learning rate."""
    return dict(spec, optimiser=dict(spec["optimiser"], learning_rate=rate))


def collect(adapter, spec, batch, mode, threads, device):
    """Trains the specification as a proof wants it; returns numbers and arrays by name.

    `parameters`, `frozen_parameters`: the framework's own counts. `first_losses` (2): loss of the first step
    of each trainer. `losses` (calls): loss of the last step of each call. `recovery/<name>`: weights after
    one step at `RECOVERY_RATE`. `after1/<name>`, `after4/<name>`: weights after so many steps at the
    specification's rate.
    """

    def build(rate):
        inputs, labels = data.synthetic_batch(spec, batch)
        return adapter.build(with_rate(spec, rate), data.initial_weights(spec), inputs, labels, mode, threads, device)

    trainer = build(RECOVERY_RATE)
    first_loss = trainer.run(1)
    collected = {"parameters": int(trainer.parameters), "frozen_parameters": int(trainer.frozen_parameters)}
    _keep(collected, "recovery", trainer)
    del trainer

    trainer = build(spec["optimiser"]["learning_rate"])
    losses, done = [], 0
    for steps in CALLS:
        losses.append(trainer.run(steps))
        done += steps
        if done in READ_AFTER:
            _keep(collected, "after{}".format(done), trainer)
    collected["losses"] = np.array(losses, np.float64)
    collected["first_losses"] = np.array([first_loss, losses[0]], np.float64)
    return collected


def write(path, collected):
    """Writes what was collected as one .npz file under exactly this name."""
    with open(str(path), "wb") as handle:
        np.savez(handle, **collected)


def _keep(collected, when, trainer):
    for name, values in trainer.weights().items():
        # A copy: some frameworks hand out a view that the next step writes to.
        collected["{}/{}".format(when, name)] = np.array(values, np.float32)
