"""Rows and columns of zeros around an image, `rows` and `columns` of [in front, behind]: paddings of one side."""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, COUNT, IMAGES, LayerKind, Values, moved_by_copy

BOTH = Values(
    "two whole numbers of at least 0, [in front, behind]",
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(COUNT.hold, value)),
)


def shape(node, source):
    channels, height, width = source
    return [channels, height + sum(node["rows"]), width + sum(node["columns"])]


def forward(node, own, x):
    around = [(0, 0), (0, 0), node["rows"], node["columns"]]
    inside = tuple(
        slice(before, before + extent) for (before, _), extent in zip(around, x.shape, strict=True)
    )
    return np.pad(x, around), lambda dy: ([dy[inside]], {})


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("rows", "columns"),
    values={"rows": BOTH, "columns": BOTH},
    shape=shape,
    numbers_moved=moved_by_copy,
    example=(IMAGES, [CONV, {"pad": {"rows": [0, 1], "columns": [2, 0]}}, "flatten"]),
)
