"""Zeiler, "ADADELTA: an adaptive learning rate method", 2012, algorithm 1, times Keras's learning rate."""

from steptime.networks.arrays import np
from steptime.networks.optimisers import Optimiser


def step(optimiser, gradient, averages):
    rho, epsilon = optimiser["rho"], optimiser["epsilon"]
    averages[0] = rho * averages[0] + (1 - rho) * gradient**2
    taken = gradient * np.sqrt(averages[1] + epsilon) / np.sqrt(averages[0] + epsilon)
    averages[1] = rho * averages[1] + (1 - rho) * taken**2
    return optimiser["learning_rate"] * taken


OPTIMISER = Optimiser(step, needs=("rho", "epsilon"))
