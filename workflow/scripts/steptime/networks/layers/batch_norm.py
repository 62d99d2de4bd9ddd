"""Batch normalisation with gamma and beta (channels), statistics of the batch and epsilon 1e-5.

`ends_branch` is for the last one of a residual branch: its gammas start at a tenth of its shortcut.
At equal parts, gradients grow some 30 times over fifty layers and float32 noise turns signs in
front of ReLUs: no two frameworks agree then (compare Goyal et al. 2017, section 5.1, who start the
same gammas at zero).
"""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind, moved_by_fused, parameter
from worker.specification import BATCH_NORM_EPSILON

BRANCH_GAMMA = 0.1


def parameters(node):
    channels = node["in_shape"][0]
    centre = BRANCH_GAMMA if node.get("ends_branch") else 1.0
    return [
        parameter(node, "gamma", [channels], 0.1 * centre, centre=centre),
        parameter(node, "beta", [channels], 0.1),
    ]


def forward(node, own, x):
    """Biased variance (Ioffe and Szegedy 2015, algorithm 1)."""
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    wide = [-1] + [1] * (x.ndim - 2)
    scale = 1.0 / np.sqrt(x.var(axes, keepdims=True) + BATCH_NORM_EPSILON)
    normal = (x - x.mean(axes, keepdims=True)) * scale
    gamma, beta = (own[role].reshape(wide) for role in ("gamma", "beta"))

    def backward(dy):
        flowing = dy * gamma
        centred = flowing - flowing.mean(axes, keepdims=True)
        dx = scale * (centred - normal * (flowing * normal).mean(axes, keepdims=True))
        return [dx], {"gamma": (dy * normal).sum(axes), "beta": dy.sum(axes)}

    return gamma * normal + beta, backward


LAYER = LayerKind(
    forward,
    flags=("ends_branch",),
    parameters=parameters,
    numbers_moved=moved_by_fused,
    normalises_by="the mean and variance of the batch",
    # A bias in front of it has no gradient.
    example=(IMAGES, [{"conv": CONV["conv"] | {"bias": False}}, "batch_norm", "flatten"]),
)
