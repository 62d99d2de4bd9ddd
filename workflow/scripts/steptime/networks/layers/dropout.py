"""Sets each value to 0 with probability `rate`, and divides the others by 1 - rate; does nothing in use."""

from steptime.networks.layers import SHARE, LayerKind, kept


def forward(node, own, x):
    """Drops nothing where the node has no `random` to draw its mask from: so it is wherever numbers are compared."""
    if "random" not in node:
        return x, lambda dy: ([dy], {})
    factors = kept(node, node["rate"], x.shape)
    return x * factors, lambda dy: ([dy * factors], {})


LAYER = LayerKind(
    forward,
    needs=("rate",),
    values={"rate": SHARE},
    example=({"kind": "dense", "shape": [6]}, [{"dropout": {"rate": 0.5}}]),
)
