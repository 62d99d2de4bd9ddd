"""Optimisers of PlaidML 0.7: what is written in a step once the gradients are there, stage after stage.

What was chosen here: docs/adapters/plaidml.md.

Plain Python that 3.6 can import: standard library, numpy and PlaidML.
"""

import numpy as np
from plaidml import op


def stages(optimiser, trained, gradients, hold):
    """Lists of (value, what takes its place); no value is read in the stage that it is written in, but by itself.

    `hold` gives memory to an array.
    """
    rate, moved = optimiser["learning_rate"], _STEPS[optimiser["name"]]
    averages, steps = moved(optimiser, trained, gradients, hold)
    last = [(value, value - rate * steps[name]) for name, value in trained.items()]
    return [averages, last] if averages else [last]


def _sgd(optimiser, trained, gradients, hold):
    return [], gradients


def _momentum(optimiser, trained, gradients, hold):
    kept = _empty(trained, hold)
    after = [(kept[name], optimiser["momentum"] * kept[name] + gradients[name]) for name in kept]
    return after, kept


def _adam(optimiser, trained, gradients, hold):
    beta1, beta2 = optimiser["beta1"], optimiser["beta2"]
    means, squares = _empty(trained, hold), _empty(trained, hold)
    # The averages begin at zero. This is how much of each is there, 1 - beta^t, which a power would round.
    first, second = (hold(np.zeros(1, np.float32)) for _ in range(2))
    after = [(first, beta1 * first + (1 - beta1)), (second, beta2 * second + (1 - beta2))]
    steps = {}
    for name, gradient in gradients.items():
        mean, square = means[name], squares[name]
        after.append((mean, beta1 * mean + (1 - beta1) * gradient))
        after.append((square, beta2 * square + (1 - beta2) * gradient * gradient))
        root = op.sqrt(square / second) + optimiser["epsilon"]
        steps[name] = mean / first / root
        if optimiser.get("weight_decay") and len(trained[name].shape.dims) > 1:
            steps[name] = steps[name] + optimiser["weight_decay"] * trained[name]
    return after, steps


def _empty(trained, hold):
    """A running average for each parameter."""
    return {
        name: hold(np.zeros(tuple(value.shape.dims), np.float32)) for name, value in trained.items()
    }


_STEPS = {"sgd": _sgd, "momentum": _momentum, "adam": _adam, "adamw": _adam}
