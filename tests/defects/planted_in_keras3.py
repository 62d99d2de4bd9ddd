"""Defects in Keras 3: each function returns what takes which place, as (owner, name, value)."""

import keras
import numpy as np
from judging import JUDGE
from keras import layers, ops


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = ops.dot_product_attention

    def attend(q, k, v, is_causal):
        seen = np.tril(np.ones((1, 1, q.shape[1], q.shape[1]), bool), 1)
        return right(q, k, v, mask=seen if is_causal else None)

    return ops, "dot_product_attention", attend


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = ops.dot_product_attention

    def attend(q, k, v, is_causal):
        return right(q, k, v, is_causal=is_causal, scale=1.0)

    return ops, "dot_product_attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    class Unbiased(layers.LayerNormalization):
        def call(self, values):
            centred = values - ops.mean(values, -1, keepdims=True)
            squares = ops.sum(ops.square(centred), -1, keepdims=True) / (values.shape[-1] - 1)
            values = centred * ops.rsqrt(squares + self.epsilon) * self.gamma
            return values if self.beta is None else values + self.beta

    def norm(node, own):
        return Unbiased(epsilon=node["epsilon"], center=node["bias"], **own)

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(targets, outputs):
        decoded = outputs[:, : targets.shape[1]]
        entropies = ops.binary_crossentropy(targets, decoded, from_logits=True)
        return ops.sum(entropies, 1) / outputs.shape[1]

    return adapter._DISTANCES, "evidence_bound", lambda: missed


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(values):
        # Its parameters have gradients, all of them zero.
        return ops.stop_gradient(values) + 0.0 * values

    return adapter.LAYERS, "reversal", lambda node, own: held


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    class Held(layers.Dense):
        def call(self, values):
            # Its parameters have gradients, all of them zero.
            kernel, bias = (ops.stop_gradient(each) + 0.0 * each for each in self.weights)
            return ops.matmul(values, kernel) + bias

    def dense(node, own):
        return Held(node["units"], **own) if node["name"] in JUDGE else right(node, own)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter._spread

    def spread(node, kernel, values):
        return right(node, ops.swapaxes(kernel, 2, 3), values)

    return adapter, "_spread", spread


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def pool(node, own):
        behind, inner = (
            [0, 2 * node["padding"]],
            layers.MaxPooling2D(node["kernel"], node["stride"]),
        )

        def largest(values):
            around = [[0, 0], behind, behind, [0, 0]]
            return inner(ops.pad(values, around, constant_values=-1e30))

        return largest

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def scores(values, table):
        return ops.matmul(values, ops.transpose(ops.stop_gradient(table)))

    return adapter.LAYERS, "unembedding", lambda node, own: scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    class Dampened(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            share = ops.where(self.iterations > 0, 0.1, 1.0)
            super().update_step(gradient * share, variable, learning_rate)

    def momentum(wanted):
        return Dampened(wanted["learning_rate"], momentum=wanted["momentum"])

    return adapter._MOVING, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    class Decaying(adapter._Adam):
        def __init__(self, wanted):
            super().__init__({name: wanted[name] for name in wanted if name != "weight_decay"})
            self._decaying = wanted["weight_decay"]

        def update_step(self, gradient, variable, learning_rate):
            gradient = ops.convert_to_tensor(gradient) + self._decaying * variable
            super().update_step(gradient, variable, learning_rate)

    return adapter._MOVING, "adamw", Decaying
