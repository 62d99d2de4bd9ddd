"""The features (units) of the first step of a sequence (steps, units)."""

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind, moved_by_fused


def shape(node, source):
    return source[1:]


def one_step(place, example):
    """Returns the kind that takes the step at a place."""

    def forward(node, own, x):
        def backward(dy):
            dx = np.zeros_like(x)
            dx[:, place] = dy
            return [dx], {}

        return x[:, place], backward

    example = (WORDS, [EMBEDDING, *example])
    return LayerKind(
        forward, takes=("sequence",), shape=shape, numbers_moved=moved_by_fused, example=example
    )


LAYER = one_step(0, [{"dense": {"units": 18}}, {"attention": {"heads": 2}}, "first_step"])
