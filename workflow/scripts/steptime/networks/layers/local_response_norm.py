"""Each value divided by (1 + alpha / size x the sum of the squares of it and its neighbours) ** 0.75.

Neighbours are at the same place in `size` channels around it. alpha is 1 / `inverse_alpha`, so that a narrow network
can have one that a proof notices. Krizhevsky et al. 2012, section 3.3, with the 1 and the division by `size` of Caffe,
in which AlexNet and GoogLeNet were published.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import CONV, IMAGES, ODD, LayerKind

BETA = 0.75


def neighbours(x, size):
    """Returns the sum over `size` channels around each."""
    half = size // 2
    padded = np.pad(x, ((0, 0), (half, half), (0, 0), (0, 0)))
    return sum(padded[:, first : first + x.shape[1]] for first in range(size))


def forward(node, own, x):
    share = 1.0 / (node["inverse_alpha"] * node["size"])
    scale = 1.0 + share * neighbours(x**2, node["size"])
    y = x * scale**-BETA

    def backward(dy):
        others = neighbours(dy * y / scale, node["size"])
        return [dy * scale**-BETA - 2.0 * share * BETA * x * others], {}

    return y, backward


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("size",),
    values={"size": ODD},
    defaults={"inverse_alpha": 10000},
    example=(IMAGES, [CONV, {"local_response_norm": {"size": 3, "inverse_alpha": 1}}, "flatten"]),
)
