"""The steps of a sequence behind one another, as features of one row."""

import math

from steptime.networks.layers import EMBEDDING, WORDS, LayerKind


def shape(node, source):
    return [math.prod(source)]


def numbers_moved(node, batch, weights):
    """A copy where the steps lie first, and another one of the gradient."""
    return 4 * batch * math.prod(node["shape"])


def forward(node, own, x):
    return x.reshape(len(x), -1), lambda dy: ([dy.reshape(x.shape)], {})


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    shape=shape,
    numbers_moved=numbers_moved,
    example=(WORDS, [EMBEDDING, "unstack"]),
)
