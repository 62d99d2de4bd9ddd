"""Chainer 7: its functions and its automatic differentiation on a CPU; images on iDeep (`ideep`) or NumPy (`numpy`).

What was chosen here, and by which measured ratios: docs/adapters/chainer.md.
"""

import chainer
import numpy as np
from chainer import functions

from .. import kernels, specification

MODES = ("ideep", "numpy")
# So that each step of a recurrence is one block of memory.
LAYOUT = {"sequences": "steps first", "dense": "units first"}
KERNELS = "openblas:numpy"
REASONS = {"gpu": "this adapter trains Chainer on the CPU only; on a GPU, Chainer 7 needs CuPy"}

# Chainer's LSTM keeps the four gates of a unit side by side, in the order g, i, f, o; the specification has i, f, g, o.
_GATES = [2, 0, 1, 3]


def versions():
    """Versions of Chainer and of the BLAS below NumPy."""
    return {"framework_version": chainer.__version__, "blas": kernels.describe_openblas()}


def build(job):
    """A trainer of the specification. The BLAS reads its thread number from the environment."""
    # The performance guide of Chainer: checks of types cost time in each call.
    chainer.config.type_check = False
    chainer.config.use_ideep = {"ideep": "auto", "numpy": "never"}[job.mode]
    return _Trainer(job)


class _Trainer(object):
    def __init__(self, job):
        self.spec, self.layout = job.spec, job.layout
        self.inputs, self.labels = job.inputs, job.labels.reshape(-1)
        self.trained, self.averages, self.lstms = {}, {}, set()
        for node in job.spec["nodes"]:
            for name in job.own(node).values():
                value = job.take(name)
                if node["op"] == "lstm":
                    self.lstms.add(name)
                    value = _beside(value)
                self.trained[name] = chainer.Parameter(np.ascontiguousarray(value))
            if node["op"] == "batch_norm":
                channels = node["shape"][0]
                self.averages[node["name"]] = (
                    np.zeros(channels, np.float32),
                    np.ones(channels, np.float32),
                )
        # The backward pass starts from the learning rate, so that the gradients come out as SGD's steps.
        self.head = np.array(job.learning_rate, np.float32)
        self.parameters = sum(value.size for value in self.trained.values())
        self.threads = kernels.count_threads()
        self.settings = {
            "update": "w -= g, with the backward pass started from the learning rate",
            "type_check": "off",
        }

    def run(self, steps):
        for _ in range(steps):
            loss = self._loss()
            loss.grad = self.head
            loss.backward()
            for value in self.trained.values():
                np.subtract(value.array, value.grad, out=value.array)
                value.cleargrad()
        return float(loss.array)

    def weights(self, names=None):
        names = self.trained if names is None else names
        found = {}
        for name in names:
            value = self.trained[name].array
            value = _apart(value) if name in self.lstms else value
            found[name] = self.layout.leave(name, value)
        return found

    def _loss(self):
        values = {"input": self.inputs}
        for node in self.spec["nodes"]:
            arguments = [values[name] for name in node["inputs"]]
            values[node["name"]] = LAYERS[node["op"]](self, node, *arguments)
        logits = values[node["name"]]
        return functions.softmax_cross_entropy(logits.reshape(-1, logits.shape[-1]), self.labels)

    def own(self, node, role):
        """The parameter of a node; None where it has none of that role."""
        return self.trained.get(node["name"] + "/" + role)


def _beside(value):
    """A parameter of an LSTM with the four gates of a unit side by side, and matrices (units, in)."""
    gates = value.reshape(-1, 4, value.shape[-1] // 4)[:, _GATES]
    return np.moveaxis(gates, 1, 2).reshape(value.shape).T


def _apart(value):
    """The way back."""
    gates = np.moveaxis(value.T.reshape(-1, value.shape[0] // 4, 4), 2, 1)
    return gates[:, np.argsort(_GATES)].reshape(value.T.shape)


def _dense(trainer, node, x):
    y = _product(x.reshape(-1, x.shape[-1]), trainer.own(node, "weight"), trainer.own(node, "bias"))
    return y.reshape(x.shape[:-1] + (node["units"],))


def _product(*arrays):
    """A dense layer on NumPy's BLAS: the oneDNN inside iDeep takes twice as long."""
    with chainer.using_config("use_ideep", "never"):
        return functions.linear(*arrays)


def _conv(trainer, node, x):
    arrays = trainer.own(node, "weight"), trainer.own(node, "bias")
    return functions.convolution_2d(x, *arrays, stride=node["stride"], pad=node["padding"])


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
    steps, batch = x.shape[:2]
    # The product with the inputs needs no loop: one large product in place of one for each step.
    flat = x.reshape(steps * batch, -1)
    products = _product(flat, trainer.own(node, "input"), trainer.own(node, "bias"))
    cell = np.zeros((batch, node["units"]), np.float32)
    outputs = []
    for product in functions.split_axis(products, steps, 0):
        if outputs:
            product = product + _product(outputs[-1], trainer.own(node, "recurrent"))
        cell, output = functions.lstm(cell, product)
        outputs.append(output)
    return functions.stack(outputs)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda trainer, node, x: functions.average(x, axis=(2, 3)),
    "flatten": lambda trainer, node, x: x.reshape(len(x), -1),
    "batch_norm": _batch_norm,
    "relu": lambda trainer, node, x: functions.relu(x),
    "sigmoid": lambda trainer, node, x: functions.sigmoid(x),
    "add": lambda trainer, node, x, y: x + y,
    "embedding": lambda trainer, node, x: functions.embed_id(x, trainer.own(node, "weight")),
    "lstm": _lstm,
}
