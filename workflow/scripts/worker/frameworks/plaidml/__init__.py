"""PlaidML 0.7: operations of `plaidml.op`, composed with their gradients and updates into one program, on a CPU."""

import os

import numpy as np
import plaidml
from plaidml import op, tile

from shared import specification

from . import images, layers

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
        spec, inputs = job.spec, job.inputs
        self.context = plaidml.Context()
        self.device = plaidml.Device(self.context, plaidml.devices(self.context, limit=100)[0])
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        self.tensors = {name: self._tensor(job.take(name)) for name in self.shapes}
        trained = {name: _value(tensor, self.shapes[name]) for name, tensor in self.tensors.items()}
        # Constants are held here, or their memory would be given back.
        self.kept = []
        values, repeating = {"input": self._hold(inputs)}, specification.repeating(spec["nodes"])
        for node in spec["nodes"]:
            node = dict(node, repeats=node["inputs"][0] in repeating)
            own = {role: trained[name] for role, name in job.own(node).items()}
            values[node["name"]] = LAYERS[node["op"]](
                node, own, *[values[name] for name in node["inputs"]]
            )
        likelihoods = op.log_softmax(layers.rows(values[node["name"]]))
        labels = job.labels.reshape(-1)
        # Rows of one 1.
        answers = np.zeros(likelihoods.shape.dims, np.float32)
        answers[np.arange(len(labels)), labels] = 1.0
        loss = -op.summation(likelihoods * self._hold(answers)) / float(len(labels))
        self.loss = plaidml.Tensor(self.device, plaidml.Shape(self.context, plaidml.DType.FLOAT32))
        names = list(trained)
        gradients = op.gradients(loss, list(trained.values()))
        held = {name: self._hold(np.zeros(self.shapes[name], np.float32)) for name in names}
        places = {name: "gradient{}".format(place) for place, name in enumerate(names)}
        into = dict({places[name]: held[name].var for name in names}, loss=self.loss)
        first = [("loss", loss)] + [(places[name], each) for name, each in zip(names, gradients)]
        # Programs of their own: in one, PlaidML overwrites weights that the gradients of earlier layers still need.
        rate = job.learning_rate
        update = [(value, value - rate * held[name]) for name, value in trained.items()]
        self.invokers = [self._program(first, [], into), self._program([], update, {})]
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

    def _hold(self, values):
        """A value whose memory lasts as long as the trainer."""
        self.kept.append(self._tensor(values))
        return _value(self.kept[-1], values.shape)

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


def _dense(node, own, x):
    y = layers.product(x, own["weight"])
    return y + own["bias"] if node["bias"] else y


def _conv(node, own, x):
    window = {"strides": (node["stride"],) * 2, "pads": (node["padding"],) * 4}
    y = op.convolution(x, own["weight"], **dict(window, **_FIRST))
    return y + layers.wide(own["bias"], y) if node["bias"] else y


def _batch_norm(node, own, x):
    centred = x - op.mean(x, axes=[0, 2, 3], keepdims=True)
    variance = op.mean(centred * centred, axes=[0, 2, 3], keepdims=True)
    scale = layers.wide(own["gamma"], x) / op.sqrt(variance + specification.BATCH_NORM_EPSILON)
    return centred * scale + layers.wide(own["beta"], x)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": images.max_pool,
    "global_average_pool": lambda node, own, x: op.mean(x, axes=[2, 3]),
    "flatten": lambda node, own, x: op.reshape(x, (x.shape.dims[0], node["shape"][0])),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, x: op.relu(x),
    "sigmoid": lambda node, own, x: op.sigmoid(x),
    "add": lambda node, own, x, y: x + y,
    "embedding": lambda node, own, x: op.gather(own["weight"], x),
    "lstm": layers.lstm,
    "grouped_conv": images.grouped_conv,
    "avg_pool": images.avg_pool,
    "channel_shuffle": images.channel_shuffle,
    "local_response_norm": images.local_response_norm,
    "concat": lambda node, own, *x: op.concatenate(list(x), axis=1),
    "rnn": layers.rnn,
}
