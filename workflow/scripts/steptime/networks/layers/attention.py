"""Scaled dot-product attention of `heads` heads (Vaswani et al. 2017, section 3.2), from (steps, 3 units), which are
queries, keys and values side by side, to (steps, units).

The units of a head are side by side, too. Scores are divided by the root of their number. With `causal`, a step sees
itself and the steps before it. The projections around it are layers of kind dense. With `kv_heads`, there are fewer
keys and values than queries, each for as many heads in succession (Ainslie et al. 2023). With `rotary`, the base of the
angles, queries and keys are turned by their step, the first half of a head with the second (Su et al. 2021). Each
share, a score after the softmax, is set to 0 with probability `dropout`, and divided by 1 - dropout otherwise; in use,
none is (Vaswani et al. in tensor2tensor, `dot_product_attention`).
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import EMBEDDING, POSITIVE, SHARE, WORDS, LayerKind, kept


def shape(node, source):
    (steps, features), heads = source, node["heads"]
    pairs = node.get("kv_heads", heads)
    if heads % pairs:
        raise ValueError(f"{heads} heads do not share {pairs} keys: write a number that divides")
    if features % (heads + 2 * pairs):
        raise ValueError(
            f"{features} features are no queries, keys and values of {heads} heads: write "
            f"a dense layer before it whose units are a multiple of {heads + 2 * pairs}"
        )
    size = features // (heads + 2 * pairs)
    if "rotary" in node and size % 2:
        raise ValueError(f"a head of {size} has no two halves: write an even number")
    return [steps, heads * size]


def multiply_adds(node):
    """Counts those of scores and of sums of values, over the pairs of steps that are not masked."""
    steps, units = node["shape"]
    pairs = steps * (steps + 1) // 2 if node.get("causal") else steps**2
    return 2 * pairs * units


def numbers_moved(node, batch, weights):
    """Counts the input once more; scores stay where they are made."""
    source, result = batch * math.prod(node["in_shape"]), batch * math.prod(node["shape"])
    return 3 * source + 2 * result


def seen(steps):
    """Returns which steps (columns) each step (row) sees under a causal mask."""
    return np.tri(steps, dtype=bool)


def turned(x, base, way=1.0):
    """Turns (..., steps, size): each number with the one half a head further, by step x base**(-2 i / size)."""
    steps, size = x.shape[-2:]
    angles = np.outer(np.arange(steps), base ** (-np.arange(0, size, 2) / size))
    cosine, sine = np.cos(angles), way * np.sin(angles)
    first, second = np.split(x, 2, -1)
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def forward(node, own, x):
    samples, steps, _ = x.shape
    heads, size = node["heads"], node["shape"][-1] // node["heads"]
    pairs = node.get("kv_heads", heads)
    # Each (samples, heads, steps, size).
    q, k, v = np.split(
        x.reshape(samples, steps, -1, size).swapaxes(1, 2), [heads, heads + pairs], 1
    )
    if "rotary" in node:
        q, k = (turned(each, node["rotary"]) for each in (q, k))
    k, v = (each.repeat(heads // pairs, 1) for each in (k, v))
    root = math.sqrt(size)
    scores = q @ k.swapaxes(-1, -2) / root
    if node.get("causal"):
        scores = np.where(seen(steps), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares = shares / shares.sum(-1, keepdims=True)
    # As in `dropout`, nothing is dropped where the node has no `random`.
    factors = kept(node, node["dropout"], shares.shape) if "random" in node else 1.0
    left = shares * factors

    def backward(dy):
        dy = dy.reshape(samples, steps, heads, size).swapaxes(1, 2)
        d_shares = dy @ v.swapaxes(-1, -2) * factors
        d_scores = shares * (d_shares - (d_shares * shares).sum(-1, keepdims=True)) / root
        d_q, d_k, d_v = d_scores @ k, d_scores.swapaxes(-1, -2) @ q, left.swapaxes(-1, -2) @ dy
        d_k, d_v = (
            each.reshape(samples, pairs, heads // pairs, steps, size).sum(2) for each in (d_k, d_v)
        )
        if "rotary" in node:
            d_q, d_k = (turned(each, node["rotary"], -1.0) for each in (d_q, d_k))
        dx = np.concatenate([d_q, d_k, d_v], 1).swapaxes(1, 2)
        return [dx.reshape(x.shape)], {}

    return (left @ v).swapaxes(1, 2).reshape(samples, steps, -1), backward


def example(units=18, **options):
    options = {"heads": 2, "causal": True} | options
    return WORDS, [EMBEDDING, {"dense": {"units": units}}, {"attention": options}]


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    needs=("heads",),
    flags=("causal",),
    options={
        "kv_heads": example(24, heads=4, kv_heads=2),
        "rotary": example(24, rotary=10.0),
        "dropout": example(dropout=0.25),
    },
    values={"rotary": POSITIVE, "dropout": SHARE},
    shape=shape,
    multiply_adds=multiply_adds,
    numbers_moved=numbers_moved,
    drops="shares",
    example=example(),
)
