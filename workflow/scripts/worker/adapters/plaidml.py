"""PlaidML 0.7: operations of `plaidml.op`, composed with their gradients and updates into one program, on a CPU.

What was chosen here, and why: docs/adapters/plaidml.md.
"""

import os

import numpy as np
import plaidml
from plaidml import op, tile

from .. import specification

MODES = ("graph",)
# So that each step of a recurrence is one block of memory.
LAYOUT = {"sequences": "steps first"}
REASONS = {
    "gpu": "this environment of PlaidML is for its CPU device only",
    "training": "the operations of PlaidML 0.7 draw no random numbers, and so there is no dropout",
}

_FIRST = {
    "data_format": op.ConvolutionDataFormat.CHANNELS_FIRST,
    "kernel_format": op.ConvolutionKernelFormat.CHANNELS_FIRST,
}


def versions():
    """Version of PlaidML; its kernels are its own, compiled by the LLVM inside it."""
    return {
        "framework_version": plaidml._lib().plaidml_get_version().decode(),
        "blas": "none: PlaidML compiles its products itself",
    }


def build(job):
    """A trainer of the specification. PlaidML takes every CPU that the process may run on."""
    return _Trainer(job)


class _Trainer(object):
    def __init__(self, job):
        spec, inputs, labels = job.spec, job.inputs, job.labels.reshape(-1)
        self.context = plaidml.Context()
        self.device = plaidml.Device(self.context, plaidml.devices(self.context, limit=100)[0])
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        self.tensors = {name: self._tensor(job.take(name)) for name in self.shapes}
        trained = {name: _value(tensor, self.shapes[name]) for name, tensor in self.tensors.items()}
        answers = np.zeros((len(labels), specification.count_classes(spec)), np.float32)
        answers[np.arange(len(labels)), labels] = 1.0
        # Constants are held here, or their memory would be given back.
        self.kept = [self._tensor(inputs), self._tensor(answers)]
        values = {"input": _value(self.kept[0], inputs.shape)}
        for node in spec["nodes"]:
            own = {role: trained[name] for role, name in job.own(node).items()}
            values[node["name"]] = LAYERS[node["op"]](
                node, own, *[values[name] for name in node["inputs"]]
            )
        likelihoods = op.log_softmax(values[node["name"]])
        loss = -op.summation(likelihoods * _value(self.kept[1], answers.shape)) / float(len(labels))
        names, values = list(trained), list(trained.values())
        steps = [job.learning_rate * gradient for gradient in op.gradients(loss, values)]
        outputs = dict(zip(["step{}".format(place) for place in range(len(names))], steps))
        self.loss = plaidml.Tensor(self.device, plaidml.Shape(self.context, plaidml.DType.FLOAT32))
        held = {
            name: self._tensor(np.zeros(self.shapes[key], np.float32))
            for name, key in zip(outputs, names)
        }
        self.kept += held.values()
        # Two programs: in one, PlaidML overwrites weights that the gradients of earlier layers still need.
        updates = [
            (value, value - _value(held[name], self.shapes[key]))
            for value, name, key in zip(values, outputs, names)
        ]
        self.invokers = [
            self._program([("loss", loss)] + list(outputs.items()), [], dict(held, loss=self.loss)),
            self._program([], updates, {}),
        ]
        self.parameters = sum(int(np.prod(shape)) for shape in self.shapes.values())
        self.threads = len(os.sched_getaffinity(0))
        self.settings = {
            "threads": "one for each CPU that the process may run on",
            "layout": "channels first",
        }

    def run(self, steps):
        for _ in range(steps):
            for invoker in self.invokers:
                invoker.invoke()
        # A buffer can be read when all that writes to it is done.
        for tensor in self.tensors.values():
            with tensor.mmap_current():
                pass
        with self.loss.mmap_current() as view:
            return float(view[0])

    def weights(self, names=None):
        names = self.tensors if names is None else names
        return {name: _read(self.tensors[name], self.shapes[name]) for name in names}

    def _program(self, outputs, updates, tensors):
        program = tile.compose(self.context, self.device, [], outputs, updates)
        return plaidml.Invoker(self.context, program, {}, tensors)

    def _tensor(self, values):
        kind = plaidml.DType.INT32 if values.dtype.kind == "i" else plaidml.DType.FLOAT32
        tensor = plaidml.Tensor(self.device, plaidml.Shape(self.context, kind, *values.shape))
        with tensor.mmap_discard(self.context) as view:
            view.copy_from_ndarray(np.ascontiguousarray(values))
            view.writeback()
        return tensor


def _read(tensor, shape):
    values = np.empty(tuple(shape), np.float32)
    with tensor.mmap_current() as view:
        view.copy_to_ndarray(values)
    return values


def _value(tensor, shape):
    return tile.Value.from_var(tensor, tuple(shape), tensor.shape.dtype)


def _flat(x):
    """Sequences as one matrix, (steps x batch, features)."""
    dims = x.shape.dims
    return x if len(dims) == 2 else op.reshape(x, (int(np.prod(dims[:-1])), dims[-1]))


def _dense(node, own, x):
    y = op.matmul(_flat(x), own["weight"])
    return y + own["bias"] if node["bias"] else y


def _conv(node, own, x):
    window = {"strides": (node["stride"],) * 2, "pads": (node["padding"],) * 4}
    y = op.convolution(x, own["weight"], **dict(window, **_FIRST))
    return y + _column(own["bias"]) if node["bias"] else y


def _max_pool(node, own, x):
    return op.max_pool(x, (node["kernel"],) * 2, (node["stride"],) * 2, pads=(node["padding"],) * 2)


def _batch_norm(node, own, x):
    centred = x - op.mean(x, axes=[0, 2, 3], keepdims=True)
    variance = op.mean(centred * centred, axes=[0, 2, 3], keepdims=True)
    return centred * (
        _column(own["gamma"]) / op.sqrt(variance + specification.BATCH_NORM_EPSILON)
    ) + _column(own["beta"])


def _column(values):
    """A parameter of each channel, so that it is spread over images."""
    return op.reshape(values, tuple(values.shape.dims) + (1, 1))


def _lstm(node, own, x):
    units, (steps, batch, _) = node["units"], x.shape.dims
    products = op.reshape(
        op.matmul(_flat(x), own["input"]) + own["bias"], (steps, batch, 4 * units)
    )
    output = cell = None
    outputs = []
    for step in range(steps):
        gates = op.reshape(_part(products, 0, step, 1), (batch, 4 * units))
        if outputs:
            gates = gates + op.matmul(output, own["recurrent"])
        i, f, g, o = [_part(gates, 1, gate * units, units) for gate in range(4)]
        new = op.sigmoid(i) * op.tanh(g)
        cell = op.sigmoid(f) * cell + new if outputs else new
        output = op.sigmoid(o) * op.tanh(cell)
        outputs.append(op.reshape(output, (1, batch, units)))
    return op.concatenate(outputs, axis=0)


def _part(x, axis, start, length):
    return op.slice_tensor(x, axes=[axis], starts=[start], ends=[start + length])


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, x: op.mean(x, axes=[2, 3]),
    "flatten": lambda node, own, x: op.reshape(x, (x.shape.dims[0], node["shape"][0])),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, x: op.relu(x),
    "sigmoid": lambda node, own, x: op.sigmoid(x),
    "add": lambda node, own, x, y: x + y,
    "embedding": lambda node, own, x: op.gather(own["weight"], x),
    "lstm": _lstm,
}
