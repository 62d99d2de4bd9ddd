"""The hyperbolic tangent of each value."""

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind, moved_by_fused


def forward(node, own, x):
    y = np.tanh(x)
    return y, lambda dy: ([dy * (1.0 - y**2)], {})


LAYER = LayerKind(forward, numbers_moved=moved_by_fused)
