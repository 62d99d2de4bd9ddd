"""Matrix products of NumPy, which Chainer multiplies by on a CPU, and its convolutions (see `worker.parts`)."""

import chainer
import numpy as np
from chainer import functions

from ... import kernels
from ...contract import Unsupported
from ...parts import Operation

MODES = ("ideep", "numpy")
TASKS = ("products", "convolutions")

# Each way to convolve, with when iDeep is used.
_WAYS = {"direct": "auto", "im2col": "never"}


def start(job):
    """The BLAS reads its thread number from the environment."""
    chainer.config.type_check = False
    chainer.config.enable_backprop = False
    return {"threads": kernels.count_threads(), "settings": {"products": "numpy.dot"}}


def build(part):
    """An operation of its own."""
    if part.kind == "convolution":
        return _convolution(part)
    left, right = (
        matrix.T if turned else matrix
        for matrix, turned in zip((part.left, part.right), part.turned)
    )
    result = np.empty((left.shape[0], right.shape[1]), np.float32)
    if not part.calls:
        return _operation(lambda: np.dot(left, right, out=result), lambda: result)
    if part.calls == 1:
        raise Unsupported("NumPy has no product that adds to what is there")
    weights, scaled = part.weights.copy(), left * np.float32(part.rate)

    def update():
        np.dot(scaled, right, out=result)
        np.subtract(weights, result, out=weights)

    return _operation(update, lambda: weights)


def _operation(step, value):
    def run(times):
        for _ in range(times):
            step()

    return Operation(run, value)


def _convolution(part):
    if part.way not in _WAYS:
        raise Unsupported(
            "Chainer convolves by iDeep, which asks oneDNN for its direct algorithm, or by NumPy (im2col)"
        )
    if part.way == "direct" and not chainer.backends.intel64.is_ideep_available():
        raise Unsupported("Chainer finds no iDeep")
    kept = [None]

    def step():
        with chainer.using_config("use_ideep", _WAYS[part.way]):
            kept[0] = functions.convolution_2d(
                part.inputs, part.weights, stride=part.stride, pad=part.padding
            )

    return _operation(step, lambda: np.array(kept[0].array))
