"""ConvNeXt-tiny in JAX, without stochastic depth.

python jax_convnext-tiny.py convnext-tiny THREADS < commands
"""

import jax
import jax.numpy as jnp
import loops
import numpy as np

WIDTHS, BLOCKS, BATCH = (96, 192, 384, 768), (3, 3, 9, 3), 4
random = np.random.default_rng(0)


def normal(deviation, *shape):
    return jnp.array(random.normal(0, deviation, shape), jnp.float32)


def dense(features, units):
    return {"w": normal(features**-0.5, features, units), "b": jnp.zeros(units)}


def scales(width):
    return {"w": jnp.ones(width), "b": jnp.zeros(width)}


def block(width):
    return {
        "depthwise": {"w": normal(1 / 7, 7, 7, width), "b": jnp.zeros(width)},
        "norm": scales(width),
        "wide": dense(width, 4 * width),
        "narrow": dense(4 * width, width),
        "scale": jnp.full(width, 1e-6),
    }


def stage(before, size, width, count):
    return {
        "patches": dense(size * size * before, width),
        "blocks": [block(width) for _ in range(count)],
    }


parameters = {
    "stages": [
        stage(before, size, width, count)
        for before, size, width, count in zip(
            (3, *WIDTHS), (4, 2, 2, 2), WIDTHS, BLOCKS, strict=False
        )
    ],
    # Behind the patches of the first stage, and before those of all others.
    "norms": [scales(width) for width in WIDTHS[:1] + WIDTHS[:3]],
    "last": scales(WIDTHS[-1]),
    "head": dense(WIDTHS[-1], 1000),
}
inputs = normal(1, BATCH, 224, 224, 3)
labels = jnp.array(random.integers(0, 1000, BATCH))


def apply(layer, x):
    """A product of rows: XLA takes long for a product of more dimensions on CPUs."""
    return (x.reshape(-1, x.shape[-1]) @ layer["w"] + layer["b"]).reshape(*x.shape[:-1], -1)


def norm(layer, x):
    return jax.nn.standardize(x, epsilon=1e-6) * layer["w"] + layer["b"]


def embed(layer, size, x):
    """A patch does not overlap another one: its convolution is a product."""
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height // size, size, width // size, size, channels).swapaxes(2, 3)
    return apply(layer, x.reshape(batch, height // size, width // size, -1))


def views(x, height, width):
    """Shifted views of images with an edge of 3, one for each of the 7 x 7 weights."""
    x = jnp.pad(x, [(0, 0), (3, 3), (3, 3), (0, 0)])
    return [x[:, row : row + height, column : column + width] for row, column in np.ndindex(7, 7)]


def weigh(x, weights):
    """XLA makes one loop of this sum: its own convolution of groups is slow on CPUs."""
    return sum(
        view * row
        for view, row in zip(views(x, *x.shape[1:3]), weights.reshape(49, -1), strict=True)
    )


def depthwise(layer, x):
    return weigh(x, layer["w"]) + layer["b"]


def convolve(layer, x):
    y = norm(layer["norm"], depthwise(layer["depthwise"], x))
    y = jax.nn.gelu(apply(layer["wide"], y), approximate=False)
    return x + layer["scale"] * apply(layer["narrow"], y)


def compute_loss(parameters, inputs, labels):
    x = inputs
    for number, stage in enumerate(parameters["stages"]):
        if number:
            x = norm(parameters["norms"][number], x)
        x = embed(stage["patches"], 2 if number else 4, x)
        if not number:
            x = norm(parameters["norms"][0], x)
        for layer in stage["blocks"]:
            x = convolve(layer, x)
    logits = apply(parameters["head"], norm(parameters["last"], x.mean((1, 2))))
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


loops.jax(parameters, compute_loss, inputs, labels)
