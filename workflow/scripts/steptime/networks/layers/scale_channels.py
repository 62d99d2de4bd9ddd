"""Each channel of an image times a factor of its sample: squeeze and excitation (Hu, Shen and Sun 2018)."""

from steptime.networks.layers import CONV, IMAGES, LayerKind, moved_by_fused


def shape(node, source, factors):
    if factors != source[:1]:
        raise ValueError(
            f"its second input, '{node['inputs'][1]}', has shape {factors}: write as many units as "
            f"there are channels, {source[0]}"
        )
    return list(source)


def forward(node, own, x, factors):
    wide = factors.reshape(*factors.shape, 1, 1)
    return x * wide, lambda dy: ([dy * wide, (dy * x).sum((2, 3))], {})


SQUEEZED = [
    {"conv": CONV["conv"] | {"name": "maps"}},
    "global_average_pool",
    {"dense": {"units": 4}},
    {"sigmoid": {"name": "factors"}},
]

LAYER = LayerKind(
    forward,
    inputs=2,
    takes=("image",),
    beside="row",
    shape=shape,
    numbers_moved=moved_by_fused,
    example=(IMAGES, [*SQUEEZED, {"scale_channels": {"inputs": ["maps", "factors"]}}, "flatten"]),
)
