"""A discriminator's loss in the game of Goodfellow et al. 2014, equation 1: binary cross-entropy of two outputs, one
for a real sample, with target 1, and one for a generated sample, with target 0.
"""

from steptime.networks.losses.binary_cross_entropy import LOSS

__all__ = ["LOSS"]
