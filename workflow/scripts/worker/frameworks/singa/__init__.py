"""Apache SINGA 3.0: its automatic differentiation, with our own operators where its wheel lacks a part, on a CPU.

`singa.repair` mends what its wheel cannot do as it comes.
"""

import numpy as np
import singa
from singa import autograd, device, tensor
from singa import singa_wrap as core

from ... import kernels
from . import layers
from . import repair as singa_repair

MODES = ("eager",)
# The sigmoid gates side by side.
LAYOUT = {"sequences": "steps first", "gates": "ifog"}
KERNELS = "openblas:singa"
# Layers that SINGA lacks on CPUs: what is timed is ours, made of its primitives.
OURS = ("channel_shuffle", "concat", "grouped_conv", "local_response_norm", "lstm", "rnn")
REASONS = {
    "gpu": "the wheel of SINGA is built without CUDA",
    "adadelta": "SINGA 3.0 has no optimiser but SGD",
    "rmsprop": "SINGA 3.0 has no optimiser but SGD",
    "adam": "SINGA 3.0 has no optimiser but SGD",
    "adamw": "SINGA 3.0 has no optimiser but SGD",
    "gelu": "SINGA 3.0 has no error function, of which an exact GELU is made",
}


def versions():
    """Returns the versions of SINGA and of the BLAS in its wheel."""
    return {
        "framework_version": singa.__version__,
        "blas": kernels.describe_openblas() + "; oneDNN for images",
    }


def build(job):
    """Returns a trainer of the specification. oneDNN reads its thread number from the environment."""
    autograd.training = True
    inputs, kind = job.inputs, job.spec["input"]["kind"]
    if kind == "tokens":
        # There is no look-up with a right gradient, so words are rows of an identity matrix, as in SINGA's examples.
        inputs = np.eye(job.spec["input"]["vocabulary"], dtype=np.float32)[inputs]
    # Sequences are matrices of (steps x batch, features).
    return _Trainer(job, inputs if kind == "image" else inputs.reshape(-1, inputs.shape[-1]))


class _Trainer(object):
    def __init__(self, job, inputs):
        self.spec, self.layout = job.spec, job.layout
        self.trained = {name: _tensor(job.take(name), trained=True) for name in job.layout.names}
        self.inputs, self.labels = _tensor(inputs), _answers(job.labels)
        self.layers = [LAYERS[node["op"]](self, node) for node in job.spec["nodes"]]
        self.rate = job.learning_rate
        self.parameters = sum(value.size() for value in self.trained.values())
        self.threads = kernels.count_threads()
        ours = sorted({node["op"] for node in job.spec["nodes"]}.intersection(OURS))
        self.settings = {
            "embedding": "product with one-hot rows",
            "operators of ours, forward and backward": ", ".join(ours) or "none",
            "repaired": "arrays of NumPy and lists of tensors, which the wheel cannot pass, go by their addresses",
        }

    def run(self, steps):
        for _ in range(steps):
            loss = _Loss(self.labels)(self.logits())[0]
            for value, gradient in autograd.backward(loss):
                core.Axpy(-self.rate, gradient.data, value.data)
        device.get_default_device().Sync()
        return float(singa_repair.view(loss.data)[0])

    def logits(self):
        values = {"input": self.inputs}
        for node, layer in zip(self.spec["nodes"], self.layers):
            values[node["name"]] = layer(*[values[name] for name in node["inputs"]])
        return values[node["name"]]

    def weights(self, names=None):
        names = self.trained if names is None else names
        return {
            name: self.layout.leave(name, singa_repair.view(self.trained[name].data))
            for name in names
        }

    def own(self, node, *roles):
        """Returns the parameters of a node that have one of these roles, in their order."""
        names = [node["name"] + "/" + role for role in roles]
        return [self.trained[name] for name in names if name in self.trained]


def _tensor(values, trained=False):
    made = singa_repair.empty(*values.shape)
    singa_repair.view(made)[:] = np.ascontiguousarray(values, np.float32).reshape(-1)
    return tensor.Tensor(
        data=made, device=device.get_default_device(), requires_grad=trained, stores_grad=trained
    )


def _answers(labels):
    return _tensor(labels.reshape(-1).astype(np.float32)).data.AsType(core.kInt)


class _Dense(autograd.Operator):
    """Computes x w + b at once, without the gradient of the batch, which SINGA's own product would compute."""

    def forward(self, x, w, b=None):
        self.kept = x, w
        y = core.Mult(x, w)
        if b is not None:
            core.AddRow(b, y)
        return y

    def backward(self, dy):
        x, w = self.kept
        dx = None if layers.is_data(self) else core.Mult(dy, core.DefaultTranspose(w))
        found = dx, core.Mult(core.DefaultTranspose(x), dy), core.Sum(dy, 0)
        return found[: len(self.src)]


