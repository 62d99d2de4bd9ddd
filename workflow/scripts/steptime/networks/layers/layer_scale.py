"""Each feature times its own weight (features), at the end of a residual branch (Touvron et al. 2021, "Going deeper
with image transformers").

The channels of an image are its features. Weights start around a tenth and not at 1e-6, where float32 shows nothing of
the branch in front of them.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind, moved_by_fused, over_places, parameter
from steptime.networks.layers.layer_norm import features_axis, wide

START = 0.1


def parameters(node):
    features = node["in_shape"][features_axis(node) - 1]
    return [parameter(node, "weight", [features], 0.1 * START, centre=START)]


def forward(node, own, x):
    weight = wide(node, own["weight"])

    def backward(dy):
        part = np.moveaxis(dy * x, features_axis(node), -1)
        return [dy * weight], {"weight": over_places(node, part)}

    return x * weight, backward


LAYER = LayerKind(forward, parameters=parameters, numbers_moved=moved_by_fused)
