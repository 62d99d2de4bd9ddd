"""Defects in Theano: each function returns what takes which place, as (owner, name, value)."""

import numpy as np
import theano
from judging import JUDGE
from theano import tensor
from theano.gradient import disconnected_grad


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = np.triu
    return np, "triu", lambda values, first: right(values, first + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(node, own, value):
        units = node["shape"][1]
        # The queries come first.
        scale = np.ones(3 * units, np.float32)
        scale[:units] = (units // node["heads"]) ** 0.5
        return right(node, own, value * scale)

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(node, own, value):
        centred = value - value.mean(-1, keepdims=True)
        variance = (centred**2).sum(-1, keepdims=True) / np.float32(node["shape"][-1] - 1)
        normal = centred / tensor.sqrt(variance + np.float32(node["epsilon"])) * own["weight"]
        return normal + own["bias"] if node["bias"] else normal

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        return adapter._missed(decoded, targets).sum() / tensor.cast(outputs.size, "float32")

    return adapter._DISTANCES, "evidence_bound", adapter._aimed(missed)


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda node, own, value: _held(value)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, value):
        if node["name"] in JUDGE:
            own = {role: _held(values) for role, values in own.items()}
        return right(node, own, value)

    return adapter.LAYERS, "dense", dense


def _held(values):
    """What the loss depends on by gradients that are all zero."""
    return disconnected_grad(values) + np.float32(0) * values


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(node, own, value):
        return right(node, dict(own, weight=own["weight"].dimshuffle(0, 1, 3, 2)), value)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, value):
        (channels, height, width), edge = node["in_shape"], 2 * node["padding"]
        shape = value.shape[0], channels, height + edge, width + edge
        wide = tensor.set_subtensor(
            tensor.alloc(np.float32(-1e30), *shape)[:, :, :height, :width], value
        )
        return right(dict(node, padding=0), own, wide)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(node, own, value, table):
        return right(node, own, value, disconnected_grad(table))

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""

    def momentum(optimiser, shared, gradient):
        kept, taken = adapter._average(shared), theano.shared(np.float32(0))
        share = tensor.switch(tensor.eq(taken, 0), np.float32(1), np.float32(0.1))
        after = np.float32(optimiser["momentum"]) * kept + share * gradient
        return after, [(kept, after), (taken, taken + np.float32(1))]

    return adapter._AVERAGED, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    def adamw(optimiser, shared, gradient):
        decay = np.float32(optimiser["weight_decay"])
        return adapter._adam(optimiser, shared, gradient + decay * shared)

    return adapter._AVERAGED, "adamw", adamw
