"""The channels of an image, the first of each of `groups` parts first (Zhang et al. 2017, ShuffleNet, figure 1)."""

from steptime.networks.layers import CONV, IMAGES, LayerKind, check_groups


def shape(node, source):
    check_groups(node, source[0])
    return list(source)


def shuffled(x, groups):
    parts = x.reshape(len(x), groups, -1, *x.shape[2:])
    return parts.swapaxes(1, 2).reshape(x.shape)


def forward(node, own, x):
    groups = node["groups"]
    back = node["in_shape"][0] // groups
    return shuffled(x, groups), lambda dy: ([shuffled(dy, back)], {})


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("groups",),
    shape=shape,
    example=(
        IMAGES,
        [{"conv": CONV["conv"] | {"channels": 6}}, {"channel_shuffle": {"groups": 2}}, "flatten"],
    ),
)
