"""Matrix products and convolutions of JAX, each compiled by itself (see `worker.parts`)."""

import os

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from shared.operations import Operation, latest, repeated

from ...contract import Unsupported
from . import LAYERS

TASKS = ("products", "convolutions")


def start(job):
    """XLA does not tell the size of its pool; NPROC is where it reads it from."""
    return {"threads": int(os.environ["NPROC"]), "settings": {"compiler": "XLA"}}


def build(part):
    if part.kind == "convolution":
        return _convolution(part)
    left, right = jax.device_put(part.left), jax.device_put(part.right)
    # The axis of each factor over which is summed.
    axes = ((0 if part.turned[0] else 1,), (1 if part.turned[1] else 0,)), ((), ())

    def multiply(left, right):
        return lax.dot_general(left, right, axes)

    if not part.calls:
        return _operation(jax.jit(multiply), left, right)
    if part.calls == 1:
        update = jax.jit(lambda w, a, b: w - part.rate * multiply(a, b), donate_argnums=0)
        return _updates(lambda weights: update(weights, left, right), part.weights)
    product = jax.jit(multiply)
    descend = jax.jit(lambda weights, gradient: weights - part.rate * gradient, donate_argnums=0)
    return _updates(lambda weights: descend(weights, product(left, right)), part.weights)


def _operation(step, *arguments):
    # Without a wait, the next one would begin beside it.
    return latest(lambda: step(*arguments).block_until_ready(), np.array)


def _updates(step, weights):
    kept = [jnp.array(weights)]

    def update():
        kept[0] = step(kept[0])

    return repeated(update, lambda: np.array(kept[0]), lambda: kept[0].block_until_ready())


def _convolution(part):
    images, weights = jax.device_put(part.inputs), jax.device_put(part.weights)
    if part.way == "own choice":
        images, weights = images.transpose(0, 2, 3, 1), weights.transpose(2, 3, 1, 0)
        step = jax.jit(lambda x, w: LAYERS["conv"](part.node, {"weight": w}, x))
        made = _operation(step, images, weights)
        return Operation(made.run, lambda: made.value().transpose(0, 3, 1, 2))
    if part.way != "fft":
        raise Unsupported("XLA chooses the algorithm of a convolution by itself")
    around = [(0, 0), (0, 0)] + [(part.padding,) * 2] * 2
    extent = [each + 2 * part.padding for each in images.shape[2:]]
    rows, columns = (slice(None, part.stride * each, part.stride) for each in part.shape[2:])

    def transform(images, weights):
        """By whole images; a product for each frequency adds the channels up."""
        spectra = jnp.fft.rfft2(jnp.pad(images, around))
        kernels = jnp.fft.rfft2(weights, extent).conj()
        found = jnp.fft.irfft2(jnp.einsum("nchw,ochw->nohw", spectra, kernels), extent)
        return found[:, :, rows, columns]

    return _operation(jax.jit(transform), images, weights)
