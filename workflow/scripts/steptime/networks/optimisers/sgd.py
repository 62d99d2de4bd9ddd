"""Stochastic gradient descent without momentum: the gradient times the learning rate."""

from steptime.networks.optimisers import Optimiser


def step(optimiser, gradient, averages):
    return optimiser["learning_rate"] * gradient


OPTIMISER = Optimiser(step)
