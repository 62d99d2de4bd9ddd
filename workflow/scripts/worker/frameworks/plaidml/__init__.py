"""PlaidML 0.7: operations of `plaidml.op`, composed with their gradients and updates into one program, on a CPU."""

import os

import numpy as np
import plaidml
from plaidml import op, tile

from shared import specification

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
    """Returns PlaidML's version; its kernels are its own, compiled by the LLVM inside it."""
    return {
        "framework_version": plaidml._lib().plaidml_get_version().decode(),
        "blas": "none: PlaidML compiles its products itself",
    }


def build(job):
    """Returns a trainer of the specification. PlaidML takes every CPU that the process may run on."""
    return _Trainer(job)


class _Trainer(object):
    def __init__(self, job):
        spec, inputs = job.spec, job.inputs
        self.context = plaidml.Context()
        self.device = plaidml.Device(self.context, plaidml.devices(self.context, limit=100)[0])
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        self.tensors = {name: self._tensor(job.take(name)) for name in self.shapes}
        trained = {name: _value(tensor, self.shapes[name]) for name, tensor in self.tensors.items()}
        # Constants are kept here, or their memory would be given back.
        self.kept = []
        values, repeating = {"input": self._hold(inputs)}, specification.repeating(spec["nodes"])
        for node in spec["nodes"]:
            node = dict(node, repeats=node["inputs"][0] in repeating)
            own = {role: trained[name] for role, name in job.own(node).items()}
            values[node["name"]] = LAYERS[node["op"]](
                node, own, *[values[name] for name in node["inputs"]]
            )
        likelihoods = op.log_softmax(_rows(values[node["name"]]))
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
        """Returns a value whose memory lasts as long as the trainer."""
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
    y = _product(x, own["weight"])
    return y + own["bias"] if node["bias"] else y


def _conv(node, own, x):
    window = {"strides": (node["stride"],) * 2, "pads": (node["padding"],) * 4}
    y = op.convolution(x, own["weight"], **dict(window, **_FIRST))
    return y + _wide(own["bias"], y) if node["bias"] else y


def _batch_norm(node, own, x):
    centred = x - op.mean(x, axes=[0, 2, 3], keepdims=True)
    variance = op.mean(centred * centred, axes=[0, 2, 3], keepdims=True)
    scale = _wide(own["gamma"], x) / op.sqrt(variance + specification.BATCH_NORM_EPSILON)
    return centred * scale + _wide(own["beta"], x)


def _max_pool(node, own, value):
    """Returns a max pool in which padding never is the largest."""
    if node["repeats"]:
        return _first_maxima(node, value)
    edges = {"pads": (node["padding"],) * 2}
    return op.max_pool(value, (node["kernel"],) * 2, (node["stride"],) * 2, **edges)


def _first_maxima(node, value):
    """Gives the whole gradient to the first of equal maxima; PlaidML's own pool gives it to all of them."""
    (_, height, width), (_, high, broad) = node["shape"], node["in_shape"]
    places = {"k": node["kernel"], "p": node["padding"], "s": node["stride"]}
    places.update(height=height, width=width)
    code = """function (I[N, C, H, W]) -> (O) {{
        E[n, c, y, x, i, j : N, C, {height}, {width}, {k}, {k}] = =(I[n, c, {s}*y + i - {p}, {s}*x + j - {p}]);
        Y = {s} * index(E, 2) + index(E, 4);
        X = {s} * index(E, 3) + index(E, 5);
        R = (Y < {p} ? -3.0e38 : (Y > {bottom} ? -3.0e38 : E));
        V = (X < {p} ? -3.0e38 : (X > {right} ? -3.0e38 : R));
        M[n, c, y, x, 0, 0 : N, C, {height}, {width}, 1, 1] = >(V[n, c, y, x, i, j]);
        S = as_float(M, 32) + (M < -3.1e38 ? M : 0.0);
        T = (V == S ? {k}.0 * {k}.0 - {k}.0 * index(E, 4) - 1.0 * index(E, 5) : 0.0);
        F[n, c, y, x, 0, 0 : N, C, {height}, {width}, 1, 1] = >(T[n, c, y, x, i, j]);
        P = (T == F ? V : 0.0);
        O[n, c, y, x : N, C, {height}, {width}] = +(P[n, c, y, x, i, j]);
    }}"""
    code = code.format(
        bottom=high - 1 + node["padding"], right=broad - 1 + node["padding"], **places
    )
    return _written(code, tuple(value.shape.dims[:2]) + (height, width), I=value)


def _avg_pool(node, own, value):
    """Adds up shares, padding included: PlaidML gives a wrong loss for a sum that is divided (shufflenet)."""
    size, (channels, height, width) = node["kernel"], node["shape"]
    code = """function (I[N, C, H, W]) -> (O) {{
        S = I / {5}.0;
        O[n, c, y, x : N, C, {0}, {1}] = +(S[n, c, {2}*y + i - {3}, {2}*x + j - {3}]), i < {4}, j < {4};
    }}"""
    code = code.format(height, width, node["stride"], node["padding"], size, size * size)
    return _written(code, (value.shape.dims[0], channels, height, width), I=value)


