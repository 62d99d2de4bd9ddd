"""CNTK 2: a graph of plain functions, trained by a `Trainer` with a learner of CNTK; the mini-batch is a `Value`.

What was chosen here, and by which measured ratios: docs/adapters/cntk.md.
"""

import os

import cntk
import numpy as np
from cntk.internal.sanitize import sanitize_batch

from shared import specification

from ...contract import Unsupported
from . import layers

MODES = ("graph",)
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
KERNELS = "mkl"
DEVICES = ("cpu", "gpu")
REASONS = {
    "tf32": "CNTK is built for CUDA 10, which knows no TF32",
    "gelu": "CNTK has no error function, of which an exact GELU is made",
}


def versions():
    """Versions of CNTK, and the library that its matrix products come from, as it lies beside CNTK's own."""
    beside = os.listdir(os.path.join(os.path.dirname(cntk.__file__), "libs"))
    blas = sorted(name for name in beside if name.startswith(("libmkl", "libopenblas")))
    return {"framework_version": cntk.__version__, "blas": " ".join(blas)}


def build(job, make=None):
    """A trainer of the specification, by `make` or the one of this module."""
    if job.device == "gpu" and not _has_gpu():
        raise Unsupported("CNTK {} finds no GPU".format(cntk.__version__))
    place = cntk.device.gpu(0) if job.device == "gpu" else cntk.device.cpu()
    cntk.device.try_set_default_device(place)
    cntk.cntk_py.set_max_num_cputhreads(job.threads)
    return (make or Trainer)(job)


def _has_gpu():
    """Whether CNTK lists a GPU; it computes on the CPU without a word where it does not."""
    return any(each.type() == cntk.device.DeviceKind.GPU for each in cntk.device.all_devices())


class Trainer(object):
    settings = {"labels": "sparse", "layout": "channels first"}

    def __init__(self, job):
        spec, inputs, labels = job.spec, job.inputs, job.labels
        self._own = {}
        self._classes = classes = specification.count_classes(spec)
        distance = _DISTANCES.get(spec.get("loss"))
        # Targets in place of labels are numbers, so many for each sample.
        self._answered = _rows if distance else self._one_hot
        words_come = spec["input"]["kind"] == "one_hot" or layers.recur(spec)
        if words_come and spec["optimiser"]["name"] in ("rmsprop", "adam", "adamw"):
            raise Unsupported(
                "CNTK's functions take no sparse gradients, as those of words are: no rule made of them trains these"
            )
        if labels.ndim == 2 and not words_come and not distance:
            # Rows that every sample has are no sequence to CNTK.
            distance, self._answered = _of_each_row, _one_hot_rows(classes)
        if words_come:
            # Both are the same to CNTK: rows of a sparse matrix, one entry each.
            tokens = inputs if inputs.ndim == 2 else inputs.argmax(-1)
            words = spec["input"].get("vocabulary") or spec["input"]["shape"][-1]
            batch = cntk.sequence.input_variable(words, is_sparse=True)
            kind = cntk.sequence.input_variable if labels.ndim == 2 else cntk.input_variable
            answers = kind(classes, is_sparse=True)
            placed = cntk.Value.one_hot(tokens.tolist(), words)
        else:
            batch = cntk.input_variable(tuple(spec["input"]["shape"]))
            shape = self._answered(labels).shape[1:] if distance else classes
            answers = cntk.input_variable(shape, is_sparse=not distance)
            placed = sanitize_batch(batch, np.asarray(inputs, np.float32))
        self._batch, self._answers = batch, answers
        given = self._answered(labels)
        given = sanitize_batch(answers, given) if distance else given
        self._logits = logits = self._connect(job, batch)
        loss = (distance or cntk.cross_entropy_with_softmax)(logits, answers)
        self._data = {batch: placed, answers: given}
        count = len(labels) if distance else labels.size
        self._rate = job.learning_rate
        learner, self._set_rate = LEARNERS[spec["optimiser"]["name"]](
            spec["optimiser"], logits.parameters, count * job.ranks
        )
        self._trainer = cntk.Trainer(logits, (loss, None), [self.shared(learner)])
        self.parameters = sum(int(np.prod(parameter.shape)) for parameter in logits.parameters)
        self.threads = cntk.cntk_py.get_max_num_cputhreads()

    def shared(self, learner):
        """The learner that gets the gradients of all ranks, of which there is one here."""
        return learner

    def run(self, steps):
        for _ in range(steps):
            self._trainer.train_minibatch(self._data)
        # Reading the loss waits for the step; on a CPU all is done by then.
        return float(self._trainer.previous_minibatch_loss_average)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            if rate != self._rate:
                self._set_rate(rate)
                self._rate = rate
            answers = self._answered(labels)
            self._trainer.train_minibatch({self._batch: inputs, self._answers: answers})
            total += self._trainer.previous_minibatch_loss_average
            steps += 1
        return total / steps

    def scores(self, inputs):
        # CNTK drops nothing while a function is evaluated.
        return self._logits.eval({self._batch: inputs})

    def _one_hot(self, labels):
        return cntk.Value.one_hot(labels.tolist(), self._classes)

    def weights(self, names=None):
        return {name: self._own[name].value for name in (self._own if names is None else names)}

    def _connect(self, job, batch):
        values = {"input": batch}
        for node in job.spec["nodes"]:
            own = {}
            for role, name in job.own(node).items():
                own[role] = self._own[name] = cntk.parameter(init=job.take(name), name=name)
            if node["op"] == "dropout":
                # Layers of one seed would drop the same values.
                own["seed"] = job.seed + len(values)
            values[node["name"]] = LAYERS[node["op"]](
                node, own, *[values[name] for name in node["inputs"]]
            )
        return values[node["name"]]


