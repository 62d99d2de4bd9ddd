"""Sets whole samples to 0 with probability `rate`, divides others by 1 - rate; does nothing in use (Huang 2016)."""

from steptime.networks.layers import SHARE, LayerKind


def forward(node, own, x):
    """Nothing where the node has no `random`, as dropout."""
    if "random" not in node:
        return x, lambda dy: ([dy], {})
    drawn = node["random"].random_sample((len(x), *[1] * (x.ndim - 1)))
    factors = (drawn >= node["rate"]) / (1 - node["rate"])
    return x * factors, lambda dy: ([dy * factors], {})


LAYER = LayerKind(
    forward,
    needs=("rate",),
    values={"rate": SHARE},
    drops_samples=True,
    example=({"kind": "dense", "shape": [6]}, [{"stochastic_depth": {"rate": 0.5}}]),
)