def _grouped_conv(node, own, value):
    """Convolves in groups; kernels are (out, in / groups, height, width)."""
    groups, (channels, height, width) = node["groups"], node["shape"]
    seen, made = node["in_shape"][0] // groups, channels // groups
    batch, kernel = value.shape.dims[0], node["kernel"]
    value = op.reshape(value, (batch, groups, seen) + tuple(node["in_shape"][1:]))
    weight = op.reshape(own["weight"], (groups, made, seen, kernel, kernel))
    code = """function (I[N, G, CI, H, W], K[G, CO, CI, KH, KW]) -> (O) {{
        O[n, g, co, y, x : N, G, CO, {0}, {1}] =
            +(I[n, g, ci, {2}*y + i - {3}, {2}*x + j - {3}] * K[g, co, ci, i, j]);
    }}"""
    code = code.format(height, width, node["stride"], node["padding"])
    found = _written(code, (batch, groups, made, height, width), I=value, K=weight)
    return op.reshape(found, (batch, channels, height, width))


def _channel_shuffle(node, own, value):
    (channels, height, width), groups = node["shape"], node["groups"]
    batch, each = value.shape.dims[0], channels // groups
    parts = op.reshape(value, (batch, groups, each, height * width))
    code = "function (I[N, G, K, P]) -> (O) { O[n, k, g, p : N, K, G, P] = =(I[n, g, k, p]); }"
    turned = _written(code, (batch, each, groups, height * width), I=parts)
    return op.reshape(turned, (batch, channels, height, width))


def _local_response_norm(node, own, value):
    size = node["size"]
    code = """function (I[N, C, H, W]) -> (O) {{
        S = I * I;
        O[n, c, y, x : N, C, H, W] = +(S[n, c + i - {}, y, x]), i < {};
    }}""".format(size // 2, size)
    near = _written(code, value.shape.dims, I=value)
    scale = 1.0 + near * (1.0 / (node["inverse_alpha"] * size))
    return value * op.exp(-0.75 * op.log(scale))


def _written(code, shape, **given):
    """Returns what a program of Tile computes from values; its result is O."""
    like = next(iter(given.values())).shape.dtype
    made = tile.Operation(code, list(given.items()), [("O", tile.Shape(like, tuple(shape)))])
    return made.sole_output()


def _rows(value):
    """Returns features as rows, whatever axes are in front of them."""
    dims = value.shape.dims
    return value if len(dims) == 2 else op.reshape(value, (int(np.prod(dims[:-1])), dims[-1]))


def _product(value, weight):
    """Multiplies the features of each step."""
    made = op.matmul(_rows(value), weight)
    return op.reshape(made, tuple(value.shape.dims[:-1]) + (weight.shape.dims[-1],))


def _cut(value, axis, start, length):
    """Returns some of the places of an axis."""
    return op.slice_tensor(value, axes=[axis], starts=[start], ends=[start + length])


def _wide(weight, value):
    """Returns one number a feature, in a shape to be combined with a value."""
    image = len(value.shape.dims) == 4
    return op.reshape(weight, tuple(weight.shape.dims) + (1, 1)) if image else weight


def _given(own, value):
    """Multiplies all steps' inputs at once; returns the product, and a function that takes a step's part."""
    products = _product(value, own["input"]) + own["bias"]
    _, batch, units = products.shape.dims
    return lambda step: op.reshape(_cut(products, 0, step, 1), (batch, units))


def _joined(outputs):
    """Joins the outputs of steps to a sequence."""
    dims = outputs[0].shape.dims
    return op.concatenate([op.reshape(output, (1,) + tuple(dims)) for output in outputs], axis=0)


def _lstm(node, own, value):
    """Computes an LSTM, unrolled, as all recurrent layers are."""
    units, given = node["units"], _given(own, value)
    output = cell = None
    outputs = []
    for step in range(value.shape.dims[0]):
        gates = given(step)
        if outputs:
            gates = gates + op.matmul(output, own["recurrent"])
        i, f, g, o = [_cut(gates, 1, gate * units, units) for gate in range(4)]
        new = op.sigmoid(i) * op.tanh(g)
        cell = op.sigmoid(f) * cell + new if outputs else new
        output = op.sigmoid(o) * op.tanh(cell)
        outputs.append(output)
    return _joined(outputs)


def _rnn(node, own, value):
    """Computes a recurrence: a product and a hyperbolic tangent in each step."""
    given = _given(own, value)
    outputs = []
    for step in range(value.shape.dims[0]):
        sums = given(step)
        sums = sums + op.matmul(outputs[-1], own["recurrent"]) if outputs else sums
        outputs.append(op.tanh(sums))
    return _joined(outputs)


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
    "grouped_conv": _grouped_conv,
    "avg_pool": _avg_pool,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "concat": lambda node, own, *x: op.concatenate(list(x), axis=1),
    "rnn": _rnn,
}
