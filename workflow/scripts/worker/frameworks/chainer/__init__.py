"""Chainer 7: its functions and its automatic differentiation; images on iDeep (`ideep`) or NumPy (`numpy`), or all on
a GPU, by CuPy (`cupy`).

What was chosen here, and by which measured ratios: docs/adapters/chainer.md.
"""

import chainer
import numpy as np
from chainer import functions
from chainer.backends import cuda
from chainer.optimizers import ada_delta, rmsprop

from shared import specification

from ... import kernels, rounding
from ...contract import Unsupported

MODES = ("ideep", "numpy", "cupy")
LOSSES = (
    "softmax_cross_entropy",
    "mean_squares",
    "binary_cross_entropy",
    "evidence_bound",
    "adversarial",
    "mean_output",
)
OPTIMISERS = ("sgd", "adadelta", "rmsprop", "momentum", "adam", "adamw")
TASKS = ("step", "training")
EXCHANGES = {"sync": "ranks"}
# So that each step of a recurrence is one block of memory.
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "dense_within": "units first",
    "rnn": "units first",
    "gru": "units first",
}
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
        self.distance = _DISTANCES[job.spec.get("loss", "softmax_cross_entropy")]
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
        loss = self.distance(self._logits(inputs), labels)
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


def _aimed(distance):
    """Of outputs and targets; these come flat, as labels do."""
    return lambda outputs, targets: distance(outputs, targets.reshape(len(outputs), -1))


def _missed(logits, targets):
    """The binary cross entropy of each."""
    return functions.softplus(logits) - logits * targets


def _evidence_bound(outputs, targets):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    decoded, code = targets.shape[1], (outputs.shape[1] - targets.shape[1]) // 2
    decoded, mean, spread = functions.split_axis(outputs, [decoded, decoded + code], 1)
    apart = 0.5 * functions.sum(mean**2 + functions.exp(spread) - spread - 1)
    return (functions.sum(_missed(decoded, targets)) + apart) / outputs.size


def _cross_entropy(logits, targets):
    return functions.mean(_missed(logits, targets))


_DISTANCES = {
    "softmax_cross_entropy": functions.softmax_cross_entropy,
    "mean_squares": _aimed(functions.mean_squared_error),
    "binary_cross_entropy": _aimed(_cross_entropy),
    "evidence_bound": _aimed(_evidence_bound),
    "adversarial": _aimed(_cross_entropy),
    "mean_output": lambda outputs, targets: functions.mean(outputs),
}


def _adadelta(wanted):
    if wanted["learning_rate"] != 1 or {"decay", "after_epochs"} & set(wanted):
        raise Unsupported("Chainer's AdaDelta has no learning rate: it is always 1")
    return ada_delta.AdaDeltaRule(rho=wanted["rho"], eps=wanted["epsilon"])


def _rmsprop(wanted):
    rate, rho, epsilon = wanted["learning_rate"], wanted["rho"], wanted["epsilon"]
    return rmsprop.RMSpropRule(lr=rate, alpha=rho, eps=epsilon)


def _momentum(wanted):
    rule = chainer.optimizers.momentum_sgd.MomentumSGDRule
    return rule(lr=wanted["learning_rate"], momentum=wanted["momentum"])


class _Adam(chainer.optimizers.adam.AdamRule):
    """Chainer adds its epsilon to a root that is not corrected yet. What has two axes may decay beside it."""

    def __init__(self, wanted):
        super().__init__(beta1=wanted["beta1"], beta2=wanted["beta2"])
        self.hyperparam.lr, self._added = wanted["learning_rate"], wanted["epsilon"]
        self._decay = wanted.get("weight_decay", 0)

    def update_core(self, param):
        own = self.hyperparam
        own.alpha, own.eps = own.lr, self._added * (1 - own.beta2**self.t) ** 0.5
        own.weight_decay_rate = own.lr * self._decay if param.ndim > 1 else 0
        super().update_core(param)


# Chainer's own rule of a parameter; None for plain SGD.
_RULES = {
    "sgd": None,
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "momentum": _momentum,
    "adam": _Adam,
    "adamw": _Adam,
}


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


def _grouped_conv(trainer, node, x):
    arrays = trainer.own(node, "weight"), trainer.own(node, "bias")
    sizes = {"stride": node["stride"], "pad": node["padding"], "groups": node["groups"]}
    return functions.convolution_2d(x, *arrays, **sizes)


def _conv_transpose(trainer, node, x):
    """What `functions.deconvolution_2d` does, which takes no way back where nobody asks for the gradient of `x`."""
    made = functions.connection.deconvolution_2d.Deconvolution2DFunction
    spread = made(node["stride"], node["padding"])
    spread.cover_all = False
    arrays = trainer.own(node, "weight"), trainer.own(node, "bias")
    return spread.apply([x] + [array for array in arrays if array is not None])[0]


def _avg_pool(trainer, node, x):
    return functions.average_pooling_2d(x, node["kernel"], node["stride"], node["padding"])


