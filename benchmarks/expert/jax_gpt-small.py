"""GPT-small in JAX.

python jax_gpt-small.py gpt-small THREADS < commands
"""

import jax
import jax.numpy as jnp
import loops
import numpy as np

STEPS, WORDS, UNITS, HEADS, BLOCKS, BATCH = 256, 65, 384, 6, 6, 8
random = np.random.default_rng(0)


def normal(deviation, *shape):
    return jnp.array(random.normal(0, deviation, shape), jnp.float32)


def block():
    return {
        "norm1": jnp.ones(UNITS),
        "qkv": normal(0.05, UNITS, 3 * UNITS),
        "projection": normal(0.05, UNITS, UNITS),
        "norm2": jnp.ones(UNITS),
        "wide": normal(0.05, UNITS, 4 * UNITS),
        "narrow": normal(0.025, 4 * UNITS, UNITS),
    }


parameters = {
    "words": normal(0.02, WORDS, UNITS),
    "positions": normal(0.02, STEPS, UNITS),
    "blocks": [block() for _ in range(BLOCKS)],
    "norm": jnp.ones(UNITS),
}
inputs, labels = (jnp.array(random.integers(0, WORDS, (BATCH, STEPS))) for _ in range(2))


def norm(x, weight):
    return jax.nn.standardize(x, epsilon=1e-5) * weight


def attend(layer, x):
    q, k, v = jnp.split((x @ layer["qkv"]).reshape(BATCH, STEPS, 3 * HEADS, -1), 3, 2)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return y.reshape(BATCH, STEPS, UNITS) @ layer["projection"]


def compute_loss(parameters, inputs, labels):
    x = parameters["words"][inputs] + parameters["positions"]
    for layer in parameters["blocks"]:
        x = x + attend(layer, norm(x, layer["norm1"]))
        x = x + (
            jax.nn.gelu(norm(x, layer["norm2"]) @ layer["wide"], approximate=False)
            @ layer["narrow"]
        )
    logits = norm(x, parameters["norm"]) @ parameters["words"].T
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


loops.jax(parameters, compute_loss, inputs, labels)
