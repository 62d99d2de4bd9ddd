"""Its inputs in succession: images by their channels, rows by their features."""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind, moved_by_copy


def shape(node, first, *others):
    for name, other in zip(node["inputs"][1:], others, strict=True):
        if other[1:] != first[1:]:
            raise ValueError(
                f"its input '{name}' has shape {other}: write layers that give all of them the "
                "same height and width"
            )
    return [first[0] + sum(other[0] for other in others), *first[1:]]


def forward(node, own, *inputs):
    ends = np.cumsum([values.shape[1] for values in inputs])[:-1]
    return np.concatenate(inputs, 1), lambda dy: (np.split(dy, ends, 1), {})


NARROW = {"conv": {"channels": 3, "kernel": 1, "name": "narrow"}}

LAYER = LayerKind(
    forward,
    takes=("row", "image"),
    inputs=None,
    shape=shape,
    numbers_moved=moved_by_copy,
    example=(
        IMAGES,
        [
            {"conv": CONV["conv"] | {"name": "wide"}},
            NARROW,
            {"concat": {"inputs": ["wide", "narrow", "input"]}},
            "flatten",
        ],
    ),
)
