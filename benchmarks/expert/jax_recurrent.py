"""RNN-32, GRU-32, LSTM-32 and LSTM-64 in JAX.

python jax_recurrent.py {rnn32,gru32,lstm32,lstm64} THREADS < commands
"""

import sys

import jax
import jax.numpy as jnp
import loops
import numpy as np

KIND, STEPS = sys.argv[1][:-2], int(sys.argv[1][-2:])
WIDTH = 256 * {"rnn": 1, "gru": 3, "lstm": 4}[KIND]
random = np.random.default_rng(0)


def uniform(*shape):
    return jnp.array(random.uniform(-1, 1, shape) * (3 / shape[0]) ** 0.5, jnp.float32)


parameters = {
    "embedding": jnp.array(random.uniform(-1, 1, (10000, 256)), jnp.float32),
    "recurrent": [
        {"input": uniform(256, WIDTH), "recurrent": uniform(256, WIDTH), "b": jnp.zeros(WIDTH)}
        for _ in range(2)
    ],
    "classifier": {"w": uniform(256, 10000), "b": jnp.zeros(10000)},
}
inputs, labels = (jnp.array(random.integers(0, 10000, (STEPS, 128))) for _ in range(2))


def rnn(recurrent, output, product):
    output = jnp.tanh(product + output @ recurrent)
    return output, output


def gru(recurrent, output, product):
    r, z, n = jnp.split(product, 3, axis=1)
    own_r, own_z, own_n = jnp.split(output @ recurrent, 3, axis=1)
    n = jnp.tanh(n + jax.nn.sigmoid(r + own_r) * own_n)
    z = jax.nn.sigmoid(z + own_z)
    output = n + z * (output - n)
    return output, output


def lstm(recurrent, state, product):
    output, memory = state
    i, f, g, o = jnp.split(product + output @ recurrent, 4, axis=1)
    memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
    output = jax.nn.sigmoid(o) * jnp.tanh(memory)
    return (output, memory), output


CELL = {"rnn": rnn, "gru": gru, "lstm": lstm}[KIND]


def recur(layer, values):
    def step(state, product):
        return CELL(layer["recurrent"], state, product)

    start = jnp.zeros((values.shape[1], 256))
    start = (start, start) if KIND == "lstm" else start
    return jax.lax.scan(step, start, apply(layer["input"], layer["b"], values))[1]


def apply(weight, bias, values):
    """A product of rows: XLA takes long for a product of three dimensions on CPUs."""
    rows = values.reshape(-1, values.shape[-1]) @ weight + bias
    return rows.reshape(*values.shape[:-1], -1)


def compute_loss(parameters, inputs, labels):
    values = parameters["embedding"][inputs]
    for layer in parameters["recurrent"]:
        values = recur(layer, values)
    classifier = parameters["classifier"]
    logits = values.reshape(-1, 256) @ classifier["w"] + classifier["b"]
    chosen = jnp.take_along_axis(logits, labels.reshape(-1, 1), 1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, 1) - chosen)


loops.jax(parameters, compute_loss, inputs, labels)
