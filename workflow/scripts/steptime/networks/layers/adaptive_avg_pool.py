"""An image of `size` rows and columns, each the mean of its share of the input's rows and columns.

Share i of n begins at i/n of them and ends at (i + 1)/n, rounded so that no pixel is left out: two shares may overlap.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, LayerKind


def shape(node, source):
    return [source[0], node["size"], node["size"]]


def weights(size, extent):
    """Returns the weight of each of `extent` rows in each of `size` means: (size, extent)."""
    means = np.zeros((size, extent))
    for share in range(size):
        first, end = share * extent // size, -(-(share + 1) * extent // size)
        means[share, first:end] = 1 / (end - first)
    return means


def forward(node, own, x):
    rows, columns = (weights(node["size"], extent) for extent in x.shape[2:])
    return rows @ x @ columns.T, lambda dy: ([rows.T @ dy @ columns], {})


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("size",),
    shape=shape,
    example=(IMAGES, [CONV, {"adaptive_avg_pool": {"size": 3}}, "flatten"]),
)
