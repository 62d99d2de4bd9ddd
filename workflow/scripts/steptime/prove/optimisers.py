"""The optimisers of specifications in float64: how one step changes the weights."""

from collections.abc import Callable

import numpy as np

Arrays = dict[str, np.ndarray]
# The two running averages of each parameter; an optimiser that needs fewer leaves the rest alone.
State = dict[str, list[np.ndarray | float]]


def update(optimiser: dict, weights: Arrays, gradients: Arrays, state: State) -> Arrays:
    """The weights after one step of `spec["optimiser"]`; `state` is {} before the first and is carried on in place."""
    return {
        name: weights[name]
        - STEPS[optimiser["name"]](optimiser, gradient, state.setdefault(name, [0.0, 0.0]))
        for name, gradient in gradients.items()
    }


def _sgd(optimiser, gradient, averages):
    return optimiser["learning_rate"] * gradient


def _adadelta(optimiser, gradient, averages):
    """Zeiler, "ADADELTA: an adaptive learning rate method", 2012, algorithm 1, times Keras's learning rate."""
    rho, epsilon = optimiser["rho"], optimiser["epsilon"]
    averages[0] = rho * averages[0] + (1 - rho) * gradient**2
    step = gradient * np.sqrt(averages[1] + epsilon) / np.sqrt(averages[0] + epsilon)
    averages[1] = rho * averages[1] + (1 - rho) * step**2
    return optimiser["learning_rate"] * step


def _rmsprop(optimiser, gradient, averages):
    """Tieleman and Hinton, "Lecture 6.5", 2012, with Keras 2.0's epsilon outside of the root."""
    averages[0] = optimiser["rho"] * averages[0] + (1 - optimiser["rho"]) * gradient**2
    return optimiser["learning_rate"] * gradient / (np.sqrt(averages[0]) + optimiser["epsilon"])


STEPS: dict[str, Callable] = {"sgd": _sgd, "adadelta": _adadelta, "rmsprop": _rmsprop}
