"""The steps of a sequence behind one another, as features of one row."""

import math
from dataclasses import replace

from steptime.networks.layers import EMBEDDING, WORDS
from steptime.networks.layers.flatten import LAYER as FLATTEN


def numbers_moved(node, batch, weights):
    """A copy where the steps lie first, and another one of the gradient."""
    return 4 * batch * math.prod(node["shape"])


LAYER = replace(
    FLATTEN,
    takes=("sequence",),
    numbers_moved=numbers_moved,
    example=(WORDS, [EMBEDDING, "unstack"]),
)
