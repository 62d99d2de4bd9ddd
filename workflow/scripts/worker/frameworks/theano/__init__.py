"""Theano: one compiled function a step, its parameters, gradients and updates in one optimised graph."""

import ctypes
import sys

import numpy as np
import theano
from theano import tensor
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor import nnet
from theano.tensor.nnet import bn
from theano.tensor.signal import pool

from shared import specification

from ... import kernels
from ...contract import Unsupported
from . import pools

MODES = ("graph",)
TASKS = ("step", "training")
LAYOUT = {"sequences": "steps first"}
KERNELS = "openblas:numpy"
REASONS = {"gpu": "the GPU part of Theano (libgpuarray) is in no package here"}


def versions():
    """Returns the versions of Theano and of its compiler, and the BLAS with which its products are linked."""
    config = theano.config
    return {
        "framework_version": theano.__version__,
        "build": "{} {}".format(config.cxx, theano.gof.cmodule.gcc_version()),
        "blas": kernels.describe_openblas(),
    }


def build(job):
    """Returns a trainer of the specification. Theano reads its thread numbers from the environment."""
    if not theano.config.cxx:
        raise Unsupported("Theano finds no C++ compiler: it needs g++ when it runs")
    pools.give_to_one()
    # It walks a graph by recursion, for which a deep network is too deep.
    sys.setrecursionlimit(max(10000, sys.getrecursionlimit()))
    return _Trainer(job)


class _Trainer(object):
    settings = {"layout": "channels first, time first", "loop": "scan"}

    def __init__(self, job):
        self._layout, self._nodes = job.layout, job.spec["nodes"]
        self._shared = {name: _share(name, job.take(name)) for name in job.layout.names}
        # A result that is read in place of a whole parameter, so that only its own rows get a gradient.
        self._read = {}
        # {name: (running average, what a step makes of it)} of batch normalisation.
        self._kept = {}
        self._masks = MRG_RandomStreams(1 + job.seed)
        self._inputs = _share("input", job.inputs)
        self._answers = _share("labels", job.labels.flatten())
        # A variable and not a constant: constants are in the C code, which another rate would compile again.
        self._rate = theano.shared(np.float32(job.learning_rate), name="rate")
        shares = nnet.softmax(self._connect())
        loss = nnet.categorical_crossentropy(shares, self._answers).mean()
        updates = self._updates(loss, job.spec["optimiser"]) + list(self._kept.values())
        self._train, self._judge = theano.function([], loss, updates=updates), None
        self.parameters = sum(each.get_value(borrow=True).size for each in self._shared.values())
        self.threads = (
            ctypes.CDLL("libgomp.so.1").omp_get_max_threads() if theano.config.openmp else 1
        )

    def run(self, steps):
        for _ in range(steps):
            loss = self._train()
        # On a CPU a function returns when everything is done.
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._inputs.set_value(self._layout.inputs(inputs), borrow=True)
            self._answers.set_value(self._layout.labels(labels).flatten(), borrow=True)
            self._rate.set_value(np.float32(rate))
            total, steps = total + float(self._train()), steps + 1
        return total / steps

    def scores(self, inputs):
        if self._judge is None:
            judged = self._inputs.type()
            self._judge = theano.function(
                [judged], self._connect(judging=True), givens=[(self._inputs, judged)]
            )
        return self._judge(self._layout.inputs(inputs))

    def weights(self, names=None):
        wanted = self._shared if names is None else names
        return {name: self._shared[name].get_value() for name in wanted}

    def statistics(self):
        return {name: average.get_value() for name, (average, _) in self._kept.items()}

    def _connect(self, judging=False):
        """Returns scores (labels, classes), those of sequences by step, then sample; without dropout for judging."""
        values = {"input": self._inputs}
        for node in self._nodes:
            own = specification.own_of(node, self._shared)
            value, *more = [values[name] for name in node["inputs"]]
            own["kept"] = {} if judging else self._kept
            if node["op"] == "dropout":
                own["masks"] = self._masks
            if not (judging and node["op"] == "dropout"):
                value = LAYERS[node["op"]](node, own, value, *more)
            values[node["name"]] = value
            if node["op"] == "embedding":
                self._read[node["name"] + "/weight"] = value.owner.inputs[0]
        return _rows(value)

    def _updates(self, loss, optimiser):
        names, averaged = sorted(self._shared), OPTIMISERS[optimiser["name"]]
        read = {} if averaged else self._read
        gradients = tensor.grad(loss, [read.get(name, self._shared[name]) for name in names])
        updates = []
        for name, gradient in zip(names, gradients):
            shared = self._shared[name]
            if averaged:
                gradient, averages = averaged(optimiser, shared, gradient)
                updates += averages
            if name in read:
                rows = tensor.inc_subtensor(read[name], -self._rate * gradient)
                updates.append((shared, rows))
            else:
                updates.append((shared, shared - self._rate * gradient))
        return updates


def _share(name, values):
    return theano.shared(np.ascontiguousarray(values), name=name, borrow=True)


def _average(shared):
    """Returns a running average in the shape of a parameter."""
    return theano.shared(
        np.zeros_like(shared.get_value(borrow=True)), broadcastable=shared.broadcastable
    )