def _rows(targets):
    """Targets as a row of numbers for each sample."""
    return np.ascontiguousarray(targets.reshape(len(targets), -1), np.float32)


def _one_hot_rows(classes):
    return lambda labels: np.eye(classes, dtype=np.float32)[labels]


def _of_each_row(outputs, wanted):
    """The cross entropy of a sample, of whose rows each has a label."""
    # CNTK's own takes all rows for one.
    sums = cntk.reduce_log_sum_exp(outputs, 1)
    return cntk.reduce_mean(sums - cntk.reduce_sum(outputs * wanted, 1))


def _missed(outputs, targets):
    """The binary cross entropy of each."""
    return cntk.softplus(outputs) - outputs * targets


def _evidence_bound(outputs, targets):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    (width,), (decoded,) = outputs.shape, targets.shape
    middle = (decoded + width) // 2
    mean, spread = cntk.slice(outputs, 0, decoded, middle), cntk.slice(outputs, 0, middle, width)
    apart = 0.5 * cntk.reduce_sum(cntk.square(mean) + cntk.exp(spread) - spread - 1.0)
    missed = _missed(cntk.slice(outputs, 0, 0, decoded), targets)
    return (cntk.reduce_sum(missed) + apart) * (1.0 / width)


# Of a sample.
_DISTANCES = {
    "mean_squares": lambda outputs, targets: cntk.reduce_mean(cntk.square(outputs - targets)),
    "binary_cross_entropy": lambda outputs, targets: cntk.reduce_mean(_missed(outputs, targets)),
    "evidence_bound": _evidence_bound,
    "adversarial": lambda outputs, targets: cntk.reduce_mean(_missed(outputs, targets)),
    # A mini-batch has targets, whatever is made of them.
    "mean_output": lambda outputs, targets: cntk.reduce_mean(outputs + 0.0 * targets),
}


def _sgd(wanted, parameters, labels):
    """CNTK's own learner, and what sets its rate.

    CNTK adds up the gradients of all labels, of all ranks, and takes the rate for one of them.
    """

    def schedule(rate):
        return cntk.learning_parameter_schedule_per_sample(rate / labels)

    learner = cntk.sgd(parameters, schedule(wanted["learning_rate"]))
    return learner, lambda rate: learner.reset_learning_rate(schedule(rate))


def _adadelta(wanted, parameters, labels):
    """CNTK's own learner, by the mean of the gradients of all labels, and what sets its rate."""

    mean = {"minibatch_size": cntk.learners.IGNORE}

    def schedule(rate):
        return cntk.learning_parameter_schedule(rate, **mean)

    rate, rho, epsilon = (wanted[name] for name in ("learning_rate", "rho", "epsilon"))
    learner = cntk.adadelta(parameters, schedule(rate), rho, epsilon, **mean)
    return learner, lambda rate: learner.reset_learning_rate(schedule(rate))


def _rmsprop(wanted, parameters, labels):
    """A learner from CNTK's functions, and what sets its rate: `cntk.rmsprop` looks at signs alone."""
    rate = cntk.parameter((), init=wanted["learning_rate"])
    rho, epsilon = wanted["rho"], wanted["epsilon"]

    def update(parameters, gradients):
        updates = []
        for parameter, gradient in zip(parameters, gradients):
            gradient = gradient * (1.0 / labels)
            average = cntk.constant(0, parameter.shape)
            after = cntk.assign(average, rho * average + (1 - rho) * gradient * gradient)
            step = rate * gradient / (cntk.sqrt(after) + epsilon)
            updates.append(cntk.assign(parameter, parameter - step))
        return cntk.combine(updates)

    def set_rate(value):
        rate.value = np.array(value, np.float32)

    return cntk.universal(update, parameters), set_rate


def _momentum(wanted, parameters, labels):
    """CNTK's own learner, as `_sgd`; without unit gain, a gradient is added as it is."""

    def schedule(rate):
        return cntk.learning_parameter_schedule_per_sample(rate / labels)

    kept = cntk.momentum_schedule(wanted["momentum"], minibatch_size=cntk.learners.IGNORE)
    rate = schedule(wanted["learning_rate"])
    learner = cntk.momentum_sgd(parameters, rate, kept, unit_gain=False)
    return learner, lambda rate: learner.reset_learning_rate(schedule(rate))


