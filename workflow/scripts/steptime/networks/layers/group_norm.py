"""Normalisation of each sample by the mean and biased variance of each of `groups` parts of its
channels, with gamma and beta (channels) (Wu and He 2018); `epsilon` is 1e-5.

`ends_branch` is as in batch_norm.
"""

import math

from shared.specification import BATCH_NORM_EPSILON
from steptime.networks.arrays import np
from steptime.networks.layers import (
    CONV,
    IMAGES,
    POSITIVE,
    LayerKind,
    batch_norm,
    check_groups,
    moved_by_fused,
    over_places,
)


def shape(node, source):
    check_groups(node, source[0])
    if math.prod(source) <= 2 * node["groups"]:
        raise ValueError("one or two values are 0, 1 or -1 when normalised: write fewer groups")
    return list(source)


def forward(node, own, x):
    parts = x.reshape(len(x), node["groups"], -1)
    epsilon = node.get("epsilon", BATCH_NORM_EPSILON)
    scale = 1.0 / np.sqrt(parts.var(-1, keepdims=True) + epsilon)
    normal = (parts - parts.mean(-1, keepdims=True)) * scale
    wide = [-1] + [1] * (x.ndim - 2)
    gamma, beta = (own[role].reshape(wide) for role in ("gamma", "beta"))

    def backward(dy):
        flowing = (dy * gamma).reshape(parts.shape)
        centred = flowing - flowing.mean(-1, keepdims=True)
        dx = scale * (centred - normal * (flowing * normal).mean(-1, keepdims=True))
        gradients = {"gamma": dy * normal.reshape(x.shape), "beta": dy}
        for role, part in gradients.items():
            gradients[role] = over_places(node, np.moveaxis(part, 1, -1))
        return [dx.reshape(x.shape)], gradients

    return gamma * normal.reshape(x.shape) + beta, backward


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("groups",),
    flags=batch_norm.LAYER.flags,
    options={"epsilon": (IMAGES, [CONV, {"group_norm": {"groups": 2, "epsilon": 0.1}}, "flatten"])},
    values={"epsilon": POSITIVE},
    shape=shape,
    parameters=batch_norm.parameters,
    numbers_moved=moved_by_fused,
    example=(IMAGES, [CONV, {"group_norm": {"groups": 2}}, "flatten"]),
)
