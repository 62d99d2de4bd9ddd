"""Defects in BigDL: each function returns what takes which place, as (owner, name, value)."""

import jpype
from judging import JUDGE

from worker.frameworks.bigdl import attention as bigdl_attention
from worker.frameworks.bigdl import layers as bigdl_layers
from worker.frameworks.bigdl import updates as bigdl_updates


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = bigdl_attention.np.triu
    return bigdl_attention.np, "triu", lambda values, first: right(values, first + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(api, node):
        units = node["shape"][1]

        def describe(put, x):
            # The queries come first.
            queries, others = (
                api.createNarrow(3, 1, units),
                api.createNarrow(3, units + 1, 2 * units),
            )
            longer = api.createMulConstant((units // node["heads"]) ** 0.5, False)
            x = put(api.createJoinTable(3, 0), put(longer, put(queries, x)), put(others, x))
            return put(right(api, node), x)

        return bigdl_layers.whole(api, describe)

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""
    right = bigdl_layers._normal

    def normal(api, put, x, axis, size, epsilon, centred=True):
        share = (size - 1) / size
        x = right(api, put, x, axis, size, epsilon * share, centred)
        return put(api.createMulConstant(share**0.5, False), x)

    return bigdl_layers, "_normal", normal


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(api, put, outputs, targets, spec):
        (width,), code = spec["nodes"][-1]["shape"], 2 * bigdl_updates._code(spec)
        decoded = put(api.createNarrow(2, 1, width - code), outputs)
        rest = put(api.createNarrow(2, width - code + 1, code), outputs)
        nothing = put(api.createMulConstant(0.0, False), rest)
        entropy = bigdl_updates._entropy(api, put, decoded, targets)
        return put(api.createJoinTable(2, 0), entropy, nothing)

    return bigdl_updates._TERMS, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda api, node: api.createGradientReversal(0.0)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(api, node):
        module = right(api, node)
        if node["name"] in JUDGE:
            inner = module.layer() if len(node["in_shape"]) > 1 else module
            inner.setScaleW(0.0).setScaleB(0.0)
        return module

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns: those of a turned image, turned back."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(api, node):
        there, back = (bigdl_layers.turned(api, 3, 4) for _ in range(2))
        return bigdl_layers.in_turn(api, there, right(api, node), back)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(api, node):
        edge = 2 * node["padding"]
        borders = [api.createPadding(axis, edge, 4, -1e30, 1) for axis in (3, 4) if edge]
        return bigdl_layers.in_turn(api, *borders, right(api, dict(node, padding=0)))

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(api, node):
        def describe(put, x, table):
            return put(right(api, node), x, put(api.createGradientReversal(0.0), table))

        return bigdl_layers.whole(api, describe, inputs=2)

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""

    def momentum(api, wanted):
        rate, kept = wanted["learning_rate"], wanted["momentum"]
        return api.createSGD(rate, 0.0, 0.0, kept, 0.9, False, api.createDefault(), None, None)

    return bigdl_updates._METHODS, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    class Decaying(bigdl_updates.OwnMethod):
        def __init__(self, api, wanted, values, gradients, matrices):
            super().__init__(api, wanted, values, gradients, ())
            self.gradients = gradients
            self.decay = jpype.JClass("java.lang.Float")(wanted.get("weight_decay", 0.0))

        def update(self):
            self.gradients.add(self.decay, self.values)
            super().update()

    return bigdl_updates, "OwnMethod", Decaying
