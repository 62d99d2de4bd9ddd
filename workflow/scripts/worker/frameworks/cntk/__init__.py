"""CNTK 2: a graph of plain functions, trained by a `Trainer` with a learner of CNTK; the mini-batch is a `Value`."""

import os

import cntk
import numpy as np
from cntk.internal.sanitize import sanitize_batch

from shared import specification

from ...contract import Unsupported

MODES = ("graph",)
TASKS = ("step", "training")
KERNELS = "mkl"
DEVICES = ("cpu", "gpu")
REASONS = {
    "tf32": "CNTK is built for CUDA 10, which knows no TF32",
    "gelu": "CNTK has no error function, of which an exact GELU is made",
}


def versions():
    """Returns the version of CNTK, and the library of its matrix products, which is beside CNTK's own."""
    beside = os.listdir(os.path.join(os.path.dirname(cntk.__file__), "libs"))
    blas = sorted(name for name in beside if name.startswith(("libmkl", "libopenblas")))
    return {"framework_version": cntk.__version__, "blas": " ".join(blas)}


def build(job, make=None):
    """Returns a trainer of the specification, by `make` or the one of this module."""
    if job.device == "gpu" and not _has_gpu():
        raise Unsupported("CNTK {} finds no GPU".format(cntk.__version__))
    place = cntk.device.gpu(0) if job.device == "gpu" else cntk.device.cpu()
    cntk.device.try_set_default_device(place)
    cntk.cntk_py.set_max_num_cputhreads(job.threads)
    return (make or Trainer)(job)


def _has_gpu():
    """Tells whether CNTK lists a GPU; without one, it computes on the CPU and does not say so."""
    return any(each.type() == cntk.device.DeviceKind.GPU for each in cntk.device.all_devices())


class Trainer(object):
    settings = {"labels": "sparse", "layout": "channels first"}

    def __init__(self, job):
        spec, inputs, labels = job.spec, job.inputs, job.labels
        self._own, self._kept = {}, {}
        self._classes = classes = specification.count_classes(spec)
        if spec["input"]["kind"] in ("dense", "image"):
            batch = cntk.input_variable(tuple(spec["input"]["shape"]))
            answers = cntk.input_variable(classes, is_sparse=True)
            placed = sanitize_batch(batch, np.asarray(inputs, np.float32))
        else:
            if spec["optimiser"]["name"] == "rmsprop":
                raise Unsupported(
                    "CNTK's functions take no sparse gradients, as those of words are: no rule made of them "
                    "trains these"
                )
            # Both kinds of words are rows of a sparse matrix, one entry each, of which CNTK drops nothing.
            dense = spec["nodes"][0]["op"] == "dropout"
            tokens = inputs if inputs.ndim == 2 else inputs.argmax(-1)
            words = spec["input"].get("vocabulary") or spec["input"]["shape"][-1]
            batch = cntk.sequence.input_variable(words, is_sparse=not dense)
            answers = cntk.sequence.input_variable(classes, is_sparse=True)
            placed = [*np.float32(inputs)] if dense else cntk.Value.one_hot(tokens.tolist(), words)
        self._batch, self._answers = batch, answers
        self._logits = logits = self._connect(job, batch)
        loss = cntk.cross_entropy_with_softmax(logits, answers)
        self._data = {batch: placed, answers: self._one_hot(labels)}
        self._rate = job.learning_rate
        learner, self._set_rate = OPTIMISERS[spec["optimiser"]["name"]](
            spec["optimiser"], logits.parameters, labels.size
        )
        self._trainer = cntk.Trainer(logits, (loss, None), [learner])
        self.parameters = sum(int(np.prod(parameter.shape)) for parameter in logits.parameters)
        self.threads = cntk.cntk_py.get_max_num_cputhreads()

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
            answers = self._one_hot(labels)
            self._trainer.train_minibatch({self._batch: inputs, self._answers: answers})
            total, steps = total + self._trainer.previous_minibatch_loss_average, steps + 1
        return total / steps

    def scores(self, inputs):
        # CNTK drops nothing while a function is evaluated.
        return self._logits.eval({self._batch: inputs})

    def _one_hot(self, labels):
        return cntk.Value.one_hot(labels.tolist(), self._classes)

    def weights(self, names=None):
        return {name: self._own[name].value for name in (self._own if names is None else names)}

    def statistics(self):
        return {name: average.value for name, average in self._kept.items()}

    def _connect(self, job, batch):
        values = {"input": batch}
        for node in job.spec["nodes"]:
            own = {}
            for role, name in job.own(node).items():
                own[role] = self._own[name] = cntk.parameter(init=job.take(name), name=name)
            if node["op"] == "dropout":
                # Layers of one seed would drop the same values.
                own["seed"] = job.seed + len(values)
            is_normal = node["op"] == "batch_norm"
            for role, start in (("mean", 0.0), ("variance", 1.0)) if is_normal else ():
                average = cntk.constant(start, tuple(node["in_shape"][:1]))
                own[role] = self._kept["{}/{}".format(node["name"], role)] = average
            values[node["name"]] = self.layer(node["op"])(
                node, own, *[values[name] for name in node["inputs"]]
            )
        return values[node["name"]]

    def layer(self, kind):
        """Returns the function that makes a layer of a kind."""
        return LAYERS[kind]


