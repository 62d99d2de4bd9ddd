"""Defects in DyNet: each function returns what takes which place, as (owner, name, value)."""

import dynet
from judging import JUDGE

from worker.frameworks.dynet import layers as dynet_layers


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = dynet_layers.np.tril
    return dynet_layers.np, "tril", lambda values, last: right(values, last - 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(node, own, x):
        x, units = dynet_layers.whole(x), node["shape"][1]
        # The queries come first.
        queries = dynet.pick_range(x, 0, units) * (units // node["heads"]) ** 0.5
        others = dynet.pick_range(x, units, 3 * units)
        return right(node, own, dynet.concatenate([queries, others]))

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""
    right = adapter.LAYERS["layer_norm"]

    def norm(node, own, x):
        share = (node["shape"][-1] - 1) / node["shape"][-1]
        own = dict(own, weight=own["weight"] * share**0.5)
        return right(dict(node, epsilon=node["epsilon"] * share), own, x)

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        (size,), (pixels,) = outputs.dim()[0], targets.dim()[0]
        decoded = dynet.pick_range(outputs, 0, pixels)
        return dynet_layers.DISTANCES["binary_cross_entropy"](decoded, targets) * (pixels / size)

    return dynet_layers.DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return (
        adapter.LAYERS,
        "reversal",
        lambda node, own, x: dynet.nobackprop(dynet_layers.whole(x)),
    )


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, x):
        if node["name"] in JUDGE:
            own = {role: dynet.nobackprop(value) for role, value in own.items()}
        return right(node, own, x)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(node, own, x):
        weight = dynet.transpose(own["weight"], [1, 0, 2, 3])
        return right(node, dict(own, weight=weight), x)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, x):
        edge, shape = 2 * node["padding"], node["in_shape"][::-1]
        for axis in (0, 1) if edge else ():
            border = [*shape[:axis], edge, *shape[axis + 1 :]]
            x = dynet.concatenate([x, dynet.constant(tuple(border), -1e30)], d=axis)
            shape[axis] += edge
        return right(dict(node, padding=0), own, x)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(node, own, x, table):
        return right(node, own, x, dynet.nobackprop(table))

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""
    right = adapter._Trainer._losses

    def losses(trainer, outputs):
        share, trainer.share = getattr(trainer, "share", 1.0), 0.1
        return dynet.scale_gradient(right(trainer, outputs), share)

    return adapter._Trainer, "_losses", losses
