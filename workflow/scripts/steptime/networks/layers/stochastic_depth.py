"""Sets whole samples to 0 with probability `rate`, divides others by 1 - rate; does nothing in use (Huang 2016)."""

from steptime.networks.layers import SHARE, LayerKind, kept


def forward(node, own, x):
    """Drops nothing where the node has no `random`, as dropout."""
    if "random" not in node:
        return x, lambda dy: ([dy], {})
    factors = kept(node, node["rate"], (len(x), *[1] * (x.ndim - 1)))
    return x * factors, lambda dy: ([dy * factors], {})


LAYER = LayerKind(
    forward,
    needs=("rate",),
    values={"rate": SHARE},
    drops="samples",
    example=({"kind": "dense", "shape": [6]}, [{"stochastic_depth": {"rate": 0.5}}]),
)
