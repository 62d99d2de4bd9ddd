"""Chainer 7: its functions and differentiation; images on iDeep (`ideep`), NumPy (`numpy`), or by CuPy (`cupy`)."""

import chainer
import numpy as np
from chainer import functions
from chainer.backends import cuda

from shared import specification

from ... import kernels, rounding
from ...contract import Unsupported

MODES = ("ideep", "numpy", "cupy")
TASKS = ("step", "training")
# So that each step of a recurrence is one block of memory.
LAYOUT = {"sequences": "steps first", "dense": "units first", "rnn": "units first"}
KERNELS = {"ideep": "openblas:numpy", "numpy": "openblas:numpy", "cupy": ""}
DEVICES = ("cpu", "gpu")
PRECISIONS = ("float32", "tf32")

# Chainer's LSTM keeps the four gates of a unit side by side, in the order g, i, f, o; the specification has i, f, g, o.
_GATES = [2, 0, 1, 3]


def versions():
    """Returns the versions of Chainer and of the BLAS of NumPy, or of CuPy."""
    known = {"framework_version": chainer.__version__}
    if cuda.available:
        return dict(known, build="CuPy {}".format(cuda.cupy.__version__))
    return dict(known, blas=kernels.describe_openblas())


def build(job):
    return _Trainer(job, _prepare(job))


def _prepare(job):
    """Settles how Chainer computes, and returns the module of its arrays. Variables set threads and CuPy's rounding."""
    on_gpu = job.mode == "cupy"
    if on_gpu != (job.device == "gpu"):
        raise Unsupported("Chainer computes on GPUs by CuPy alone, and CuPy on nothing else")
    # The performance guide of Chainer: checks of types cost time in each call.
    chainer.config.type_check = False
    chainer.config.use_ideep = "auto" if job.mode == "ideep" else "never"
    if on_gpu:
        try:
            cuda.check_cuda_available()
        except RuntimeError:
            raise Unsupported("Chainer {} finds no GPU".format(chainer.__version__))
        # cuDNN times its algorithms.
        chainer.config.autotune = True
        rounding.require(job.precision, _product_on_gpu)
    return cuda.cupy if on_gpu else np


def _product_on_gpu(left, right):
    return cuda.to_cpu(cuda.cupy.dot(cuda.to_gpu(left), cuda.to_gpu(right)))


class _Trainer(object):
    """A network of Chainer's functions, and the arrays that it trains."""

    def __init__(self, job, arrays):
        self.spec, self.layout, self.arrays = job.spec, job.layout, arrays
        self.place = cuda.to_gpu if job.device == "gpu" else np.asarray
        self.inputs, self.labels = self.place(job.inputs), self.place(job.labels.reshape(-1))
        self.trained, self.averages, self.lstms = {}, {}, set()
        for node in job.spec["nodes"]:
            for name in job.own(node).values():
                value = job.take(name)
                if node["op"] == "lstm":
                    self.lstms.add(name)
                    value = _beside(value)
                value = self.place(np.ascontiguousarray(value))
                self.trained[name] = chainer.Parameter(value)
            if node["op"] == "batch_norm":
                of = node["shape"][0], np.float32
                self.averages[node["name"]] = arrays.zeros(*of), arrays.ones(*of)
        # The backward pass starts from the learning rate, so that the gradients come out as SGD's steps.
        self.head = arrays.array(job.learning_rate, np.float32)
        self.parameters = sum(value.size for value in self.trained.values())
        self.threads = job.threads if job.device == "gpu" else kernels.count_threads()
        self.settings = {
            "update": "w -= g, with the backward pass started from the learning rate",
            "type_check": "off",
        }

    def run(self, steps):
        for _ in range(steps):
            loss = self._step(self.inputs, self.labels)
        # On a GPU, the loss is copied when all before it is done, the last update too.
        return float(loss.array)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self.head[...] = rate
            labels = self.place(self.layout.labels(labels).reshape(-1))
            loss = self._step(self.place(self.layout.inputs(inputs)), labels)
            total, steps = total + float(loss.array), steps + 1
        return total / steps

    def scores(self, inputs):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return cuda.to_cpu(self._logits(self.place(self.layout.inputs(inputs))).array)

    def weights(self, names=None):
        found = {}
        for name in self.trained if names is None else names:
            value = cuda.to_cpu(self.trained[name].array)
            value = _apart(value) if name in self.lstms else value
            found[name] = self.layout.leave(name, value)
        return found

    def statistics(self):
        return {
            "{}/{}".format(name, role): cuda.to_cpu(values)
            for name, both in self.averages.items()
            for role, values in zip(("mean", "variance"), both)
        }

    def _step(self, inputs, labels):
        """Takes a step, and returns its loss."""
        loss = functions.softmax_cross_entropy(self._logits(inputs), labels)
        loss.grad = self.head
        loss.backward()
        for value in self.trained.values():
            self.arrays.subtract(value.array, value.grad, out=value.array)
            value.cleargrad()
        return loss

    def _logits(self, inputs):
        """Returns the scores of all labels, (labels, classes); those of sequences by step, then sample."""
        values = {"input": inputs}
        for node in self.spec["nodes"]:
            arguments = [values[name] for name in node["inputs"]]
            values[node["name"]] = LAYERS[node["op"]](self, node, *arguments)
        logits = values[node["name"]]
        return logits.reshape(-1, logits.shape[-1])

    def own(self, node, role):
        """Returns a node's parameter of this role, or None."""
        return self.trained.get(node["name"] + "/" + role)


