"""FCN-5 and FCN-8 in JAX.

python jax_fcn.py {fcn5,fcn8} THREADS < commands
"""

import sys

import jax
import jax.numpy as jnp
import loops
import numpy as np

sizes = [26752] + [2048] * {"fcn5": 3, "fcn8": 6}[sys.argv[1]] + [26752]
random = np.random.default_rng(0)
parameters = [
    {"w": jnp.array(random.uniform(-1, 1, (m, n)) * (3 / m) ** 0.5, jnp.float32), "b": jnp.zeros(n)}
    for m, n in zip(sizes, sizes[1:], strict=False)
]
inputs, labels = (
    jnp.array(random.uniform(-1, 1, (64, 26752)), jnp.float32),
    jnp.array(random.integers(0, 26752, 64)),
)


def compute_loss(parameters, inputs, labels):
    for layer in parameters[:-1]:
        inputs = jax.nn.sigmoid(inputs @ layer["w"] + layer["b"])
    logits = inputs @ parameters[-1]["w"] + parameters[-1]["b"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


loops.jax(parameters, compute_loss, inputs, labels)
