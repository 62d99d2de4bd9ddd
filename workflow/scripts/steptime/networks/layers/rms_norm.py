"""Features (last axis) divided by the root of their mean square plus `epsilon`, times weight (Zhang, Sennrich 2019)."""

from steptime.networks.arrays import np
from steptime.networks.layers import POSITIVE, LayerKind, moved_by_fused, over_places, parameter
from steptime.networks.layers.layer_norm import shape


def parameters(node):
    """Starts weights around 1, no two alike, so that a proof notices one in the wrong place."""
    return [parameter(node, "weight", [node["in_shape"][-1]], 0.1, centre=1.0)]


def forward(node, own, x):
    scale = 1.0 / np.sqrt((x**2).mean(-1, keepdims=True) + node["epsilon"])
    normal = x * scale

    def backward(dy):
        flowing = dy * own["weight"]
        dx = scale * (flowing - normal * (flowing * normal).mean(-1, keepdims=True))
        return [dx], {"weight": over_places(node, dy * normal)}

    return own["weight"] * normal, backward


LAYER = LayerKind(
    forward,
    takes=("row", "sequence"),
    needs=("epsilon",),
    values={"epsilon": POSITIVE},
    shape=lambda node, source: shape(node, source, least=2),
    parameters=parameters,
    numbers_moved=moved_by_fused,
    example=({"kind": "dense", "shape": [6]}, [{"rms_norm": {"epsilon": 1.0e-2}}]),
)