def _beside(value):
    """Returns an LSTM's parameter with the four gates of a unit side by side, and matrices (units, in)."""
    gates = value.reshape(-1, 4, value.shape[-1] // 4)[:, _GATES]
    return np.moveaxis(gates, 1, 2).reshape(value.shape).T


def _apart(value):
    """Undoes `_beside`."""
    gates = np.moveaxis(value.T.reshape(-1, value.shape[0] // 4, 4), 2, 1)
    return gates[:, np.argsort(_GATES)].reshape(value.T.shape)


def _dense(trainer, node, x):
    y = _product(x.reshape(-1, x.shape[-1]), trainer.own(node, "weight"), trainer.own(node, "bias"))
    return y.reshape(x.shape[:-1] + (node["units"],))


def _product(*arrays):
    """Computes a dense layer by NumPy's BLAS: the oneDNN inside iDeep takes twice as long."""
    with chainer.using_config("use_ideep", "never"):
        return functions.linear(*arrays)


def _conv(trainer, node, x):
    arrays = trainer.own(node, "weight"), trainer.own(node, "bias")
    sizes = {"stride": node["stride"], "pad": node["padding"], "groups": node.get("groups", 1)}
    return functions.convolution_2d(x, *arrays, **sizes)


def _avg_pool(trainer, node, x):
    return functions.average_pooling_2d(x, node["kernel"], node["stride"], node["padding"])


def _local_response_norm(trainer, node, x):
    alpha = 1 / (node["inverse_alpha"] * node["size"])
    return functions.local_response_normalization(x, node["size"], 1, alpha, 0.75)


def _channel_shuffle(trainer, node, x):
    batch, channels, height, width = x.shape
    parts = x.reshape(batch, node["groups"], -1, height, width).transpose(0, 2, 1, 3, 4)
    return parts.reshape(x.shape)


def _max_pool(trainer, node, x):
    return functions.max_pooling_2d(
        x, node["kernel"], node["stride"], node["padding"], cover_all=False
    )


def _batch_norm(trainer, node, x):
    mean, variance = trainer.averages[node["name"]]
    return functions.batch_normalization(
        x,
        trainer.own(node, "gamma"),
        trainer.own(node, "beta"),
        eps=specification.BATCH_NORM_EPSILON,
        running_mean=mean,
        running_var=variance,
    )


def _lstm(trainer, node, x):
    cell = trainer.arrays.zeros((x.shape[1], node["units"]), np.float32)
    outputs = []
    for product in _products(trainer, node, x):
        if outputs:
            product = product + _product(outputs[-1], trainer.own(node, "recurrent"))
        cell, output = functions.lstm(cell, product)
        outputs.append(output)
    return functions.stack(outputs)


def _rnn(trainer, node, x):
    outputs = []
    for product in _products(trainer, node, x):
        if outputs:
            product = product + _product(outputs[-1], trainer.own(node, "recurrent"))
        outputs.append(functions.tanh(product))
    return functions.stack(outputs)


def _products(trainer, node, x):
    """Yields each step's product with its inputs, from one large product."""
    flat = x.reshape(x.shape[0] * x.shape[1], -1)
    products = _product(flat, trainer.own(node, "input"), trainer.own(node, "bias"))
    return functions.split_axis(products, len(x), 0)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "grouped_conv": _conv,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "concat": lambda trainer, node, *values: functions.concat(values, 1),
    "global_average_pool": lambda trainer, node, x: functions.average(x, axis=(2, 3)),
    "flatten": lambda trainer, node, x: x.reshape(len(x), -1),
    "batch_norm": _batch_norm,
    "relu": lambda trainer, node, x: functions.relu(x),
    "sigmoid": lambda trainer, node, x: functions.sigmoid(x),
    "add": lambda trainer, node, x, y: x + y,
    "embedding": lambda trainer, node, x: functions.embed_id(x, trainer.own(node, "weight")),
    "lstm": _lstm,
    "rnn": _rnn,
}
