"""Defects in Chainer: each function returns what takes which place, as (owner, name, value)."""

from types import SimpleNamespace

import numpy as np
from chainer import functions
from chainer.optimizers import momentum_sgd
from judging import JUDGE


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = np.triu
    return np, "triu", lambda values, first: right(values, first + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(trainer, node, x):
        units = x.shape[-1] // 3
        # The queries come first.
        scale = np.ones(3 * units, np.float32)
        scale[:units] = (units // node["heads"]) ** 0.5
        return right(trainer, node, x * np.broadcast_to(scale, x.shape))

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(trainer, node, x):
        centred = x - functions.broadcast_to(functions.mean(x, -1, keepdims=True), x.shape)
        squares = functions.sum(centred**2, -1, keepdims=True) / (x.shape[-1] - 1)
        scale = functions.broadcast_to((squares + node["epsilon"]) ** -0.5, x.shape)
        own = (trainer.own(node, role) for role in ("weight", "bias")[: 1 + node["bias"]])
        weight, *bias = (functions.broadcast_to(values, x.shape) for values in own)
        return sum(bias, centred * scale * weight)

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        return functions.sum(adapter._missed(decoded, targets)) / outputs.size

    return adapter._DISTANCES, "evidence_bound", adapter._aimed(missed)


def detached(adapter):
    """A generator that no gradient reaches."""
    # Its parameters have gradients, all of them zero.
    return adapter.LAYERS, "reversal", lambda trainer, node, x: x.array + 0.0 * x


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(trainer, node, x):
        if node["name"] not in JUDGE:
            return right(trainer, node, x)

        def own(node, role):
            each = trainer.own(node, role)
            return each.array + 0.0 * each

        return right(SimpleNamespace(own=own), node, x)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(trainer, node, x):
        def own(node, role):
            values = trainer.own(node, role)
            return values.transpose(0, 1, 3, 2) if role == "weight" else values

        return right(SimpleNamespace(own=own), node, x)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(trainer, node, x):
        behind = (0, 2 * node["padding"])
        x = functions.pad(x, [(0, 0), (0, 0), behind, behind], "constant", constant_values=-1e30)
        return right(trainer, dict(node, padding=0), x)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(trainer, node, x, table):
        return right(trainer, node, x, table.array)

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    class Dampened(momentum_sgd.MomentumSGDRule):
        def update_core(self, param):
            if self.t > 1:
                param.grad *= 0.1
            super().update_core(param)

    def momentum(wanted):
        return Dampened(lr=wanted["learning_rate"], momentum=wanted["momentum"])

    return adapter._RULES, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    class Decaying(adapter._Adam):
        def __init__(self, wanted):
            super().__init__(dict(wanted, weight_decay=0.0))
            self.added = wanted["weight_decay"]

        def update_core(self, param):
            param.grad += self.added * param.array
            super().update_core(param)

    return adapter._RULES, "adamw", Decaying
