"""Apache SINGA 3.0: its automatic differentiation, with operators of our own where its wheel lacks a part, on a CPU.

What its wheel cannot do as it comes is mended in `singa_repair`. What was chosen, and why: docs/adapters/singa.md.
"""

import importlib

from .. import openblas
from . import Unsupported

KERNELS = openblas.find_kernels(lambda: importlib.import_module("singa"))

import numpy as np  # noqa: E402
import singa  # noqa: E402
from singa import autograd, device, tensor  # noqa: E402
from singa import singa_wrap as core  # noqa: E402

from .. import singa_repair  # noqa: E402

MODES = ("eager",)

# The sigmoid gates side by side, i, f, o, then g; the specification has i, f, g, o. Each order is the other's inverse.
_GATES = [0, 1, 3, 2]


def versions():
    """Versions of SINGA and of the BLAS in its wheel."""
    return {
        "framework_version": singa.__version__,
        "blas": openblas.describe() + "; oneDNN for images",
    }


def build(spec, weights, inputs, labels, mode, threads, device):
    """See the contract in `adapters/__init__.py`. oneDNN reads its thread number from the environment."""
    if device != "cpu":
        raise Unsupported("the wheel of SINGA is built without CUDA")
    for node in spec["nodes"]:
        if node["op"] not in _LAYERS:
            raise Unsupported("the SINGA adapter has no layer '{}'".format(node["op"]))
    autograd.training = True
    if spec["input"]["kind"] in ("tokens", "one_hot"):
        # Sequences are matrices of (steps x batch, features).
        inputs, labels = inputs.swapaxes(0, 1), labels.T
    if spec["input"]["kind"] == "tokens":
        # There is no look-up with a right gradient, so words are rows of an identity matrix, as in SINGA's examples.
        inputs = np.eye(spec["input"]["vocabulary"], dtype=np.float32)[inputs]
    if spec["input"]["kind"] != "image":
        inputs = inputs.reshape(-1, inputs.shape[-1])
    return _Trainer(spec, weights, inputs, labels.reshape(-1))


