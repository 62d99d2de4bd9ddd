"""PlaidML 0.7: operations of `plaidml.op`, composed with their gradients and updates into one program, on a CPU.

What was chosen here, and why: docs/adapters/plaidml.md.
"""

import os

import numpy as np
import plaidml
from plaidml import op, tile

from shared import specification

from . import images, layers, updates

MODES = ("graph",)
LOSSES = (
    "softmax_cross_entropy",
    "mean_squares",
    "binary_cross_entropy",
    "evidence_bound",
    "adversarial",
    "mean_output",
)
OPTIMISERS = ("sgd", "momentum", "adam", "adamw")
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
        values, repeating = {"input": self._hold(inputs)}, images.repeating(spec["nodes"])
        for node in spec["nodes"]:
            node = dict(node, repeats=node["inputs"][0] in repeating)
            own = {role: trained[name] for role, name in job.own(node).items()}
            values[node["name"]] = LAYERS[node["op"]](
                node, own, *[values[name] for name in node["inputs"]]
            )
        outputs, name = layers.rows(values[node["name"]]), spec.get("loss", LOSSES[0])
        loss = _DISTANCES[name](outputs, self._hold(_targets(job, name, outputs.shape.dims)))
        self.loss = plaidml.Tensor(self.device, plaidml.Shape(self.context, plaidml.DType.FLOAT32))
        names = list(trained)
        gradients = op.gradients(loss, list(trained.values()))
        held = {name: self._hold(np.zeros(self.shapes[name], np.float32)) for name in names}
        places = {name: "gradient{}".format(place) for place, name in enumerate(names)}
        into = dict({places[name]: held[name].var for name in names}, loss=self.loss)
        first = [("loss", loss)] + [(places[name], each) for name, each in zip(names, gradients)]
        # Programs of their own: in one, PlaidML overwrites weights that the gradients of earlier layers still need.
        stages = updates.stages(spec["optimiser"], trained, held, self._hold)
        self.invokers = [self._program(first, [], into)]
        self.invokers += [self._program([], stage, {}) for stage in stages]
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


def _targets(job, loss, dims):
    """What outputs of these extents are compared with: labels as rows of one 1."""
    if loss != LOSSES[0]:
        return np.ascontiguousarray(job.labels, np.float32).reshape(len(job.labels), -1)
    labels, answers = job.labels.reshape(-1), np.zeros(dims, np.float32)
    answers[np.arange(len(labels)), labels] = 1.0
    return answers


def _cross_entropy(outputs, answers):
    likelihoods = op.log_softmax(outputs)
    return -op.summation(likelihoods * answers) / float(outputs.shape.dims[0])


def _missed(outputs, targets):
    """The binary cross entropy of each."""
    return layers.softplus(outputs) - outputs * targets


def _evidence_bound(outputs, targets):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    batch, width = outputs.shape.dims
    decoded = targets.shape.dims[1]
    code = (width - decoded) // 2
    mean, spread = (
        layers.cut(outputs, 1, decoded, code),
        layers.cut(outputs, 1, decoded + code, code),
    )
    apart = 0.5 * op.summation(mean * mean + op.exp(spread) - spread - 1.0)
    missed = op.summation(_missed(layers.cut(outputs, 1, 0, decoded), targets))
    return (missed + apart) / float(batch * width)


_DISTANCES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": lambda outputs, targets: op.mean((outputs - targets) * (outputs - targets)),
    "binary_cross_entropy": lambda outputs, targets: op.mean(_missed(outputs, targets)),
    "evidence_bound": _evidence_bound,
    "adversarial": lambda outputs, targets: op.mean(_missed(outputs, targets)),
    "mean_output": lambda outputs, targets: op.mean(outputs),
}


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
    "dense_within": _dense,
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
    "conv_transpose": images.conv_transpose,
    "avg_pool": images.avg_pool,
    "adaptive_avg_pool": images.adaptive_avg_pool,
    "upsample": images.upsample,
    "channel_shuffle": images.channel_shuffle,
    "local_response_norm": images.local_response_norm,
    "group_norm": images.group_norm,
    "concat": lambda node, own, *x: op.concatenate(list(x), axis=layers.features(x[0])),
    "rnn": layers.rnn,
    "gru": layers.gru,
    "tanh": lambda node, own, x: op.tanh(x),
    "gelu": layers.gelu,
    "gelu_tanh": layers.gelu_tanh,
    "silu": lambda node, own, x: x * op.sigmoid(x),
    "layer_norm": layers.layer_norm,
    "rms_norm": layers.rms_norm,
    "layer_scale": layers.layer_scale,
    "bias": lambda node, own, x: x + own["bias"],
    "positions": layers.positions,
    "table": lambda node, own, x: own["weight"],
    "lookup": lambda node, own, words, table: op.gather(table, words),
    "unembedding": layers.unembedding,
    "attention": layers.attention,
    "patches": images.patches,
    "class_token": layers.class_token,
    "first_step": layers.first_step,
    "mean_steps": lambda node, own, x: op.mean(x, axes=[0]),
    "transpose": lambda node, own, x: layers.turned(x, 2, 1, 0),
    "part": layers.part,
    "stack": lambda node, own, *x: layers.joined(x),
    "unstack": layers.unstack,
    "reversal": layers.reversal,
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
}
