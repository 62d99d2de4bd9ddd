"""Each value above 0, and `slope` times each value below (Maas, Hannun and Ng 2013)."""

from steptime.networks.arrays import np
from steptime.networks.layers import DENSE, ROW, SHARE, LayerKind, moved_by_fused


def forward(node, own, x):
    slopes = np.where(x > 0.0, 1.0, node["slope"])
    return x * slopes, lambda dy: ([dy * slopes], {})


LAYER = LayerKind(
    forward,
    needs=("slope",),
    values={"slope": SHARE},
    numbers_moved=moved_by_fused,
    example=(ROW, [DENSE, {"leaky_relu": {"slope": 0.1}}]),
)
