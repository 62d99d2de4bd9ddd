"""Returns its input; on the way back, turns the sign of the gradient (Ganin and Lempitsky 2015).

Layers in front of it climb the loss that layers behind it descend: the two players of Goodfellow et al. 2014, equation
1, in one step of both.
"""

from steptime.networks.layers import ROW, LayerKind, moved_by_fused


def forward(node, own, x):
    return x, lambda dy: ([-dy], {})


# The layers after it are the stronger player: the loss of an example falls.
LAYER = LayerKind(
    forward,
    numbers_moved=moved_by_fused,
    example=(ROW, [{"dense": {"units": 2}}, "reversal", {"dense": {"units": 24}}]),
)
