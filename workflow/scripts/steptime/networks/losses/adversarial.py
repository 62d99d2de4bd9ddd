"""What a discriminator loses in the game of Goodfellow et al. 2014, equation 1: binary cross-entropy of
two outputs, that of a real sample, whose target is 1, and that of a generated one, whose target is 0.
"""

from steptime.networks.losses.binary_cross_entropy import LOSS

__all__ = ["LOSS"]
