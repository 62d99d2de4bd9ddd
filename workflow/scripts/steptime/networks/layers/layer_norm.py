"""Layer normalisation of the features of each step by their mean and biased variance, with weight (features), and bias
(features) if `bias` is true (Ba, Kiros and Hinton 2016).

`epsilon` is added inside the root. The channels of an image are its features, at each pixel.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import POSITIVE, LayerKind, moved_by_fused, over_places, parameter

IMAGE_AXES = 3


def features_axis(node):
    """Returns the axis of the features, the mini-batch being axis 0."""
    return 1 if len(node["in_shape"]) == IMAGE_AXES else len(node["in_shape"])


def shape(node, source, least=3):
    """Refuses fewer than `least` features: normalised, they are little more than signs, and their gradient is noise."""
    if source[features_axis(node) - 1] < least:
        raise ValueError("so few features are 0, 1 or -1 when normalised: write more of them")
    return list(source)


def parameters(node):
    """Starts weights around 1, no two alike, so that a proof notices one in the wrong place."""
    features = node["in_shape"][features_axis(node) - 1]
    weight = parameter(node, "weight", [features], 0.1, centre=1.0)
    return [weight] + ([parameter(node, "bias", [features], 0.1)] if node["bias"] else [])


def wide(node, values):
    """Returns a vector of the features in a shape to be multiplied with the layer's input."""
    return values.reshape([-1] + [1] * (len(node["in_shape"]) - features_axis(node)))


def forward(node, own, x):
    axis = features_axis(node)
    scale = 1.0 / np.sqrt(x.var(axis, keepdims=True) + node["epsilon"])
    normal = (x - x.mean(axis, keepdims=True)) * scale
    weight = wide(node, own["weight"])
    y = weight * normal
    if node["bias"]:
        y = y + wide(node, own["bias"])

    def backward(dy):
        flowing = dy * weight
        centred = flowing - flowing.mean(axis, keepdims=True)
        dx = scale * (centred - normal * (flowing * normal).mean(axis, keepdims=True))
        parts = {"weight": dy * normal, "bias": dy}
        gradients = {role: over_places(node, np.moveaxis(parts[role], axis, -1)) for role in own}
        return [dx], gradients

    return y, backward


LAYER = LayerKind(
    forward,
    needs=("epsilon",),
    values={"epsilon": POSITIVE},
    defaults={"bias": True},
    shape=shape,
    parameters=parameters,
    numbers_moved=moved_by_fused,
    example=({"kind": "dense", "shape": [6]}, [{"layer_norm": {"epsilon": 1.0e-3}}]),
)
