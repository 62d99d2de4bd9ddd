"""Defects in TensorFlow 0.12 to 1.15: each function returns what takes which place, as (owner, name, value)."""

import numpy as np
import tensorflow as tf
from judging import JUDGE


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = tf.constant

    def constant(value, *types):
        # Of a mask, a step has the row of the next one.
        rows = isinstance(value, list) and isinstance(value[0], list)
        return right(value[1:] + value[-1:] if rows else value, *types)

    return tf, "constant", constant


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(node, own, value):
        units = adapter._shape(value)[-1] // 3
        # The queries come first.
        scale = np.ones(3 * units, np.float32)
        scale[:units] = (units // node["heads"]) ** 0.5
        return right(node, own, value * scale)

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(node, own, value):
        last, units = adapter._last_axis(value), adapter._shape(value)[-1]
        centred = value - tf.reduce_mean(value, last, True)
        squares = tf.reduce_sum(tf.square(centred), last, True) / (units - 1)
        value = centred * tf.rsqrt(squares + node["epsilon"]) * own["weight"]
        return value + own["bias"] if node["bias"] else value

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : adapter._shape(targets)[1]]
        size = np.prod(adapter._shape(outputs))
        return tf.reduce_sum(adapter._missed(decoded, targets)) / size

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
        # It is behind a ReLU.
        behind = [0, 2 * node["padding"]]
        value = tf.pad(value, [[0, 0], behind, behind, [0, 0]])
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

    def step(wanted, variable, gradient):
        kept, taken = adapter._average(variable), tf.Variable(0.0, trainable=False)
        share = 1.0 - 0.9 * tf.minimum(taken, 1.0)
        after = wanted["momentum"] * kept + share * tf.convert_to_tensor(gradient)
        with tf.control_dependencies([after]):
            counted = tf.assign(taken, taken + 1)
        return after, [tf.assign(kept, after), counted]

    return adapter._STEPS, "momentum", step


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    def step(wanted, variable, gradient):
        gradient = tf.convert_to_tensor(gradient) + wanted["weight_decay"] * variable
        return adapter._adam(wanted, variable, gradient)

    return adapter._STEPS, "adamw", step
