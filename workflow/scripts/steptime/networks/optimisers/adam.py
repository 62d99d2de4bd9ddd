"""Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1."""

from steptime.networks.arrays import np
from steptime.networks.optimisers import Optimiser


def step(optimiser, gradient, averages):
    beta1, beta2 = optimiser["beta1"], optimiser["beta2"]
    averages[0] = beta1 * averages[0] + (1 - beta1) * gradient
    averages[1] = beta2 * averages[1] + (1 - beta2) * gradient**2
    # Behind the averages, the number of steps, on which their bias depends.
    taken = averages[2] + 1 if len(averages) > 2 else 1
    averages[2:] = [taken]
    mean, square = averages[0] / (1 - beta1**taken), averages[1] / (1 - beta2**taken)
    return optimiser["learning_rate"] * mean / (np.sqrt(square) + optimiser["epsilon"])


OPTIMISER = Optimiser(step, needs=("beta1", "beta2", "epsilon"))
