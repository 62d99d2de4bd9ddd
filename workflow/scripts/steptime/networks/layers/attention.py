"""Scaled dot-product attention of `heads` heads (Vaswani et al. 2017, section 3.2), from (steps, 3 units), in which
queries, keys and values stand side by side, to (steps, units).

The units of a head stand side by side, too. Scores are divided by the root of their number. With `causal`, a step sees
itself and those before it. The projections around it are layers of kind dense.
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, WORDS, LayerKind

QKV = 3


def shape(node, source):
    steps, features = source
    if features % (QKV * node["heads"]):
        raise ValueError(
            f"{features} features are no queries, keys and values of {node['heads']} heads: write "
            f"a dense layer before it whose units are a multiple of {QKV * node['heads']}"
        )
    return [steps, features // QKV]


def multiply_adds(node):
    """Of scores and of sums of values, of the pairs of steps that are not masked."""
    steps, units = node["shape"]
    pairs = steps * (steps + 1) // 2 if node.get("causal") else steps**2
    return 2 * pairs * units


def numbers_moved(node, batch, weights):
    """Scores stay where they are made: what is read once more is the input."""
    source, result = batch * math.prod(node["in_shape"]), batch * math.prod(node["shape"])
    return 3 * source + 2 * result


def seen(steps):
    """Whether a step, by row, sees a step, by column, under a causal mask."""
    return np.tri(steps, dtype=bool)


def forward(node, own, x):
    samples, steps, features = x.shape
    heads, size = node["heads"], features // (QKV * node["heads"])
    # (3, samples, heads, steps, size)
    q, k, v = x.reshape(samples, steps, QKV, heads, size).transpose(2, 0, 3, 1, 4)
    root = math.sqrt(size)
    scores = q @ k.swapaxes(-1, -2) / root
    if node.get("causal"):
        scores = np.where(seen(steps), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares = shares / shares.sum(-1, keepdims=True)

    def backward(dy):
        dy = dy.reshape(samples, steps, heads, size).swapaxes(1, 2)
        d_shares = dy @ v.swapaxes(-1, -2)
        d_scores = shares * (d_shares - (d_shares * shares).sum(-1, keepdims=True)) / root
        gradients = d_scores @ k, d_scores.swapaxes(-1, -2) @ q, shares.swapaxes(-1, -2) @ dy
        return [np.stack(gradients).transpose(1, 3, 0, 2, 4).reshape(x.shape)], {}

    return (shares @ v).swapaxes(1, 2).reshape(samples, steps, -1), backward


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    needs=("heads",),
    flags=("causal",),
    shape=shape,
    multiply_adds=multiply_adds,
    numbers_moved=numbers_moved,
    example=(
        WORDS,
        [EMBEDDING, {"dense": {"units": 18}}, {"attention": {"heads": 2, "causal": True}}],
    ),
)
