"""LSTM-32 and LSTM-64 in JAX.

python jax_lstm.py {lstm32,lstm64} THREADS < commands
"""

import sys

import jax
import jax.numpy as jnp
import loops
import numpy as np

STEPS = {"lstm32": 32, "lstm64": 64}[sys.argv[1]]
random = np.random.default_rng(0)


def uniform(*shape):
    return jnp.array(random.uniform(-1, 1, shape) * (3 / shape[0]) ** 0.5, jnp.float32)


parameters = {
    "embedding": jnp.array(random.uniform(-1, 1, (10000, 256)), jnp.float32),
    "lstm": [
        {"input": uniform(256, 1024), "recurrent": uniform(256, 1024), "b": jnp.zeros(1024)}
        for _ in range(2)
    ],
    "classifier": {"w": uniform(256, 10000), "b": jnp.zeros(10000)},
}
inputs, labels = (jnp.array(random.integers(0, 10000, (STEPS, 128))) for _ in range(2))


def run_lstm(layer, values):
    def cell(state, product):
        output, memory = state
        i, f, g, o = jnp.split(product + output @ layer["recurrent"], 4, axis=1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        output = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (output, memory), output

    start = jnp.zeros((values.shape[1], 256))
    return jax.lax.scan(cell, (start, start), apply(layer["input"], layer["b"], values))[1]


def apply(weight, bias, values):
    """A product of rows: XLA takes long for a product of three dimensions on CPUs."""
    rows = values.reshape(-1, values.shape[-1]) @ weight + bias
    return rows.reshape(*values.shape[:-1], -1)


def compute_loss(parameters, inputs, labels):
    values = parameters["embedding"][inputs]
    for layer in parameters["lstm"]:
        values = run_lstm(layer, values)
    classifier = parameters["classifier"]
    logits = values.reshape(-1, 256) @ classifier["w"] + classifier["b"]
    chosen = jnp.take_along_axis(logits, labels.reshape(-1, 1), 1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, 1) - chosen)


loops.jax(parameters, compute_loss, inputs, labels)