def _adaptive_avg_pool(trainer, node, x):
    if any(extent % node["size"] for extent in x.shape[2:]):
        raise Unsupported("Chainer has no average pooling in shares that are not alike")
    window = [extent // node["size"] for extent in x.shape[2:]]
    return functions.average_pooling_2d(x, window, window)


def _local_response_norm(trainer, node, x):
    alpha = 1 / (node["inverse_alpha"] * node["size"])
    return functions.local_response_normalization(x, node["size"], 1, alpha, 0.75)


def _group_norm(trainer, node, x):
    own = trainer.own(node, "gamma"), trainer.own(node, "beta")
    return functions.group_normalization(
        x, node["groups"], *own, eps=specification.BATCH_NORM_EPSILON
    )


def _channel_shuffle(trainer, node, x):
    batch, channels, height, width = x.shape
    parts = x.reshape(batch, node["groups"], -1, height, width).transpose(0, 2, 1, 3, 4)
    return parts.reshape(x.shape)


def _layer_scale(trainer, node, x):
    weight = trainer.own(node, "weight")
    weight = weight.reshape(-1, 1, 1) if x.ndim == 4 else weight
    return x * functions.broadcast_to(weight, x.shape)


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


def _products(trainer, node, x):
    """Of each step with the inputs, as one large one in place of one for each step."""
    flat = x.reshape(x.shape[0] * x.shape[1], -1)
    products = _product(flat, trainer.own(node, "input"), trainer.own(node, "bias"))
    return functions.split_axis(products, len(x), 0)


def _rnn(trainer, node, x):
    outputs = []
    for product in _products(trainer, node, x):
        if outputs:
            product = product + _product(outputs[-1], trainer.own(node, "recurrent"))
        outputs.append(functions.tanh(product))
    return functions.stack(outputs)


def _gru(trainer, node, x):
    parts, outputs = [2 * node["units"]], []
    for product in _products(trainer, node, x):
        gates, new = functions.split_axis(product, parts, 1)
        if outputs:
            inner = _product(outputs[-1], trainer.own(node, "recurrent"))
            of_gates, of_new = functions.split_axis(inner, parts, 1)
            reset, update = functions.split_axis(functions.sigmoid(gates + of_gates), 2, 1)
            new = functions.tanh(new + reset * of_new)
            outputs.append(new + update * (outputs[-1] - new))
        else:
            update = functions.split_axis(functions.sigmoid(gates), 2, 1)[1]
            new = functions.tanh(new)
            outputs.append(new - update * new)
    return functions.stack(outputs)


def _rbm(trainer, node, visible, noise):
    weight, hidden = trainer.own(node, "weight"), trainer.own(node, "hidden")
    bias = trainer.own(node, "visible")
    # What is taken by its array has no gradient.
    visible = getattr(visible, "array", visible)
    scores = _scores(visible, weight, hidden)
    chances = functions.sigmoid(scores.array).array
    drawn = (2 * chances - 1 > getattr(noise, "array", noise)).astype(np.float32)
    end = functions.sigmoid(_product(drawn, weight.array, bias.array)).array
    energy = functions.sum(
        functions.softplus(_scores(end, weight, hidden)) - functions.softplus(scores), 1
    )
    energy = energy + functions.matmul(trainer.arrays.asarray(end - visible), bias)
    return functions.concat([functions.expand_dims(energy, 1), chances], 1)


def _scores(visible, weight, hidden):
    scores = functions.matmul(visible, weight)
    return scores + functions.broadcast_to(hidden, scores.shape)


def _sampled_code(trainer, node, x, noise):
    mean, spread = functions.split_axis(x, 2, 1)
    return mean + functions.exp(0.5 * spread) * noise


def _part(trainer, node, x):
    return x[..., node["start"] : node["start"] + node["size"]]


def _upsample(trainer, node, x):
    return functions.unpooling_2d(x, node["factor"], cover_all=False)


def _gelu(trainer, node, x):
    return 0.5 * x * (1.0 + functions.erf(x * 0.5**0.5))


def _gelu_tanh(trainer, node, x):
    return 0.5 * x * (1.0 + functions.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


def _layer_norm(trainer, node, x):
    weight, bias = trainer.own(node, "weight"), trainer.own(node, "bias")
    bias = trainer.arrays.zeros(weight.shape, np.float32) if bias is None else bias
    image = x.ndim == 4
    x = x.transpose(0, 2, 3, 1) if image else x
    rows = x.reshape(-1, x.shape[-1])
    x = functions.layer_normalization(rows, weight, bias, node["epsilon"]).reshape(x.shape)
    return x.transpose(0, 3, 1, 2) if image else x


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
    "dense_within": _dense,
    "conv": _conv,
    "grouped_conv": _grouped_conv,
    "conv_transpose": _conv_transpose,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "adaptive_avg_pool": _adaptive_avg_pool,
    "upsample": _upsample,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "group_norm": _group_norm,
    "concat": lambda trainer, node, *values: functions.concat(values, 1),
    "global_average_pool": lambda trainer, node, x: functions.average(x, axis=(2, 3)),
    "flatten": lambda trainer, node, x: x.reshape(len(x), -1),
    "batch_norm": _batch_norm,
    "relu": lambda trainer, node, x: functions.relu(x),
    "dropout": _dropout,
    "sigmoid": lambda trainer, node, x: functions.sigmoid(x),
    "add": lambda trainer, node, x, y: x + y,
    "embedding": lambda trainer, node, x: functions.embed_id(x, trainer.own(node, "weight")),
    "lstm": _lstm,
    "rnn": _rnn,
    "gru": _gru,
    "tanh": lambda trainer, node, x: functions.tanh(x),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda trainer, node, x: x * functions.sigmoid(x),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "layer_scale": _layer_scale,
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
    "part": _part,
    "stack": lambda trainer, node, *values: functions.stack(values),
    "unstack": lambda trainer, node, x: x.transpose(1, 0, 2).reshape(x.shape[1], -1),
    "reversal": lambda trainer, node, x: 2 * x.array - x,
    "sampled_code": _sampled_code,
    "rbm": _rbm,
}
