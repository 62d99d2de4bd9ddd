"""Chainer 7: its functions and its automatic differentiation; images on iDeep (`ideep`) or NumPy (`numpy`), or all on
a GPU, by CuPy (`cupy`).

What was chosen here, and by which measured ratios: docs/adapters/chainer.md.
"""

import chainer
import numpy as np
from chainer import functions
from chainer.backends import cuda
from chainer.optimizers import ada_delta, rmsprop

from .. import kernels, rounding, specification
from ..contract import Unsupported

MODES = ("ideep", "numpy", "cupy")
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
TASKS = ("step", "training")
# So that each step of a recurrence is one block of memory.
LAYOUT = {"sequences": "steps first", "dense": "units first"}
KERNELS = {"ideep": "openblas:numpy", "numpy": "openblas:numpy", "cupy": ""}
DEVICES = ("cpu", "gpu")
PRECISIONS = ("float32", "tf32")

# Chainer's LSTM keeps the four gates of a unit side by side, in the order g, i, f, o; the specification has i, f, g, o.
_GATES = [2, 0, 1, 3]


def versions():
    """Versions of Chainer and of the BLAS below NumPy, or of CuPy."""
    known = {"framework_version": chainer.__version__}
    if cuda.available:
        return dict(known, build="CuPy {}".format(cuda.cupy.__version__))
    return dict(known, blas=kernels.describe_openblas())


def build(job):
    """A trainer of the specification."""
    return Trainer(job, prepare(job))


def prepare(job):
    """Settles how Chainer computes, and returns the module of its arrays.

    The BLAS reads its threads from the environment, and CuPy whether it rounds.
    """
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
    arrays = cuda.cupy if on_gpu else np
    # What Chainer draws its masks from.
    arrays.random.seed(job.seed)
    return arrays


def _product_on_gpu(left, right):
    return cuda.to_cpu(cuda.cupy.dot(cuda.to_gpu(left), cuda.to_gpu(right)))


class Trainer(object):
    """A network of Chainer's functions, and the arrays that it trains."""

    def __init__(self, job, arrays):
        self.spec, self.layout, self.arrays = job.spec, job.layout, arrays
        self.place = cuda.to_gpu if job.device == "gpu" else np.asarray
        self.inputs, self.labels = self.place(job.inputs), self.place(job.labels.reshape(-1))
        make_rule = _RULES[job.spec["optimiser"]["name"]]
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
                channels = node["shape"][0]
                self.averages[node["name"]] = (
                    arrays.zeros(channels, np.float32),
                    arrays.ones(channels, np.float32),
                )
        self.rules = []
        for value in self.trained.values() if make_rule else ():
            value.update_rule = make_rule(job.spec["optimiser"])
            self.rules.append(value.update_rule)
        # SGD's backward pass starts from the learning rate, so that the gradients come out as its steps.
        self.head = arrays.array(1.0 if self.rules else job.learning_rate, np.float32)
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
            for rule in self.rules:
                rule.hyperparam.lr = rate
            if not self.rules:
                self.head[...] = rate
            labels = self.place(self.layout.labels(labels).reshape(-1))
            loss = self._step(self.place(self.layout.inputs(inputs)), labels)
            total, steps = total + float(loss.array), steps + 1
        return total / steps

    def scores(self, inputs):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return cuda.to_cpu(self._logits(self.place(self.layout.inputs(inputs))).array)

    def weights(self, names=None):
        names = self.trained if names is None else names
        found = {}
        for name in names:
            value = cuda.to_cpu(self.trained[name].array)
            value = _apart(value) if name in self.lstms else value
            found[name] = self.layout.leave(name, value)
        return found

    def _step(self, inputs, labels):
        """Takes a step, and returns its loss."""
        loss = functions.softmax_cross_entropy(self._logits(inputs), labels)
        loss.grad = self.head
        loss.backward()
        self.update()
        return loss

    def update(self):
        """Takes the step of the gradients that are there, which go."""
        for value in self.trained.values():
            if self.rules:
                value.update()
            else:
                self.arrays.subtract(value.array, value.grad, out=value.array)
            value.cleargrad()

    def _logits(self, inputs):
        """Scores of all labels, (labels, classes); of sequences in the order step, sample."""
        values = {"input": inputs}
        for node in self.spec["nodes"]:
            arguments = [values[name] for name in node["inputs"]]
            values[node["name"]] = LAYERS[node["op"]](self, node, *arguments)
        logits = values[node["name"]]
        return logits.reshape(-1, logits.shape[-1])

    def own(self, node, role):
        """The parameter of a node; None where it has none of that role."""
        return self.trained.get(node["name"] + "/" + role)


def _adadelta(wanted):
    if wanted["learning_rate"] != 1 or {"decay", "after_epochs"} & set(wanted):
        raise Unsupported("Chainer's AdaDelta has no learning rate: it is always 1")
    return ada_delta.AdaDeltaRule(rho=wanted["rho"], eps=wanted["epsilon"])


