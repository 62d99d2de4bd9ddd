"""The approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of `gelu` (Hendrycks and
Gimpel 2016), which GPT-2 was trained with: up to 5e-4 from it.
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind, moved_by_fused

CUBIC = 0.044715
SCALE = math.sqrt(2.0 / math.pi)


def forward(node, own, x):
    bent = np.tanh(SCALE * (x + CUBIC * x**3))

    def backward(dy):
        slope = SCALE * (1.0 + 3.0 * CUBIC * x**2) * (1.0 - bent**2)
        return [dy * 0.5 * (1.0 + bent + x * slope)], {}

    return 0.5 * x * (1.0 + bent), backward


LAYER = LayerKind(forward, numbers_moved=moved_by_fused)
