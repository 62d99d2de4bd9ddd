"""LeNet-5, a convolutional autoencoder and a deconvolutional network for MNIST in JAX, with channels last.

python jax_conv.py {lenet,autoencoder-conv,deconv} THREADS < commands
"""

import functools
import sys

import jax
import jax.numpy as jnp
import loops
import numpy as np

random = np.random.default_rng(0)


def layer(*shape, bias=True):
    weight = jnp.array(random.normal(0, np.prod(shape[:-1]) ** -0.5, shape), jnp.float32)
    return {"w": weight, "b": jnp.zeros(shape[-1])} if bias else {"w": weight}


def scales(width):
    return {"w": jnp.ones(width), "b": jnp.zeros(width)}


def convolve(layer, x, padding):
    around, orders = ((padding,) * 2,) * 2, ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(x, layer["w"], (1, 1), around, dimension_numbers=orders)
    return x + layer["b"]


def views(x):
    """The corners of all squares of 2 x 2. XLA's own way back through a window is slow on CPUs."""
    return [x[:, row::2, column::2] for row, column in np.ndindex(2, 2)]


def lenet(parameters, x):
    for layer in parameters["convolutions"]:
        x = sum(views(jax.nn.sigmoid(convolve(layer, x, 0)))) / 4
    x = x.reshape(len(x), -1)
    for layer in parameters["dense"][:-1]:
        x = jax.nn.sigmoid(x @ layer["w"] + layer["b"])
    return x @ parameters["dense"][-1]["w"] + parameters["dense"][-1]["b"]


def autoencoder(parameters, x):
    for layer in parameters["narrower"]:
        x = jax.nn.relu(convolve(layer, x, 1))
        if x.shape[1] % 2:
            x = jnp.pad(x, [(0, 0), (1, 0), (1, 0), (0, 0)], constant_values=-jnp.inf)
        x = functools.reduce(jnp.maximum, views(x))
    for layer, padding in zip(parameters["wider"], (1, 1, 0), strict=True):
        x = jax.nn.relu(convolve(layer, x, padding)).repeat(2, 1).repeat(2, 2)
    return convolve(parameters["last"], x, 1).reshape(len(x), -1)


def spread(weight, x, size):
    """A transposed convolution with a stride of 2 and a padding of 1: a product, whose squares of 2 x 2 are added up.

    XLA's own convolution of an image with zeros between takes long on CPUs. Weights are (in, kernel, kernel, out).
    """
    batch, rows, columns, channels = x.shape
    kernel, out = weight.shape[2:]
    # A kernel of 3 x 3 has zeros where one of 4 x 4 has a last row.
    edge = [(0, 0)] * 3 + [(0, 4 - kernel)] * 2 + [(0, 0)]
    squares = x.reshape(-1, channels) @ weight.reshape(channels, -1)
    squares = jnp.pad(squares.reshape(batch, rows, columns, kernel, kernel, out), edge)
    squares = squares.reshape(batch, rows, columns, 2, 2, 2, 2, out)
    whole = sum(
        jnp.pad(
            squares[:, :, :, down, :, along],
            [(0, 0), (down, 1 - down), (along, 1 - along), (0, 0), (0, 0), (0, 0)],
        )
        for down, along in np.ndindex(2, 2)
    )
    whole = whole.swapaxes(2, 3).reshape(batch, 2 * rows + 2, 2 * columns + 2, out)
    return whole[:, 1 : 1 + size, 1 : 1 + size]


def deconv(parameters, codes):
    """Of an image of one pixel, the first transposed convolution is a product."""
    x = (codes @ parameters["first"]["w"]).reshape(-1, 4, 4, 256)
    statistics = []
    for number, layer in enumerate(parameters["norms"]):
        x = spread(parameters["spread"][number - 1]["w"], x, 7 * number) if number else x
        mean = x.mean((0, 1, 2))
        variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
        statistics.append((mean, variance))
        scale = jax.lax.rsqrt(variance + 1e-5) * layer["w"]
        x = jax.nn.relu((x - mean) * scale + layer["b"])
    x = spread(parameters["last"]["w"], x, 28) + parameters["bias"]
    return x.reshape(len(x), -1), statistics


def classify(parameters, inputs, labels):
    logits = lenet(parameters, inputs)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1))


def give_back(parameters, inputs, targets):
    logits = autoencoder(parameters, inputs)
    return jnp.mean(jax.nn.softplus(logits) - targets * logits)


def draw(parameters, codes, targets):
    made, statistics = deconv(parameters, codes)
    return jnp.mean(jnp.square(made - targets)), statistics


def uniform(start, *shape):
    return jnp.array(random.uniform(start, 1, shape), jnp.float32)


if sys.argv[1] == "lenet":
    parameters = {
        "convolutions": [layer(5, 5, 1, 6), layer(5, 5, 6, 16)],
        "dense": [layer(400, 120), layer(120, 84), layer(84, 10)],
    }
    labels = jnp.array(random.integers(0, 10, 64))
    loops.jax(parameters, classify, uniform(-1, 64, 32, 32, 1), labels)
elif sys.argv[1] == "deconv":
    parameters = {
        "first": layer(100, 4 * 4 * 256, bias=False),
        "spread": [layer(256, 3, 3, 128, bias=False), layer(128, 4, 4, 64, bias=False)],
        "norms": [scales(width) for width in (256, 128, 64)],
        "last": layer(64, 4, 4, 1, bias=False),
        "bias": jnp.zeros(1),
    }
    loops.jax(parameters, draw, uniform(-1, 64, 100), uniform(0, 64, 784))
else:
    parameters = {
        "narrower": [layer(3, 3, *sizes) for sizes in ((1, 16), (16, 8), (8, 8))],
        "wider": [layer(3, 3, *sizes) for sizes in ((8, 8), (8, 8), (8, 16))],
        "last": layer(3, 3, 16, 1),
    }
    loops.jax(parameters, give_back, uniform(-1, 64, 28, 28, 1), uniform(0, 64, 784))
