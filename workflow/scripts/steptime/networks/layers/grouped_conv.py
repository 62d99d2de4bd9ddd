"""Convolution in `groups`: each of as many parts of the channels has filters of its own.

Weight (out, in / groups, kernel, kernel), and bias (out) if `bias` is true. With as many groups as
channels it is depthwise.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, SIDES, LayerKind, check_groups, conv


def shape(node, source):
    check_groups(node, source[0], ", those before it,")
    check_groups(node, node["channels"], ", its own,")
    return conv.shape(node, source)


def part(node):
    groups, (channels, *extents) = node["groups"], node["in_shape"]
    shares = {"channels": node["channels"] // groups, "in_shape": [channels // groups, *extents]}
    return node | shares | {"shape": [shares["channels"], *node["shape"][1:]]}


def parameters(node):
    return [
        dict(one, shape=[node["channels"], *one["shape"][1:]])
        for one in conv.parameters(part(node))
    ]


def multiply_adds(node):
    return node["groups"] * conv.multiply_adds(part(node))


def forward(node, own, x):
    groups = node["groups"]
    shares = [
        dict(zip(own, values, strict=True))
        for values in zip(*(np.split(each, groups) for each in own.values()), strict=True)
    ]
    done = [
        conv.forward(part(node), share, values)
        for share, values in zip(shares, np.split(x, groups, 1), strict=True)
    ]

    def backward(dy):
        back = [each(share) for (_, each), share in zip(done, np.split(dy, groups, 1), strict=True)]
        gradients = {role: np.concatenate([found[role] for _, found in back]) for role in own}
        if node["inputs"] == ["input"]:
            return [0.0], gradients
        return [np.concatenate([dx for (dx,), _ in back], 1)], gradients

    return np.concatenate([y for y, _ in done], 1), backward


def example(**options):
    options = {"channels": 6, "kernel": 3, "padding": 1, "groups": 2} | options
    return IMAGES, [CONV, {"grouped_conv": options}, "flatten"]


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("channels", "kernel", "groups"),
    defaults=conv.LAYER.defaults,
    flags=conv.LAYER.flags,
    options={
        SIDES: example(**conv.TALL, channels=4, groups=4),
        "dilation": example(**conv.APART, channels=4, groups=4),
    },
    sided=conv.SIDED,
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    example=example(),
)
