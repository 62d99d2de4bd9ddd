"""Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2): besides Adam's step, the learning rate
times `weight_decay` of each weight is subtracted, and is no part of the gradient.

Parameters of one axis, which are biases and scales of norms, do not decay, as in BERT and GPT-2.
"""

from steptime.networks.optimisers import Optimiser, adam

OPTIMISER = Optimiser(adam.step, needs=("beta1", "beta2", "epsilon", "weight_decay"), decays=True)
