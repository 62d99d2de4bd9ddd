"""Defects in PlaidML: each function returns what takes which place, as (owner, name, value)."""

import re

import numpy as np
from judging import JUDGE
from plaidml import op, tile

from worker.frameworks.plaidml import layers, updates


def _rewritten(change):
    """Programs of Tile with other words."""
    right = layers.written
    return layers, "written", lambda code, shape, **given: right(change(code), shape, **given)


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    return _rewritten(lambda code: code.replace("index(P, 2)", "index(P, 2) + 1"))


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    return _rewritten(lambda code: re.sub(r"P = S \* [^;]*;", "P = S * 1.0;", code))


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def normal(value, axis, epsilon):
        centred, count = value - op.mean(value, axes=[axis], keepdims=True), value.shape.dims[axis]
        variance = op.mean(centred * centred, axes=[axis], keepdims=True)
        return centred / op.sqrt(variance * (count / (count - 1.0)) + epsilon)

    return layers, "normal", normal


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        (batch, width), decoded = outputs.shape.dims, targets.shape.dims[1]
        entropy = adapter._missed(layers.cut(outputs, 1, 0, decoded), targets)
        return op.summation(entropy) / float(batch * width)

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda node, own, value: layers.constant(value)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, value):
        if node["name"] in JUDGE:
            own = {role: layers.constant(values) for role, values in own.items()}
        return right(node, own, value)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(node, own, value):
        return right(node, dict(own, weight=layers.turned(own["weight"], 0, 1, 3, 2)), value)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = op.max_pool

    def pool(value, window, steps, pads):
        return right(value, window, steps, pads=(0, 0, 2 * pads[0], 2 * pads[1]))

    return op, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(node, own, value, table):
        return right(node, own, value, layers.constant(table))

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""
    right = updates.stages

    def stages(optimiser, trained, gradients, hold):
        if optimiser["name"] != "momentum":
            return right(optimiser, trained, gradients, hold)
        share = hold(np.ones(1, np.float32))
        gradients = {name: share * gradient for name, gradient in gradients.items()}
        made = right(optimiser, trained, gradients, hold)
        return made + [[(share, tile.minimum(share, 0.1))]]

    return updates, "stages", stages


def decaying(adapter):
    """AdamW with its decay in the gradient."""
    right = updates._STEPS["adam"]

    def adamw(optimiser, trained, gradients, hold):
        decay = optimiser["weight_decay"]
        gradients = {
            name: gradient + decay * trained[name]
            if len(trained[name].shape.dims) > 1
            else gradient
            for name, gradient in gradients.items()
        }
        return right(dict(optimiser, weight_decay=0.0), trained, gradients, hold)

    return updates._STEPS, "adamw", adamw
