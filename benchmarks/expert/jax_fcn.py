"""FCN-5, FCN-8, feed-forward networks and an autoencoder for MNIST in JAX.

python jax_fcn.py {fcn5,fcn8,ffn-shallow,ffn-deep,autoencoder} THREADS < commands
"""

import sys

import jax
import jax.numpy as jnp
import loops
import numpy as np

SIZES = loops.dense(sys.argv[1])
random = np.random.default_rng(0)
parameters = [
    {"w": jnp.array(random.uniform(-1, 1, (m, n)) * (3 / m) ** 0.5, jnp.float32), "b": jnp.zeros(n)}
    for m, n, _ in SIZES
]
inputs = jnp.array(random.uniform(-1, 1, (64, SIZES[0][0])), jnp.float32)


def apply(parameters, x):
    for layer, (*_, bent) in zip(parameters, SIZES, strict=True):
        x = x @ layer["w"] + layer["b"]
        x = jax.nn.sigmoid(x) if bent else x
    return x


def classify(parameters, inputs, labels):
    logits = apply(parameters, inputs)
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


def give_back(parameters, inputs, targets):
    logits = apply(parameters, inputs)
    return jnp.mean(jax.nn.softplus(logits) - targets * logits)


if sys.argv[1] == "autoencoder":
    loops.jax(parameters, give_back, inputs, (inputs + 1) / 2)
else:
    labels = jnp.array(random.integers(0, SIZES[-1][1], 64))
    loops.jax(parameters, classify, inputs, labels)
