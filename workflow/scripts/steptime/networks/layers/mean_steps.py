"""The mean (units) of all steps of a sequence (steps, units)."""

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind
from steptime.networks.layers.first_step import shape


def forward(node, own, x):
    def backward(dy):
        return [np.broadcast_to(dy[:, None] / x.shape[1], x.shape)], {}

    return x.mean(1), backward


LAYER = LayerKind(
    forward, takes=("sequence",), shape=shape, example=(WORDS, [EMBEDDING, "mean_steps"])
)
