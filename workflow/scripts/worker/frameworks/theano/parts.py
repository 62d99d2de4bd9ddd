"""Matrix products and convolutions of Theano, each a compiled function (see `worker.parts`)."""

import ctypes

import numpy as np
import theano
from theano import tensor
from theano.tensor import nnet
from theano.tensor.nnet import conv

from ...contract import Unsupported
from ...parts import Operation

TASKS = ("products", "convolutions")


def start(job):
    """Theano reads its thread numbers from the environment."""
    if not theano.config.cxx:
        raise Unsupported("Theano finds no C++ compiler: it needs g++ when it runs")
    threads = ctypes.CDLL("libgomp.so.1").omp_get_max_threads() if theano.config.openmp else 1
    return {"threads": threads, "settings": {"called": "one compiled function each"}}


def build(part):
    """An operation of its own."""
    if part.kind == "convolution":
        return _convolution(part)
    left, right = (
        theano.shared(matrix).T if turned else theano.shared(matrix)
        for matrix, turned in zip((part.left, part.right), part.turned)
    )
    product, rate = tensor.dot(left, right), theano.shared(np.float32(part.rate))
    if not part.calls:
        return _operation(_shared(2), product)
    weights = theano.shared(part.weights)
    if part.calls == 1:
        return _operation(weights, weights - rate * product, "Gemm")
    gradient = _shared(2)
    multiply = theano.function([], updates=[(gradient, product)])
    descend = theano.function([], updates=[(weights, weights - rate * gradient)])

    def run(times):
        for _ in range(times):
            multiply()
            descend()

    return Operation(run, weights.get_value)


def _shared(dimensions):
    return theano.shared(np.zeros((1,) * dimensions, np.float32))


def _operation(target, expression, wanted=""):
    """Writes an expression into a shared variable, by an operator whose name has `wanted` in it."""
    step = theano.function([], updates=[(target, expression)])
    if not any(wanted in str(node.op) for node in step.maker.fgraph.toposort()):
        raise Unsupported("Theano makes more than one call of it")

    def run(times):
        for _ in range(times):
            step()

    return Operation(run, target.get_value)


def _convolution(part):
    images, weights = theano.shared(part.inputs), theano.shared(part.weights)
    shapes, steps = (part.inputs.shape, part.weights.shape), (part.stride,) * 2
    if part.way == "im2col":
        found = nnet.conv2d(
            *(images, weights) + shapes,
            border_mode=(part.padding,) * 2,
            subsample=steps,
            filter_flip=False,
        )
    elif part.way == "direct":
        # Theano's oldest, loops over the images, which must bring their own edges.
        edge = part.padding
        padded = np.pad(part.inputs, [(0, 0), (0, 0), (edge, edge), (edge, edge)], "constant")
        images.set_value(padded)
        turned = theano.shared(np.ascontiguousarray(part.weights[:, :, ::-1, ::-1]))
        found = conv.conv2d(images, turned, padded.shape, shapes[1], "valid", steps)
    else:
        raise Unsupported("Theano's convolutions by FFT and Winograd are those of GPUs")
    return _operation(_shared(4), found)
