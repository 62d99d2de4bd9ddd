"""Its input as it is; on the way back the gradient with its sign turned (Ganin and Lempitsky 2015).

What stands in front of it climbs the loss that what stands behind it descends: the two players of
Goodfellow et al. 2014, equation 1, in one step of both.
"""

from steptime.networks.layers import ROW, LayerKind, moved_by_fused


def forward(node, own, x):
    return x, lambda dy: ([-dy], {})


# What stands behind it is the stronger: the loss of an example falls.
LAYER = LayerKind(
    forward,
    numbers_moved=moved_by_fused,
    example=(ROW, [{"dense": {"units": 2}}, "reversal", {"dense": {"units": 24}}]),
)