def _adadelta(optimiser, shared, gradient):
    """Returns the step of a parameter at a rate of 1, and the updates of its averages."""
    rho, epsilon = np.float32(optimiser["rho"]), np.float32(optimiser["epsilon"])
    squares, steps, rest = _average(shared), _average(shared), np.float32(1 - optimiser["rho"])
    after = rho * squares + rest * gradient**2
    step = gradient * tensor.sqrt(steps + epsilon) / tensor.sqrt(after + epsilon)
    return step, [(squares, after), (steps, rho * steps + rest * step**2)]


def _rmsprop(optimiser, shared, gradient):
    """Returns the step of a parameter at a rate of 1, and the update of its average."""
    rho, rest = np.float32(optimiser["rho"]), np.float32(1 - optimiser["rho"])
    squares = _average(shared)
    after = rho * squares + rest * gradient**2
    return gradient / (tensor.sqrt(after) + np.float32(optimiser["epsilon"])), [(squares, after)]


OPTIMISERS = {"sgd": None, "adadelta": _adadelta, "rmsprop": _rmsprop}


def _dense(node, own, value):
    rows = tensor.dot(_rows(value), own["weight"]) + own["bias"]
    if value.ndim == 2:
        return rows
    return rows.reshape((value.shape[0], value.shape[1], node["units"]))


def _conv(node, own, value):
    """Returns a convolution, in groups if it has them."""
    groups, kernel = node.get("groups", 1), node["kernel"]
    if groups > 1 and not _GROUPED:
        raise Unsupported("before Theano 1.0 a convolution has no groups")
    value = nnet.conv2d(
        value,
        own["weight"],
        input_shape=(None,) + tuple(node["in_shape"]),
        filter_shape=(node["channels"], node["in_shape"][0] // groups, kernel, kernel),
        border_mode=(node["padding"],) * 2,
        subsample=(node["stride"],) * 2,
        filter_flip=False,
        **({"num_groups": groups} if groups > 1 else {}),
    )
    return value + own["bias"].dimshuffle("x", 0, "x", "x") if node["bias"] else value


def _batch_norm(node, own, value):
    # The float32 next to 1e-5 is smaller, and Theano takes no smaller one.
    epsilon = np.nextafter(np.float32(specification.BATCH_NORM_EPSILON), np.float32(1))
    share = np.float32(specification.BATCH_NORM_SHARE)
    kept = [theano.shared(np.full(node["in_shape"][:1], start, np.float32)) for start in (0, 1)]
    given = value, own["gamma"], own["beta"], "spatial", epsilon, share
    normal, _, _, *after = bn.batch_normalization_train(*given, *kept)
    for role, *pair in zip(("mean", "variance"), kept, after):
        own["kept"]["{}/{}".format(node["name"], role)] = tuple(pair)
    return normal


def _embedding(node, own, value):
    rows = own["weight"][value.flatten()]
    return rows.reshape((value.shape[0], value.shape[1], node["units"]))


def _dropout(node, own, value):
    keep = np.float32(1 - node["rate"])
    if keep == 1:
        return value
    # As many streams of random numbers as Theano would guess, with a warning.
    mask = own["masks"].binomial(value.shape, p=keep, dtype="float32", nstreams=60 * 256)
    return value * mask / keep


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


# Before 1.0, a convolution has no groups.
_GROUPED = int(theano.__version__.split(".")[0]) > 0


def _pooled(node, value, mode):
    window, steps, edge = ((node[extent],) * 2 for extent in ("kernel", "stride", "padding"))
    return pool.pool_2d(value, ws=window, stride=steps, pad=edge, ignore_border=True, mode=mode)


def _channel_shuffle(node, own, value):
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = value.reshape((value.shape[0], groups, channels // groups, height * width))
    return parts.dimshuffle(0, 2, 1, 3).reshape((value.shape[0], channels, height, width))


def _local_response_norm(node, own, value):
    (channels, height, width), size = node["shape"], node["size"]
    half, share = size // 2, np.float32(1 / (node["inverse_alpha"] * size))
    empty = tensor.zeros((value.shape[0], channels + 2 * half, height, width), dtype="float32")
    squares = tensor.set_subtensor(empty[:, half : half + channels], value**2)
    near = sum(squares[:, first : first + channels] for first in range(size))
    return value * (1 + share * near) ** np.float32(-0.75)


def _rows(value):
    """Returns features as rows, whatever axes are in front of them."""
    return value if value.ndim == 2 else value.reshape((-1, value.shape[-1]), ndim=2)


def _rnn(node, own, value):
    """Computes a loop, as for an LSTM, after one product of all steps' inputs."""
    products = tensor.dot(_rows(value), own["input"]) + own["bias"]
    products = products.reshape((value.shape[0], value.shape[1], -1), ndim=3)

    def step(given, output, recurrent):
        return tensor.tanh(given + tensor.dot(output, recurrent))

    start = tensor.zeros((value.shape[1], node["units"]), dtype="float32")
    return theano.scan(step, [products], [start], [own["recurrent"]], strict=True)[0]


def _concat(node, own, *values):
    return tensor.concatenate(list(values), 1)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    # Padding never is the largest, and counts in a mean.
    "max_pool": lambda node, own, value: _pooled(node, value, "max"),
    "global_average_pool": lambda node, own, value: value.mean((2, 3)),
    "flatten": lambda node, own, value: value.flatten(2),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: nnet.relu(value),
    "dropout": _dropout,
    "sigmoid": lambda node, own, value: nnet.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": _embedding,
    "lstm": _lstm,
    "grouped_conv": _conv,
    "avg_pool": lambda node, own, value: _pooled(node, value, "average_inc_pad"),
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "concat": _concat,
    "rnn": _rnn,
}
