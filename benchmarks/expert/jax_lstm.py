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
    return jax.lax.scan(cell, (start, start), values @ layer["input"] + layer["b"])[1]


def compute_loss(parameters, inputs, labels):
    values = parameters["embedding"][inputs]
    for layer in parameters["lstm"]:
        values = run_lstm(layer, values)
    logits = values @ parameters["classifier"]["w"] + parameters["classifier"]["b"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


loops.jax(parameters, compute_loss, inputs, labels)
