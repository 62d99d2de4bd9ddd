"""The features (units) of the first step of a sequence (steps, units)."""

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind, moved_by_fused


def shape(node, source):
    return source[1:]


def forward(node, own, x):
    def backward(dy):
        dx = np.zeros_like(x)
        dx[:, 0] = dy
        return [dx], {}

    return x[:, 0], backward


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    shape=shape,
    numbers_moved=moved_by_fused,
    example=(
        WORDS,
        [EMBEDDING, {"dense": {"units": 18}}, {"attention": {"heads": 2}}, "first_step"],
    ),
)
