"""Tieleman and Hinton, "Lecture 6.5", 2012, with Keras 2.0's epsilon outside of the root."""

from steptime.networks.arrays import np
from steptime.networks.optimisers import Optimiser


def step(optimiser, gradient, averages):
    averages[0] = optimiser["rho"] * averages[0] + (1 - optimiser["rho"]) * gradient**2
    return optimiser["learning_rate"] * gradient / (np.sqrt(averages[0]) + optimiser["epsilon"])


OPTIMISER = Optimiser(step, needs=("rho", "epsilon"))
