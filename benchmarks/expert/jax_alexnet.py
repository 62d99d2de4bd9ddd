"""AlexNet in JAX, with images whose channels are last.

python jax_alexnet.py alexnet THREADS < commands
"""

import functools

import jax
import jax.numpy as jnp
import loops
import numpy as np

# Channels before and behind, size, stride and padding of each convolution, and whether a pooling follows.
CONVOLUTIONS = [
    (3, 96, 11, 4, 2, True),
    (96, 256, 5, 1, 2, True),
    (256, 384, 3, 1, 1, False),
    (384, 256, 3, 1, 1, False),
    (256, 256, 3, 1, 1, True),
]
UNITS = (256 * 6 * 6, 4096, 4096, 1000)
random = np.random.default_rng(0)


def layer(*shape):
    deviation = np.prod(shape[:-1]) ** -0.5
    weight = random.normal(0, deviation, shape)
    return {"w": jnp.array(weight, jnp.float32), "b": jnp.zeros(shape[-1])}


parameters = {
    "convolutions": [
        layer(size, size, before, behind) for before, behind, size, *_ in CONVOLUTIONS
    ],
    "dense": [layer(*sizes) for sizes in zip(UNITS, UNITS[1:], strict=False)],
}
inputs = jnp.array(random.uniform(-1, 1, (16, 224, 224, 3)), jnp.float32)
labels = jnp.array(random.integers(0, 1000, 16))


def pool(x):
    """The greatest of nine shifted views: XLA's own way back through a window is slow on CPUs."""
    rows, columns = ((size - 3) // 2 * 2 + 1 for size in x.shape[1:3])
    views = [x[:, i : i + rows : 2, j : j + columns : 2] for i, j in np.ndindex(3, 3)]
    return functools.reduce(jnp.maximum, views)


def compute_loss(parameters, x, labels):
    for weights, (*_, stride, padding, pooled) in zip(
        parameters["convolutions"], CONVOLUTIONS, strict=True
    ):
        x = jax.lax.conv_general_dilated(
            *(x, weights["w"], (stride,) * 2, ((padding,) * 2,) * 2),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        x = jax.nn.relu(x + weights["b"])
        x = pool(x) if pooled else x
    x = x.reshape(len(x), -1)
    for weights in parameters["dense"][:-1]:
        x = jax.nn.relu(x @ weights["w"] + weights["b"])
    logits = x @ parameters["dense"][-1]["w"] + parameters["dense"][-1]["b"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1))


loops.jax(parameters, compute_loss, inputs, labels)
