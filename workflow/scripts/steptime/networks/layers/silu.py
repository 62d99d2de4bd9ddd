"""x / (1 + exp(-x)) of each value (Elfwing, Uchibe and Doya 2018; "swish" with beta 1)."""

from steptime.networks.layers import LayerKind, moved_by_fused
from steptime.networks.layers.sigmoid import logistic


def forward(node, own, x):
    gate = logistic(x)
    return x * gate, lambda dy: ([dy * gate * (1.0 + x * (1.0 - gate))], {})


LAYER = LayerKind(forward, numbers_moved=moved_by_fused)
