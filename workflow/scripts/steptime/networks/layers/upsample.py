"""An image of `factor` times as many rows and columns: each pixel repeated, or with `bilinear` between its neighbours.

A pixel is where its centre is: of row i of the output, ((i + 1/2) / factor - 1/2) rows from the first one. Between two
rows, each counts by how near it is; beyond the first and the last one, that row alone does. Columns are alike.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, SWITCH, LayerKind


def shape(node, source):
    channels, height, width = source
    return [channels, height * node["factor"], width * node["factor"]]


def weights(factor, extent):
    """Returns the weight of each of `extent` rows in each row of the output: (factor * extent, extent)."""
    centres = (np.arange(factor * extent) + 0.5) / factor - 0.5
    inside = np.clip(centres, 0, extent - 1)
    return np.maximum(0.0, 1.0 - np.abs(inside[:, None] - np.arange(extent)))


def forward(node, own, x):
    if node.get("bilinear"):
        return between(node["factor"], x)
    factor, (batch, channels, height, width) = node["factor"], x.shape

    def backward(dy):
        blocks = dy.reshape(batch, channels, height, factor, width, factor)
        return [blocks.sum((3, 5))], {}

    return x.repeat(factor, 2).repeat(factor, 3), backward


def between(factor, x):
    rows, columns = (weights(factor, extent) for extent in x.shape[2:])
    return rows @ x @ columns.T, lambda dy: ([rows.T @ dy @ columns], {})


BILINEAR = [{"upsample": {"factor": factor, "bilinear": True}} for factor in (2, 3)]

LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("factor",),
    # Images that are not square, by an even and an odd factor.
    options={"bilinear": (IMAGES | {"shape": [3, 3, 4]}, [CONV, *BILINEAR, "flatten"])},
    values={"bilinear": SWITCH},
    shape=shape,
    example=(IMAGES, [CONV, {"upsample": {"factor": 2}}, "flatten"]),
)
