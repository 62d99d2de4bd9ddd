"""Theano: one compiled function a step, its parameters, gradients and updates in one optimised graph.

What was chosen here, and by which measured ratios: docs/adapters/theano.md.
"""

import ctypes

import numpy as np
import theano
from theano import tensor
from theano.tensor import nnet
from theano.tensor.nnet import bn
from theano.tensor.signal.pool import pool_2d

from .. import kernels, specification
from ..contract import Unsupported

MODES = ("graph",)
LAYOUT = {"sequences": "steps first"}
KERNELS = "openblas:numpy"
REASONS = {"gpu": "the GPU part of Theano (libgpuarray) is in no package here"}


def versions():
    """Versions of Theano and of its compiler, and the BLAS that its products are linked with."""
    config = theano.config
    return {
        "framework_version": theano.__version__,
        "build": "{} {}".format(config.cxx, theano.gof.cmodule.gcc_version()),
        "blas": kernels.describe_openblas(),
    }


def build(job):
    """A trainer of the specification. Theano reads its thread numbers from the environment."""
    if not theano.config.cxx:
        raise Unsupported("Theano finds no C++ compiler: it needs g++ when it runs")
    return _Trainer(job)


class _Trainer(object):
    settings = {"layout": "channels first, time first", "loop": "scan"}

    def __init__(self, job):
        self._shared = {}
        # A result that is read in place of a whole parameter, so that only its own rows get a gradient.
        self._read = {}
        values = {"input": _share("input", job.inputs)}
        for node in job.spec["nodes"]:
            own = {}
            for role, name in job.own(node).items():
                own[role] = self._shared[name] = _share(name, job.take(name))
            value = LAYERS[node["op"]](node, own, *[values[name] for name in node["inputs"]])
            values[node["name"]] = value
            if node["op"] == "embedding":
                self._read[node["name"] + "/weight"] = value.owner.inputs[0]
        answers = _share("labels", job.labels.flatten())
        likelihoods = nnet.softmax(_rows(value))
        loss = nnet.categorical_crossentropy(likelihoods, answers).mean()
        self._train = theano.function([], loss, updates=self._updates(loss, job.learning_rate))
        self.parameters = sum(
            shared.get_value(borrow=True).size for shared in self._shared.values()
        )
        self.threads = (
            ctypes.CDLL("libgomp.so.1").omp_get_max_threads() if theano.config.openmp else 1
        )

    def run(self, steps):
        for _ in range(steps):
            loss = self._train()
        # On a CPU a function returns when everything is done.
        return float(loss)

    def weights(self, names=None):
        wanted = self._shared if names is None else names
        return {name: self._shared[name].get_value() for name in wanted}

    def _updates(self, loss, rate):
        # A variable and not a constant: constants stand in the C code, which another rate would compile again.
        rate = theano.shared(np.float32(rate), name="rate")
        names = sorted(self._shared)
        gradients = tensor.grad(loss, [self._read.get(name, self._shared[name]) for name in names])
        updates = []
        for name, gradient in zip(names, gradients):
            shared = self._shared[name]
            if name in self._read:
                updates.append((shared, tensor.inc_subtensor(self._read[name], -rate * gradient)))
            else:
                updates.append((shared, shared - rate * gradient))
        return updates


def _share(name, values):
    return theano.shared(np.ascontiguousarray(values), name=name, borrow=True)


def _rows(value):
    return value if value.ndim == 2 else value.reshape((-1, value.shape[-1]), ndim=2)


def _dense(node, own, value):
    rows = tensor.dot(_rows(value), own["weight"])
    rows = rows + own["bias"] if node["bias"] else rows
    if value.ndim == 2:
        return rows
    return rows.reshape((value.shape[0], value.shape[1], node["units"]))


def _conv(node, own, value):
    value = nnet.conv2d(
        value,
        own["weight"],
        input_shape=(None,) + tuple(node["in_shape"]),
        filter_shape=(node["channels"], node["in_shape"][0], node["kernel"], node["kernel"]),
        border_mode=(node["padding"],) * 2,
        subsample=(node["stride"],) * 2,
        filter_flip=False,
    )
    return value + own["bias"].dimshuffle("x", 0, "x", "x") if node["bias"] else value


def _max_pool(node, own, value):
    window, steps, edge = ((node[extent],) * 2 for extent in ("kernel", "stride", "padding"))
    return pool_2d(value, ws=window, stride=steps, pad=edge, ignore_border=True, mode="max")


def _batch_norm(node, own, value):
    # The float32 next to 1e-5 lies below it, and Theano takes none below it.
    epsilon = np.nextafter(np.float32(specification.BATCH_NORM_EPSILON), np.float32(1))
    return bn.batch_normalization_train(value, own["gamma"], own["beta"], "spatial", epsilon)[0]


def _embedding(node, own, value):
    rows = own["weight"][value.flatten()]
    return rows.reshape((value.shape[0], value.shape[1], node["units"]))


def _lstm(node, own, value):
    units = node["units"]
    # The product with the inputs needs no loop: one large product in place of one for each step.
    products = tensor.dot(_rows(value), own["input"]) + own["bias"]
    products = products.reshape((value.shape[0], value.shape[1], 4 * units))

    def step(given, output, cell, recurrent):
        sums = given + tensor.dot(output, recurrent)
        i, f, g, o = (sums[:, gate * units : (gate + 1) * units] for gate in range(4))
        cell = nnet.sigmoid(f) * cell + nnet.sigmoid(i) * tensor.tanh(g)
        return nnet.sigmoid(o) * tensor.tanh(cell), cell

    zero = tensor.zeros((value.shape[1], units), dtype="float32")
    (outputs, _), _ = theano.scan(step, [products], [zero, zero], [own["recurrent"]], strict=True)
    return outputs


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: value.mean((2, 3)),
    "flatten": lambda node, own, value: value.flatten(2),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: nnet.relu(value),
    "sigmoid": lambda node, own, value: nnet.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": _embedding,
    "lstm": _lstm,
}