class _Lstm(autograd.Operator):
    """Computes an LSTM's outputs (steps x batch, units) from the products of its inputs (steps x batch, 4 units)."""

    def __init__(self, steps, units):
        super(_Lstm, self).__init__()
        self.steps, self.units = steps, units

    def forward(self, products, recurrent):
        self.recurrent, units = recurrent, self.units
        batch = products.shape()[0] // self.steps
        outputs = singa_repair.empty(self.steps * batch, units)
        self.kept, output, cell = [], None, None
        for step in range(self.steps):
            gates = core.SliceOn(products, step * batch, (step + 1) * batch, 0)
            if step:
                core.MultWithScale(1.0, output, recurrent, 1.0, gates)
            i, f, o = [
                core.Sigmoid(core.SliceOn(gates, k * units, (k + 1) * units, 1)) for k in range(3)
            ]
            g = core.Tanh(core.SliceOn(gates, 3 * units, 4 * units, 1))
            before, cell = cell, core.__mul__(i, g)
            if step:
                cell += core.__mul__(f, before)
            squashed = core.Tanh(cell)
            self.kept.append((output, before, i, f, o, g, squashed))
            output = core.__mul__(o, squashed)
            core.CopyDataToFrom(outputs, output, batch * units, step * batch * units, 0)
        return outputs

    def backward(self, d_outputs):
        units, batch = self.units, d_outputs.shape()[0] // self.steps
        d_products = singa_repair.empty(self.steps * batch, 4 * units)
        d_recurrent = singa_repair.filled(0.0, units, 4 * units)
        turned = core.DefaultTranspose(self.recurrent)
        d_output, d_cell, none = None, None, singa_repair.filled(0.0, batch, units)
        for step in reversed(range(self.steps)):
            output, before, i, f, o, g, squashed = self.kept[step]
            arriving = core.SliceOn(d_outputs, step * batch, (step + 1) * batch, 0)
            if d_output is not None:
                arriving += d_output
            own_cell = core.__mul__(
                core.__mul__(arriving, o), layers.one_minus(core.Square(squashed))
            )
            if d_cell is not None:
                own_cell += d_cell
            parts = [
                core.__mul__(core.__mul__(own_cell, g), _slope(i)),
                core.__mul__(core.__mul__(own_cell, before), _slope(f)) if step else none,
                core.__mul__(core.__mul__(arriving, squashed), _slope(o)),
                core.__mul__(core.__mul__(own_cell, i), layers.one_minus(core.Square(g))),
            ]
            gates = singa_repair.joined(parts)
            core.CopyDataToFrom(d_products, gates, batch * 4 * units, step * batch * 4 * units, 0)
            if step:
                core.MultWithScale(1.0, core.DefaultTranspose(output), gates, 1.0, d_recurrent)
                d_output, d_cell = core.Mult(gates, turned), core.__mul__(own_cell, f)
        return d_products, d_recurrent


def _slope(y):
    return core.__mul__(y, layers.one_minus(y))


class _Loss(autograd.Operator):
    """Computes the mean cross-entropy of the softmax; SINGA's own divides by a function that its wheel lacks."""

    def __init__(self, labels):
        super(_Loss, self).__init__()
        self.labels = labels

    def forward(self, x):
        self.likelihoods = core.SoftMax(x)
        return core.MultFloat(
            core.SumAll(core.CrossEntropyFwd(self.likelihoods, self.labels)), 1.0 / x.shape()[0]
        )

    def backward(self, dy=1.0):
        return core.MultFloat(
            core.SoftmaxCrossEntropyBwd(self.likelihoods, self.labels), dy / self.labels.Size()
        )


def _dense(trainer, node):
    arrays = trainer.own(node, "weight", "bias")
    return lambda x: _Dense()(x, *arrays)[0]


def _global_average_pool(trainer, node):
    window = [node["in_shape"][1:], [1, 1], [0, 0]]
    handle = layers.once(lambda x: core.PoolingHandle(x, *(window + [False])))
    return lambda x: autograd.flatten(autograd.pooling_2d(handle(x), x))


def _batch_norm(trainer, node):
    handle = layers.once(lambda x: core.BatchNormHandle(0.1, x))
    arrays = trainer.own(node, "gamma", "beta")
    arrays += [_tensor(fill(node["shape"][:1], np.float32)) for fill in (np.zeros, np.ones)]
    return lambda x: autograd.batchnorm_2d(handle(x), x, *arrays)


def _lstm(trainer, node):
    steps = node["in_shape"][0]
    entry, recurrent = trainer.own(node, "input", "bias"), trainer.own(node, "recurrent")
    return lambda x: _Lstm(steps, node["units"])(_Dense()(x, *entry)[0], *recurrent)[0]


LAYERS = {
    "dense": _dense,
    "conv": layers.conv,
    "grouped_conv": layers.grouped_conv,
    "max_pool": layers.pool,
    "avg_pool": layers.pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda trainer, node: autograd.flatten,
    "batch_norm": _batch_norm,
    "relu": lambda trainer, node: autograd.relu,
    "sigmoid": lambda trainer, node: autograd.sigmoid,
    "add": lambda trainer, node: autograd.add,
    "concat": layers.concat,
    "channel_shuffle": layers.channel_shuffle,
    "local_response_norm": layers.local_response_norm,
    "embedding": _dense,
    "lstm": _lstm,
    "rnn": layers.rnn(_Dense),
}
