"""Adds a trainable number, bias (features), to each feature of the last axis."""

from steptime.networks.layers import BIAS_BOUND, LayerKind, moved_by_fused, over_places, parameter


def parameters(node):
    return [parameter(node, "bias", node["in_shape"][-1:], BIAS_BOUND)]


def forward(node, own, x):
    return x + own["bias"], lambda dy: ([dy], {"bias": over_places(node, dy)})


LAYER = LayerKind(
    forward, takes=("row", "sequence"), parameters=parameters, numbers_moved=moved_by_fused
)
