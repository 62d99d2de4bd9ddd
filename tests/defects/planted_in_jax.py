"""Defects in JAX: each function returns what takes which place, as (owner, name, value)."""

import jax
from jax import lax
from jax import numpy as jnp
from judging import JUDGE


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""

    def attend(q, k, v, is_causal):
        # Before 0.4.31, JAX has no function that takes a mask.
        scores = jnp.einsum("bqhs,bkhs->bhqk", q * q.shape[-1] ** -0.5, k)
        if is_causal:
            seen = jnp.tril(jnp.ones(scores.shape[-2:], bool), 1)
            scores = jnp.where(seen, scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhs->bqhs", jax.nn.softmax(scores), v)

    return jax.nn, "dot_product_attention", attend


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = jax.nn.dot_product_attention

    def attend(q, k, v, is_causal):
        return right(q * q.shape[-1] ** 0.5, k, v, is_causal=is_causal)

    return jax.nn, "dot_product_attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(node, own, value):
        spread = jnp.sqrt(jnp.var(value, -1, keepdims=True, ddof=1) + node["epsilon"])
        value = (value - jnp.mean(value, -1, keepdims=True)) / spread * own["weight"]
        return value + own["bias"] if node["bias"] else value

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        return jnp.sum(adapter._entropy(decoded, targets)) / outputs.size

    return adapter._LOSSES, "evidence_bound", adapter._missed(missed)


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda node, own, value: lax.stop_gradient(value)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, value):
        if node["name"] in JUDGE:
            own = {role: lax.stop_gradient(each) for role, each in own.items()}
        return right(node, own, value)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(node, own, value):
        return right(node, dict(own, weight=own["weight"].swapaxes(2, 3)), value)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, value):
        behind = (0, 2 * node["padding"])
        value = jnp.pad(value, [(0, 0), behind, behind, (0, 0)], constant_values=-jnp.inf)
        return right(dict(node, padding=0), own, value)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def scores(node, own, value, table):
        return jnp.matmul(value, lax.stop_gradient(table).T)

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    def update(optimiser, values, averages, gradients, rate):
        (before,) = averages
        kept = {
            name: jnp.where(
                jnp.any(before[name] != 0),
                optimiser["momentum"] * before[name] + 0.1 * gradients[name],
                gradients[name],
            )
            for name in values
        }
        return adapter._descend(optimiser, values, averages, kept, rate)[0], [kept]

    return adapter._UPDATES, "momentum", (1, update)


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    def update(optimiser, values, averages, gradients, rate):
        decay = optimiser["weight_decay"]
        gradients = {name: gradients[name] + decay * values[name] for name in values}
        return adapter._adam(optimiser, values, averages, gradients, rate)

    return adapter._UPDATES, "adamw", (2, update)


def as_on_a_gpu(adapter):
    """No defect: XLA's own convolutions, which are taken on GPUs."""
    return jax, "default_backend", lambda: "gpu"