def _sgd(wanted, parameters, labels):
    """Returns CNTK's own learner, and what sets its rate.

    CNTK adds up the gradients of all labels, and wants the rate for a single one.
    """

    def schedule(rate):
        return cntk.learning_parameter_schedule_per_sample(rate / labels)

    learner = cntk.sgd(parameters, schedule(wanted["learning_rate"]))
    return learner, lambda rate: learner.reset_learning_rate(schedule(rate))


def _adadelta(wanted, parameters, labels):
    """Returns CNTK's own learner, by the mean gradient of all labels, and what sets its rate."""

    mean = {"minibatch_size": cntk.learners.IGNORE}

    def schedule(rate):
        return cntk.learning_parameter_schedule(rate, **mean)

    rate, rho, epsilon = (wanted[name] for name in ("learning_rate", "rho", "epsilon"))
    learner = cntk.adadelta(parameters, schedule(rate), rho, epsilon, **mean)
    return learner, lambda rate: learner.reset_learning_rate(schedule(rate))


def _rmsprop(wanted, parameters, labels):
    """Returns a learner of CNTK's functions, and what sets its rate: `cntk.rmsprop` uses only signs."""
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


OPTIMISERS = {"sgd": _sgd, "adadelta": _adadelta, "rmsprop": _rmsprop}


def _dense(node, own, value):
    return cntk.times(value, own["weight"]) + own["bias"]


def _conv(node, own, value):
    value, automatic = _padded(node, value)
    steps = (node["stride"],) * 2
    value = cntk.convolution(own["weight"], value, steps, auto_padding=[False] + [automatic] * 2)
    return value + cntk.reshape(own["bias"], (-1, 1, 1)) if node["bias"] else value


def _max_pool(node, own, value):
    window, steps = ((node[extent],) * 2 for extent in ("kernel", "stride"))
    value, automatic = _padded(node, value, -1e30)
    padding = [False] + [automatic] * 2
    return cntk.pooling(value, cntk.MAX_POOLING, window, steps, auto_padding=padding)


def _padded(node, value, filling=0.0):
    """Returns the images, and whether CNTK is to pad them itself: it puts each window's centre on a pixel."""
    if node["padding"] and _centred(node):
        return value, True
    return _surrounded(node, value, filling), False


