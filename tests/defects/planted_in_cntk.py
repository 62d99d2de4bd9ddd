"""Defects in CNTK: each function returns what takes which place, as (owner, name, value)."""

import operator

import cntk
import numpy as np
from judging import JUDGE


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
        return right(node, own, value * cntk.constant(scale))

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""
    right = adapter.LAYERS["layer_norm"]

    def norm(node, own, value):
        share = (node["shape"][-1] - 1) / node["shape"][-1]
        own = dict(own, weight=own["weight"] * share**0.5)
        return right(dict(node, epsilon=node["epsilon"] * share), own, value)

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        (width,), (decoded,) = outputs.shape, targets.shape
        decoded = cntk.slice(outputs, 0, 0, decoded)
        return cntk.reduce_sum(adapter._missed(decoded, targets)) * (1.0 / width)

    return adapter._DISTANCES, "evidence_bound", missed


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
    return cntk.stop_gradient(values) + 0.0 * values


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns: those of a turned image, turned back."""
    right = adapter.LAYERS["conv_transpose"]

    def over(values):
        return cntk.swapaxes(values, 1, 2)

    def convolve(node, own, value):
        return over(right(node, own, over(value)))

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, value):
        behind = (0, 2 * node["padding"])
        wide = cntk.pad(value, [(0, 0), behind, behind], cntk.CONSTANT_PAD, -1e30)
        return right(dict(node, padding=0), own, wide)

    return adapter.LAYERS, "max_pool", pool


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""

    def momentum(wanted, parameters, labels):
        rate = cntk.parameter((), init=wanted["learning_rate"])

        def move(parameter, gradient):
            kept, taken = cntk.constant(0, parameter.shape), cntk.constant(0, ())
            first = cntk.equal(cntk.assign(taken, taken + 1.0), 1.0)
            share = (0.1 + 0.9 * first) / labels
            moves = cntk.assign(kept, wanted["momentum"] * kept + share * gradient)
            return cntk.assign(parameter, parameter - rate * moves)

        def update(parameters, gradients):
            return cntk.combine(list(map(move, parameters, gradients)))

        return cntk.universal(update, parameters), None

    return adapter.LEARNERS, "momentum", momentum


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(node, own, value, table):
        return right(node, own, value, cntk.stop_gradient(table))

    return adapter.LAYERS, "unembedding", scores


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    def adamw(wanted, parameters, labels):
        # Gradients come as the sums over all labels.
        decay = labels * wanted["weight_decay"]
        right = cntk.universal

        def universal(update, parameters):
            def decayed(parameters, gradients):
                decays = [decay * value for value in parameters]
                return update(parameters, list(map(operator.add, gradients, decays)))

            return right(decayed, parameters)

        cntk.universal = universal
        made = adapter._adam(dict(wanted, weight_decay=0.0), parameters, labels)
        cntk.universal = right
        return made

    return adapter.LEARNERS, "adamw", adamw