def _adam(wanted, parameters, labels):
    """A learner from CNTK's functions: `cntk.adam` adds its epsilon to a root that is not corrected."""
    rate = cntk.parameter((), init=wanted["learning_rate"])
    beta1, beta2, decay = wanted["beta1"], wanted["beta2"], wanted.get("weight_decay", 0.0)

    def update(parameters, gradients):
        updates = []
        for parameter, gradient in zip(parameters, gradients):
            gradient = gradient * (1.0 / labels)
            means, squares = (cntk.constant(0, parameter.shape) for _ in range(2))
            # Powers of both betas, by which the averages, which begin at zero, are corrected.
            powers = [cntk.constant(1, ()) for _ in range(2)]
            mean = cntk.assign(means, beta1 * means + (1 - beta1) * gradient)
            square = cntk.assign(squares, beta2 * squares + (1 - beta2) * gradient * gradient)
            first, second = (
                cntk.assign(power, power * beta) for power, beta in zip(powers, (beta1, beta2))
            )
            root = cntk.sqrt(square / (1.0 - second)) + wanted["epsilon"]
            step = mean / (1.0 - first) / root
            if decay and len(parameter.shape) > 1:
                step = step + decay * parameter
            updates.append(cntk.assign(parameter, parameter - rate * step))
        return cntk.combine(updates)

    def set_rate(value):
        rate.value = np.array(value, np.float32)

    return cntk.universal(update, parameters), set_rate


LEARNERS = {
    "sgd": _sgd,
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adam,
}


def _dense(node, own, value):
    products = cntk.times(value, own["weight"])
    return products + own["bias"] if node["bias"] else products


def _conv(node, own, value):
    value, automatic = _padded(node, value)
    steps = (node["stride"],) * 2
    value = cntk.convolution(own["weight"], value, steps, auto_padding=[False] + [automatic] * 2)
    return value + cntk.reshape(own["bias"], (-1, 1, 1)) if node["bias"] else value


def _max_pool(node, own, value):
    window, steps = ((node[extent],) * 2 for extent in ("kernel", "stride"))
    if not node["padding"]:
        return cntk.pooling(value, cntk.MAX_POOLING, window, steps, auto_padding=[False])
    if not _centred(node):
        value = layers.surrounded(node, value, -1e30)
        return cntk.pooling(value, cntk.MAX_POOLING, window, steps, auto_padding=[False])
    return cntk.pooling(value, cntk.MAX_POOLING, window, steps, auto_padding=[False, True, True])


def _padded(node, value):
    """The images, and whether CNTK is to pad them by itself: it puts each window's centre on a pixel."""
    if not node["padding"]:
        return value, False
    if _centred(node):
        return value, True
    around = (node["padding"],) * 2
    return cntk.pad(value, [(0, 0), around, around], cntk.CONSTANT_PAD, 0.0), False


def _centred(node):
    """Whether CNTK's own padding gives the windows of the specification; it takes no kernel above the image."""
    kernel, sides = node["kernel"], node["in_shape"][1:]
    starts = {(side - 1) % node["stride"] // 2 for side in sides}
    return 2 * node["padding"] == kernel - 1 and starts == {0} and kernel <= min(sides)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: cntk.reshape(
        cntk.pooling(value, cntk.AVG_POOLING, tuple(node["in_shape"][1:])), (node["shape"][0],)
    ),
    "flatten": lambda node, own, value: cntk.reshape(value, (node["shape"][0],)),
    "batch_norm": layers.batch_norm,
    "relu": lambda node, own, value: cntk.relu(value),
    "dropout": lambda node, own, value: cntk.dropout(value, node["rate"], own["seed"]),
    "sigmoid": lambda node, own, value: cntk.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, words: layers.lookup(node, own, words, own["weight"]),
    "lstm": layers.lstm,
    "dense_within": _dense,
    "concat": layers.concat,
    "tanh": lambda node, own, value: cntk.tanh(value),
    "silu": lambda node, own, value: value * cntk.sigmoid(value),
    "bias": lambda node, own, value: value + own["bias"],
    "unstack": layers.unstack,
    "reversal": lambda node, own, value: 2.0 * cntk.stop_gradient(value) - value,
    "grouped_conv": layers.grouped_conv,
    "conv_transpose": layers.conv_transpose,
    "avg_pool": layers.avg_pool,
    "adaptive_avg_pool": layers.adaptive_avg_pool,
    "upsample": layers.upsample,
    "channel_shuffle": layers.channel_shuffle,
    "local_response_norm": layers.local_response_norm,
    "group_norm": layers.group_norm,
    "layer_norm": layers.layer_norm,
    "rms_norm": layers.rms_norm,
    "layer_scale": layers.layer_scale,
    "gelu_tanh": layers.gelu_tanh,
    "rnn": layers.rnn,
    "gru": layers.gru,
    "positions": layers.positions,
    "table": lambda node, own, value: own["weight"],
    "lookup": layers.lookup,
    "unembedding": lambda node, own, value, table: cntk.times_transpose(value, table),
    "attention": layers.attention,
    "patches": layers.patches,
    "class_token": layers.class_token,
    "first_step": layers.first_step,
    "mean_steps": layers.mean_steps,
    "transpose": lambda node, own, value: cntk.swapaxes(value, 0, 1),
    "part": layers.part,
    "stack": layers.stack,
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
}