def _rmsprop(wanted):
    rate, rho, epsilon = wanted["learning_rate"], wanted["rho"], wanted["epsilon"]
    return rmsprop.RMSpropRule(lr=rate, alpha=rho, eps=epsilon)


# Chainer's own rule of a parameter; None for plain SGD.
_RULES = {"sgd": None, "adadelta": _adadelta, "rmsprop": _rmsprop}


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


def _dropout(trainer, node, x):
    """By NumPy: iDeep draws the same mask in each step."""
    with chainer.using_config("use_ideep", "never"):
        return functions.dropout(x, node["rate"])


def _lstm(trainer, node, x):
    steps, batch = x.shape[:2]
    # The product with the inputs needs no loop: one large product in place of one for each step.
    flat = x.reshape(steps * batch, -1)
    products = _product(flat, trainer.own(node, "input"), trainer.own(node, "bias"))
    cell = trainer.arrays.zeros((batch, node["units"]), np.float32)
    outputs = []
    for product in functions.split_axis(products, steps, 0):
        if outputs:
            product = product + _product(outputs[-1], trainer.own(node, "recurrent"))
        cell, output = functions.lstm(cell, product)
        outputs.append(output)
    return functions.stack(outputs)


def _gelu(trainer, node, x):
    return 0.5 * x * (1.0 + functions.erf(x * 0.5**0.5))


def _gelu_tanh(trainer, node, x):
    return 0.5 * x * (1.0 + functions.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


def _layer_norm(trainer, node, x):
    weight, bias = trainer.own(node, "weight"), trainer.own(node, "bias")
    bias = trainer.arrays.zeros(weight.shape, np.float32) if bias is None else bias
    rows = x.reshape(-1, x.shape[-1])
    return functions.layer_normalization(rows, weight, bias, node["epsilon"]).reshape(x.shape)


def _rms_norm(trainer, node, x):
    squares = functions.mean(x**2, -1, keepdims=True) + node["epsilon"]
    scale = functions.broadcast_to(squares**-0.5, x.shape)
    return x * scale * functions.broadcast_to(trainer.own(node, "weight"), x.shape)


def _bias(trainer, node, x):
    return x + functions.broadcast_to(trainer.own(node, "bias"), x.shape)


def _positions(trainer, node, x):
    rows = trainer.arrays.arange(node["shape"][0], dtype=np.int32) // node["each"]
    added = functions.embed_id(rows, trainer.own(node, "weight"))
    return x + functions.broadcast_to(functions.expand_dims(added, 1), x.shape)


def _unembedding(trainer, node, x, table):
    y = _product(x.reshape(-1, x.shape[-1]), table)
    return y.reshape(x.shape[:-1] + y.shape[-1:])


def _attention(trainer, node, x):
    steps, batch, features = x.shape
    size = features // (3 * node["heads"])
    x = x.reshape(steps, batch, 3, node["heads"], size).transpose(2, 1, 3, 0, 4)
    # Each (batch, heads, steps, size).
    q, k, v = x[0], x[1], x[2]
    scores = functions.matmul(q * size**-0.5, k, transb=True)
    if node.get("causal"):
        later = trainer.place(np.triu(np.full((steps, steps), -1e30, np.float32), 1))
        scores = scores + trainer.arrays.broadcast_to(later, scores.shape)
    found = functions.matmul(functions.softmax(scores, axis=3), v)
    return found.transpose(2, 0, 1, 3).reshape(steps, batch, -1)


def _class_token(trainer, node, x):
    first = functions.broadcast_to(trainer.own(node, "weight"), (1,) + x.shape[1:])
    return functions.concat([first, x], 0)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda trainer, node, x: functions.average(x, axis=(2, 3)),
    "flatten": lambda trainer, node, x: x.reshape(len(x), -1),
    "batch_norm": _batch_norm,
    "relu": lambda trainer, node, x: functions.relu(x),
    "dropout": _dropout,
    "sigmoid": lambda trainer, node, x: functions.sigmoid(x),
    "add": lambda trainer, node, x, y: x + y,
    "embedding": lambda trainer, node, x: functions.embed_id(x, trainer.own(node, "weight")),
    "lstm": _lstm,
    "tanh": lambda trainer, node, x: functions.tanh(x),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda trainer, node, x: x * functions.sigmoid(x),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "bias": _bias,
    "positions": _positions,
    "table": lambda trainer, node, x: trainer.own(node, "weight"),
    "lookup": lambda trainer, node, x, table: functions.embed_id(x, table),
    "unembedding": _unembedding,
    "attention": _attention,
    "patches": lambda trainer, node, x: x.reshape(x.shape[:2] + (-1,)).transpose(2, 0, 1),
    "class_token": _class_token,
    "first_step": lambda trainer, node, x: x[0],
    "mean_steps": lambda trainer, node, x: functions.average(x, axis=0),
    "transpose": lambda trainer, node, x: x.transpose(2, 1, 0),
}