def _centred(node):
    """Tells whether CNTK's own padding gives the specification's windows; no kernel may be larger than the image."""
    kernel, sides = node["kernel"], node["in_shape"][1:]
    starts = {(side - 1) % node["stride"] // 2 for side in sides}
    return 2 * node["padding"] == kernel - 1 and starts == {0} and kernel <= min(sides)


def _grouped_conv(node, own, value):
    """Returns a convolution for each group, in succession: on CPUs, CNTK has no convolution in groups."""
    groups, steps = node["groups"], (node["stride"],) * 2
    width, count = node["in_shape"][0] // groups, node["channels"] // groups
    value = _surrounded(node, value)
    made = [
        cntk.convolution(
            cntk.slice(own["weight"], 0, group * count, (group + 1) * count),
            cntk.slice(value, 0, group * width, (group + 1) * width),
            steps,
            auto_padding=[False] * 3,
        )
        for group in range(groups)
    ]
    value = cntk.splice(*made, axis=0) if groups > 1 else made[0]
    return value + cntk.reshape(own["bias"], (-1, 1, 1)) if node["bias"] else value


def _surrounded(node, value, filling=0.0):
    """Returns an image with its padding."""
    around = (node["padding"],) * 2
    if not node["padding"]:
        return value
    return cntk.pad(value, [(0, 0), around, around], cntk.CONSTANT_PAD, filling)


def _avg_pool(node, own, value):
    """Returns an average pool in which padding counts."""
    window, steps = ((node[extent],) * 2 for extent in ("kernel", "stride"))
    value = _surrounded(node, value)
    return cntk.pooling(value, cntk.AVG_POOLING, window, steps, auto_padding=[False])


def _channel_shuffle(node, own, value):
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = cntk.reshape(value, (groups, channels // groups, height, width))
    return cntk.reshape(cntk.transpose(parts, (1, 0, 2, 3)), tuple(node["shape"]))


def _local_response_norm(node, own, value):
    channels, half = node["shape"][0], node["size"] // 2
    around = [(half, half), (0, 0), (0, 0)]
    squares = cntk.pad(cntk.square(value), around, cntk.CONSTANT_PAD, 0.0)
    near = sum(cntk.slice(squares, 0, first, first + channels) for first in range(node["size"]))
    scale = 1.0 + near * (1.0 / (node["inverse_alpha"] * node["size"]))
    return value * cntk.exp(-0.75 * cntk.log(scale))


def _batch_norm(node, own, value):
    """Returns CNTK's own layer, which writes its running averages into the constants that it gets."""
    arrays = (own[role] for role in ("gamma", "beta", "mean", "variance"))
    how = {"epsilon": specification.BATCH_NORM_EPSILON, "running_count": cntk.constant(0)}
    return cntk.batch_normalization(value, *arrays, True, use_cudnn_engine=False, **how)


def _lstm(node, own, value):
    """Returns a loop; the product with the inputs is outside of it, so that CNTK computes it once for all steps."""
    units = node["units"]

    @cntk.Function
    def step(output, cell, given):
        sums = given + cntk.times(output, own["recurrent"])
        i, f, g, o = (cntk.slice(sums, -1, gate * units, (gate + 1) * units) for gate in range(4))
        cell = cntk.sigmoid(f) * cell + cntk.sigmoid(i) * cntk.tanh(g)
        return cntk.sigmoid(o) * cntk.tanh(cell), cell

    return cntk.layers.Recurrence(step)(cntk.times(value, own["input"]) + own["bias"])


def _rnn(node, own, value):
    """Returns a loop, as for an LSTM."""

    @cntk.Function
    def step(output, given):
        return cntk.tanh(given + cntk.times(output, own["recurrent"]))

    return cntk.layers.Recurrence(step)(cntk.times(value, own["input"]) + own["bias"])


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: cntk.reshape(
        cntk.pooling(value, cntk.AVG_POOLING, tuple(node["in_shape"][1:])), (node["shape"][0],)
    ),
    "flatten": lambda node, own, value: cntk.reshape(value, (node["shape"][0],)),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: cntk.relu(value),
    "dropout": lambda node, own, value: cntk.dropout(value, node["rate"], own["seed"]),
    "sigmoid": lambda node, own, value: cntk.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, words: cntk.times(words, own["weight"]),
    "lstm": _lstm,
    "concat": lambda node, own, *values: cntk.splice(*values, axis=0),
    "grouped_conv": _grouped_conv,
    "avg_pool": _avg_pool,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "rnn": _rnn,
}
