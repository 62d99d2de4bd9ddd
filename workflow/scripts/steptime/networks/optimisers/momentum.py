"""Stochastic gradient descent with momentum: the last step times `momentum`, without dampening, plus the gradient
(Sutskever et al. 2013, in PyTorch's form: the learning rate is not part of what is kept).
"""

from steptime.networks.optimisers import Optimiser


def step(optimiser, gradient, averages):
    averages[0] = optimiser["momentum"] * averages[0] + gradient
    return optimiser["learning_rate"] * averages[0]


OPTIMISER = Optimiser(step, needs=("momentum",))