class _Trainer(object):
    frozen_parameters = 0

    def __init__(self, spec, weights, inputs, labels):
        self.spec = spec
        self.kinds = {node["name"]: node["op"] for node in spec["nodes"]}
        names = [entry["name"] for entry in spec["parameters"]]
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        self.trained = {
            name: _tensor(self._turned(name, weights.pop(name)), trained=True) for name in names
        }
        self.inputs, self.labels = (
            _tensor(inputs),
            _tensor(labels.astype(np.float32)).data.AsType(core.kInt),
        )
        self.layers = [_LAYERS[node["op"]](self, node) for node in spec["nodes"]]
        self.rate = spec["optimiser"]["learning_rate"]
        self.parameters = sum(value.size() for value in self.trained.values())
        self.threads = openblas.count_threads()
        self.settings = {
            "embedding": "product with one-hot rows",
            "lstm": "an operator made of SINGA's primitives",
            "kernels": KERNELS,
            "repaired": "arrays of NumPy and lists of tensors, which the wheel cannot pass, go by their addresses",
        }

    def run(self, steps):
        for _ in range(steps):
            values = {"input": self.inputs}
            for node, layer in zip(self.spec["nodes"], self.layers):
                values[node["name"]] = layer(*[values[name] for name in node["inputs"]])
            loss = _Loss(self.labels)(values[node["name"]])[0]
            del values
            for value, gradient in autograd.backward(loss):
                core.Axpy(-self.rate, gradient.data, value.data)
        device.get_default_device().Sync()
        return float(singa_repair.view(loss.data)[0])

    def weights(self, names=None):
        names = self.trained if names is None else names
        return {
            name: self._turned(
                name, singa_repair.view(self.trained[name].data).reshape(self.shapes[name])
            )
            for name in names
        }

    def own(self, node, *roles):
        """The parameters of a node that have one of these roles, in their order."""
        names = [node["name"] + "/" + role for role in roles]
        return [self.trained[name] for name in names if name in self.trained]

    def _turned(self, name, value):
        """From the neutral order of gates to that of `_Lstm`, or back; everything else is kept as it is."""
        if self.kinds[name.split("/")[0]] != "lstm":
            return value
        return value.reshape(-1, 4, value.shape[-1] // 4)[:, _GATES].reshape(value.shape)


def _tensor(values, trained=False):
    made = singa_repair.empty(*values.shape)
    singa_repair.view(made)[:] = np.ascontiguousarray(values, np.float32).reshape(-1)
    return tensor.Tensor(
        data=made, device=device.get_default_device(), requires_grad=trained, stores_grad=trained
    )


def _is_data(operator):
    """Whether the first argument of an operator is the batch, whose gradient nobody asks for."""
    return isinstance(operator.src[0][0], autograd.Dummy)


class _Dense(autograd.Operator):
    """x w + b in one, without the gradient of the batch, which SINGA's own product would compute."""

    def forward(self, x, w, b=None):
        self.kept = x, w
        y = core.Mult(x, w)
        if b is not None:
            core.AddRow(b, y)
        return y

    def backward(self, dy):
        x, w = self.kept
        dx = None if _is_data(self) else core.Mult(dy, core.DefaultTranspose(w))
        found = dx, core.Mult(core.DefaultTranspose(x), dy), core.Sum(dy, 0)
        return found[: len(self.src)]


class _Lstm(autograd.Operator):
    """Outputs (steps x batch, units) of an LSTM from the products of its inputs (steps x batch, 4 units)."""

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
        d_products, d_recurrent = (
            singa_repair.empty(self.steps * batch, 4 * units),
            singa_repair.empty(units, 4 * units),
        )
        d_recurrent.SetFloatValue(0.0)
        turned = core.DefaultTranspose(self.recurrent)
        d_output, d_cell = None, None
        for step in reversed(range(self.steps)):
            output, before, i, f, o, g, squashed = self.kept[step]
            arriving = core.SliceOn(d_outputs, step * batch, (step + 1) * batch, 0)
            if d_output is not None:
                arriving += d_output
            own_cell = core.__mul__(core.__mul__(arriving, o), _one_minus(core.Square(squashed)))
            if d_cell is not None:
                own_cell += d_cell
            parts = [
                core.__mul__(core.__mul__(own_cell, g), _slope(i)),
                core.__mul__(core.__mul__(own_cell, before), _slope(f)) if step else None,
                core.__mul__(core.__mul__(arriving, squashed), _slope(o)),
                core.__mul__(core.__mul__(own_cell, i), _one_minus(core.Square(g))),
            ]
            gates = singa_repair.beside(parts, batch, units)
            core.CopyDataToFrom(d_products, gates, batch * 4 * units, step * batch * 4 * units, 0)
            if step:
                core.MultWithScale(1.0, core.DefaultTranspose(output), gates, 1.0, d_recurrent)
                d_output, d_cell = core.Mult(gates, turned), core.__mul__(own_cell, f)
        return d_products, d_recurrent


def _one_minus(x):
    return core.AddFloat(core.MultFloat(x, -1.0), 1.0)


def _slope(y):
    return core.__mul__(y, _one_minus(y))


class _Loss(autograd.Operator):
    """Mean cross-entropy of the softmax; SINGA's own divides in a way that its wheel has no name for."""

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


class _Conv(autograd._Conv2d):
    """SINGA's convolution, without the gradient of the batch."""

    def backward(self, dy):
        x, w = self.inputs[:2]
        dx = None if _is_data(self) else core.CpuConvBackwardx(dy, w, x, self.handle)
        found = dx, core.CpuConvBackwardW(dy, x, w, self.handle)
        return (
            found + (core.CpuConvBackwardb(dy, self.inputs[2], self.handle),)
            if self.handle.bias_term
            else found
        )


def _once(make):
    """`make` called with the first tensor only: SINGA's handles are made for a shape."""
    made = []

    def get(x):
        if not made:
            made.append(make(x.data))
        return made[0]

    return get


def _dense(trainer, node):
    arrays = trainer.own(node, "weight", "bias")
    return lambda x: _Dense()(x, *arrays)[0]


def _conv(trainer, node):
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    sizes = node["in_shape"][0], node["channels"], node["bias"], 1
    handle = _once(lambda x: core.ConvHandle(x, *(window + list(sizes))))
    arrays = trainer.own(node, "weight", "bias")
    return lambda x: _Conv(handle(x))(x, *arrays)[0]


def _max_pool(trainer, node):
    window = [[node[key]] * 2 for key in ("kernel", "stride", "padding")]
    handle = _once(lambda x: core.PoolingHandle(x, *(window + [True])))
    return lambda x: autograd.pooling_2d(handle(x), x)


def _global_average_pool(trainer, node):
    window = [node["in_shape"][1:], [1, 1], [0, 0]]
    handle = _once(lambda x: core.PoolingHandle(x, *(window + [False])))
    return lambda x: autograd.flatten(autograd.pooling_2d(handle(x), x))


def _batch_norm(trainer, node):
    handle = _once(lambda x: core.BatchNormHandle(0.1, x))
    arrays = trainer.own(node, "gamma", "beta")
    arrays += [_tensor(fill(node["shape"][:1], np.float32)) for fill in (np.zeros, np.ones)]
    return lambda x: autograd.batchnorm_2d(handle(x), x, *arrays)


def _lstm(trainer, node):
    steps = node["in_shape"][0]
    entry, recurrent = trainer.own(node, "input", "bias"), trainer.own(node, "recurrent")
    return lambda x: _Lstm(steps, node["units"])(_Dense()(x, *entry)[0], *recurrent)[0]


_LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda trainer, node: autograd.flatten,
    "batch_norm": _batch_norm,
    "relu": lambda trainer, node: autograd.relu,
    "sigmoid": lambda trainer, node: autograd.sigmoid,
    "add": lambda trainer, node: autograd.add,
    "embedding": _dense,
    "lstm": _lstm,
}
