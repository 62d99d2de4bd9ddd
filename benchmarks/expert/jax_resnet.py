"""ResNet-50 in JAX, with the stride in the 3 x 3 convolution and images whose channels are last.

python jax_resnet.py resnet50 THREADS < commands
"""

import functools

import jax
import jax.numpy as jnp
import loops
import numpy as np

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
random = np.random.default_rng(0)


def convolution(size, before, behind):
    deviation = (2 / (size * size * before)) ** 0.5
    return {
        "w": jnp.array(random.normal(0, deviation, (size, size, before, behind)), jnp.float32),
        "gamma": jnp.ones(behind),
        "beta": jnp.zeros(behind),
    }


def block(before, width, first):
    made = [convolution(*sizes) for sizes in ((1, before, width), (3, width, width))]
    made.append(convolution(1, width, 4 * width))
    return [*made, convolution(1, before, 4 * width)] if first else made


def make():
    channels, made = 64, []
    for width, count, _ in STAGES:
        for number in range(count):
            made.append(block(channels, width, number == 0))
            channels = 4 * width
    head = {"w": jnp.array(random.normal(0, 0.02, (2048, 1000)), jnp.float32), "b": jnp.zeros(1000)}
    return {"stem": convolution(7, 3, 64), "blocks": made, "head": head}


def convolve(layer, x, statistics, stride=1):
    """Those of 1 x 1 are products of rows, which XLA does not make of them by itself."""
    size, _, channels, behind = layer["w"].shape
    if size == 1:
        x = x[:, ::stride, ::stride]
        x = (x.reshape(-1, channels) @ layer["w"][0, 0]).reshape(*x.shape[:3], behind)
    else:
        around, orders = ((size // 2,) * 2,) * 2, ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(
            x, layer["w"], (stride,) * 2, around, dimension_numbers=orders
        )
    # In one pass over the values, as Flax has it.
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
    statistics.append((mean, variance))
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * layer["gamma"]) + layer["beta"]


def pool(x):
    """The greatest of nine shifted views: XLA's own way back through a window is slow on CPUs."""
    x = jnp.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=-jnp.inf)
    views = [x[:, i : i + 111 : 2, j : j + 111 : 2] for i, j in np.ndindex(3, 3)]
    return functools.reduce(jnp.maximum, views)


def compute_loss(parameters, inputs, labels):
    statistics = []
    x = pool(jax.nn.relu(convolve(parameters["stem"], inputs, statistics, 2)))
    strides = [s if n == 0 else 1 for _, count, s in STAGES for n in range(count)]
    for layers, stride in zip(parameters["blocks"], strides, strict=True):
        shortcut = convolve(layers[3], x, statistics, stride) if len(layers) == 4 else x
        y = jax.nn.relu(convolve(layers[0], x, statistics))
        y = jax.nn.relu(convolve(layers[1], y, statistics, stride))
        x = jax.nn.relu(convolve(layers[2], y, statistics) + shortcut)
    logits = x.mean((1, 2)) @ parameters["head"]["w"] + parameters["head"]["b"]
    chances = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1)
    return -jnp.mean(chances), statistics


inputs = jnp.array(random.uniform(-1, 1, (16, 224, 224, 3)), jnp.float32)
labels = jnp.array(random.integers(0, 1000, 16))
loops.jax(make(), compute_loss, inputs, labels)
