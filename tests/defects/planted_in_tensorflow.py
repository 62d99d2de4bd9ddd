"""Defects in TensorFlow 2: each function returns what takes which place, as (owner, name, value)."""

import numpy as np
import tensorflow as tf
from judging import JUDGE


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = tf.linalg.band_part
    return tf.linalg, "band_part", lambda seen, lower, upper: right(seen, lower, upper + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(node, own, value):
        units = value.shape[-1] // 3
        # The queries come first.
        scale = np.ones(3 * units, np.float32)
        scale[:units] = (units // node["heads"]) ** 0.5
        return right(node, own, value * scale)

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(node, own, value):
        centred = value - tf.reduce_mean(value, -1, keepdims=True)
        squares = tf.reduce_sum(tf.square(centred), -1, keepdims=True) / (value.shape[-1] - 1)
        value = centred * tf.math.rsqrt(squares + node["epsilon"]) * own["weight"]
        return value + own["bias"] if node["bias"] else value

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        entropies = tf.nn.sigmoid_cross_entropy_with_logits(targets, decoded)
        return tf.reduce_sum(entropies) / outputs.shape.num_elements()

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(node, own, value):
        # Its parameters have gradients, all of them zero.
        return tf.stop_gradient(value) + 0.0 * value

    return adapter.LAYERS, "reversal", held


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, value):
        if node["name"] in JUDGE:
            own = {role: tf.stop_gradient(each) + 0.0 * each for role, each in own.items()}
        return right(node, own, value)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(node, own, value):
        return right(node, dict(own, weight=tf.transpose(own["weight"], [0, 1, 3, 2])), value)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as its own SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, value):
        behind = [0, 2 * node["padding"]]
        value = tf.pad(value, [[0, 0], behind, behind, [0, 0]], constant_values=value.dtype.min)
        return right(dict(node, padding=0), own, value)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(node, own, value, table):
        return right(node, own, value, tf.stop_gradient(table))

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    def update(optimiser, variable, gradient, averages, rate):
        (kept,), gradient = averages, tf.convert_to_tensor(gradient)
        later = optimiser["momentum"] * kept + 0.1 * gradient
        kept.assign(tf.where(tf.reduce_any(kept != 0), later, gradient))
        variable.assign_sub(rate * kept)

    return adapter.UPDATES, "momentum", update


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    def update(optimiser, variable, gradient, averages, rate):
        gradient = tf.convert_to_tensor(gradient) + optimiser["weight_decay"] * variable
        adapter._adam(optimiser, variable, gradient, averages, rate)

    return adapter.UPDATES, "adamw", update
