"""Some features in succession; others are for other layers."""

from steptime.networks.arrays import np
from steptime.networks.layers import COUNT, DENSE, ROW, LayerKind


def shape(node, source):
    if node["start"] + node["size"] > source[-1]:
        raise ValueError(
            f"it wants {node['size']} features from the one numbered {node['start']} on: write a "
            f"start and a size that {source[-1]} features hold"
        )
    return [*source[:-1], node["size"]]


def numbers_moved(node, batch, weights):
    """Counts none: a view moves nothing."""
    return 0


def forward(node, own, x):
    kept = slice(node["start"], node["start"] + node["size"])

    def backward(dy):
        dx = np.zeros_like(x)
        dx[..., kept] = dy
        return [dx], {}

    return x[..., kept], backward


LAYER = LayerKind(
    forward,
    takes=("row", "sequence"),
    needs=("start", "size"),
    values={"start": COUNT},
    shape=shape,
    numbers_moved=numbers_moved,
    example=(ROW, [DENSE, {"part": {"start": 1, "size": 3}}]),
)
