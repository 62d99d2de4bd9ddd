"""Batch normalisation with gamma and beta (channels), and statistics of the batch; `epsilon` is 1e-5.

`momentum` is the share of a mini-batch in the running averages; by default, it is the framework's own.

`ends_branch` marks the last one of a residual branch: its gammas start at a tenth of its shortcut. At equal parts,
gradients grow some 30 times over fifty layers, and float32 noise turns signs in front of ReLUs, so that no two
frameworks agree (compare Goyal et al. 2017, section 5.1, who start the same gammas at zero).

`raised` is for networks of many layers without residual branches: their betas start about 1, where few units of a ReLU
are off. Units that are off make gradients grow with each layer, by some 70 over MobileNet and 50 over DenseNet-121 at
their narrow sizes, and rounding turns their signs.
"""

from shared.specification import BATCH_NORM_EPSILON
from steptime.networks.arrays import np
from steptime.networks.layers import (
    CONV,
    IMAGES,
    POSITIVE,
    SHARE,
    LayerKind,
    moved_by_fused,
    over_places,
    parameter,
)

BRANCH_GAMMA = 0.1
RAISED_BETA = 1.0


def parameters(node):
    channels = node["in_shape"][0]
    centre = BRANCH_GAMMA if node.get("ends_branch") else 1.0
    return [
        parameter(node, "gamma", [channels], 0.1 * centre, centre=centre),
        parameter(node, "beta", [channels], 0.1, centre=RAISED_BETA if node.get("raised") else 0.0),
    ]


def forward(node, own, x):
    """Normalises by the biased variance (Ioffe and Szegedy 2015, algorithm 1), or in use by a given mean and variance.

    Where a node has `rounded`, it rounds the sums from which a framework may subtract the mean's part late. Where a
    node has `summed`, that adds up samples' parts of the gradient.
    """
    epsilon = node.get("epsilon", BATCH_NORM_EPSILON)
    if "mean" in own:
        scale = own["gamma"] / np.sqrt(own["variance"] + epsilon)
        return _images((_rows(x) - own["mean"]) * scale + own["beta"], x.shape), None
    normal, extents, rounded = _rows(x), x.shape, node.get("rounded", np.asarray)
    mean = normal.mean(0)
    normal = normal - mean
    late = mean if "rounded" in node else np.zeros_like(mean)
    variance = rounded(_sums(normal, normal) / len(normal) + late**2) - late**2
    scale = 1.0 / np.sqrt(variance + epsilon)
    normal *= scale
    y = normal * own["gamma"]
    y += own["beta"]
    if "rounded" in node:
        y = rounded(y + late * scale * own["gamma"]) - late * scale * own["gamma"]

    def backward(dy):
        rows = _rows(dy)
        gamma, beta = _sums(rows, normal), rows.sum(0)
        if "summed" in node:
            parts = (part.reshape(len(dy), -1, len(beta)) for part in (rows * normal, rows))
            gamma, beta = (over_places(node, part) for part in parts)
        by_mean = late * scale * beta
        gamma = rounded(gamma + by_mean) - by_mean
        # What mean and variance take from each value: neither changes when all of them do alike.
        dx = normal * (gamma / -len(rows))
        dx += rows
        dx -= beta / len(rows)
        dx *= scale * own["gamma"]
        return [_images(dx, extents)], {"gamma": gamma, "beta": beta}

    return _images(y, extents), backward


def _rows(x):
    """Returns (batch, channels, ...) as one row of channels for each place of each sample."""
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _images(rows, extents):
    batch, channels, *others = extents
    return np.moveaxis(rows.reshape(batch, *others, channels), -1, 1)


def _sums(first, second):
    """Returns the sum of products in each channel."""
    return np.einsum("nc,nc->c", first, second)


def example(**options):
    # A bias in front of it has no gradient.
    layers = [{"conv": CONV["conv"] | {"bias": False}}, {"batch_norm": options}, "flatten"]
    return IMAGES, layers


LAYER = LayerKind(
    forward,
    takes=("image",),
    flags=("ends_branch", "raised"),
    options={"epsilon": example(epsilon=0.1), "momentum": example(momentum=0.25)},
    values={"epsilon": POSITIVE, "momentum": SHARE},
    parameters=parameters,
    numbers_moved=moved_by_fused,
    normalises_by="the mean and variance of the batch",
    example=example(),
)
