"""ViT-tiny in JAX.

python jax_vit-tiny.py vit-tiny THREADS < commands
"""

import jax
import jax.numpy as jnp
import loops
import numpy as np

UNITS, HEADS, BLOCKS, STEPS, BATCH = 192, 3, 12, 197, 8
random = np.random.default_rng(0)


def normal(deviation, *shape):
    return jnp.array(random.normal(0, deviation, shape), jnp.float32)


def dense(features, units):
    return {"w": normal(features**-0.5, features, units), "b": jnp.zeros(units)}


def scales():
    return {"w": jnp.ones(UNITS), "b": jnp.zeros(UNITS)}


def block():
    return {
        "norm1": scales(),
        "qkv": dense(UNITS, 3 * UNITS),
        "projection": dense(UNITS, UNITS),
        "norm2": scales(),
        "wide": dense(UNITS, 4 * UNITS),
        "narrow": dense(4 * UNITS, UNITS),
    }


parameters = {
    "patches": dense(16 * 16 * 3, UNITS),
    "token": jnp.zeros((1, 1, UNITS)),
    "positions": normal(0.02, STEPS, UNITS),
    "blocks": [block() for _ in range(BLOCKS)],
    "norm": scales(),
    "head": dense(UNITS, 1000),
}
inputs = normal(1, BATCH, 224, 224, 3)
labels = jnp.array(random.integers(0, 1000, BATCH))


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def norm(layer, x):
    return jax.nn.standardize(x, epsilon=1e-6) * layer["w"] + layer["b"]


def attend(layer, x):
    q, k, v = jnp.split(apply(layer["qkv"], x).reshape(BATCH, STEPS, 3 * HEADS, -1), 3, 2)
    y = jax.nn.dot_product_attention(q, k, v)
    return apply(layer["projection"], y.reshape(BATCH, STEPS, UNITS))


def compute_loss(parameters, inputs, labels):
    # A patch does not overlap another one: its convolution is a product.
    patches = inputs.reshape(BATCH, 14, 16, 14, 16, 3).swapaxes(2, 3).reshape(BATCH, 196, -1)
    x = apply(parameters["patches"], patches)
    token = jnp.broadcast_to(parameters["token"], (BATCH, 1, UNITS))
    x = jnp.concatenate([token, x], 1) + parameters["positions"]
    for layer in parameters["blocks"]:
        x = x + attend(layer, norm(layer["norm1"], x))
        hidden = jax.nn.gelu(apply(layer["wide"], norm(layer["norm2"], x)), approximate=False)
        x = x + apply(layer["narrow"], hidden)
    logits = apply(parameters["head"], norm(parameters["norm"], x)[:, 0])
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


loops.jax(parameters, compute_loss, inputs, labels)
