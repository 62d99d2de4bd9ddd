"""DyNet 2.1: a new graph in every step, as DyNet is meant to be used, and its own trainers, on a CPU.

Arrays are column-major in DyNet, with the batch last, so that every array of the specification is its own transpose
there: images are (width, height, channels), kernels (width, height, in, out), dense matrices (units, in).
What was chosen here, and why: docs/adapters/dynet.md.
"""

import dynet
import numpy as np

from ...contract import Unsupported
from . import layers

MODES = ("eager",)
LOSSES = (
    "softmax_cross_entropy",
    "mean_squares",
    "binary_cross_entropy",
    "evidence_bound",
    "adversarial",
    "mean_output",
)
OPTIMISERS = ("sgd", "adadelta", "momentum")
TASKS = ("step", "training")
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "dense_within": "units first",
    "positions": "units first",
    "lstm": "units first",
    "gates": "ifog",
    "rnn": "units first",
    "gru": "units first",
}
REASONS = {
    "gpu": "the packages of DyNet are built without CUDA",
    "rmsprop": "the epsilon of DyNet's RMSProp stands inside of the root, and its operators update no parameter",
    "adam": "DyNet's Adam adds its epsilon to a root that is not corrected yet, and its operators update no parameter",
    "adamw": "DyNet has no Adam with a decay beside its step, and its operators update no parameter",
}

_LOWEST = -3e38


def versions():
    """Version of DyNet; its products are Eigen's, which it does not ask for a version."""
    return {"framework_version": dynet.__version__, "blas": "Eigen, compiled into DyNet"}


def build(job):
    """A trainer of the specification. There is no thread number to set: DyNet computes on one thread."""
    dynet.reset_random_seed(job.seed)
    return _Trainer(job)


class _Trainer(object):
    threads = 1

    def __init__(self, job):
        spec, self.layout = job.spec, job.layout
        self.collection = dynet.ParameterCollection()
        self.constants = dynet.ParameterCollection()
        self.trained, self.plan, self.spread = {}, [], set()
        readers = [node for node in spec["nodes"] if "input" in node["inputs"]]
        self.border = _border(readers)
        for node in spec["nodes"]:
            kind = "lookup_parameters" if node["op"] == "embedding" else "parameters"
            make, own = getattr(self.collection, kind + "_from_numpy"), {}
            for role, name in job.own(node).items():
                if node["op"] == "conv_transpose":
                    self.spread.add(name)
                own[role] = self.trained[name] = make(self._entered(name, job.take(name)))
            for role, value in layers.constants(node).items():
                own[role] = self.constants.parameters_from_numpy(value)
            # The border of the batch is there already.
            bare = dict(node, padding=0) if self.border and node is readers[0] else node
            self.plan.append((LAYERS[node["op"]], bare, own))
        self.distance = layers.DISTANCES.get(spec.get("loss"))
        if self.distance:
            rows = job.labels.reshape(len(job.labels), -1)
            self.aims = dynet.ParameterCollection()
            self.targets = self.aims.add_lookup_parameters(rows.shape)
        self._aim(job.labels)
        self._place(spec["input"]["kind"], job.inputs)
        self.trainer = _trainer(self.collection, spec["optimiser"])
        self.trainer.set_clip_threshold(0)
        self.parameters = self.collection.parameter_count()
        self.settings = {
            "convolution": "Eigen's SpatialConvolution",
            "lstm": "vanilla_lstm_gates, of CompactVanillaLSTM",
        }

    def run(self, steps):
        for _ in range(steps):
            last = self._step()
        return last

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self.table.init_from_array(self._rows(self.layout.inputs(inputs)))
            self._aim(self.layout.labels(labels))
            self.trainer.learning_rate = rate
            total, steps = total + self._step(), steps + 1
        return total / steps

    def scores(self, inputs):
        self.table.init_from_array(self._rows(self.layout.inputs(inputs)))
        dynet.renew_cg()
        return self._logits(judging=True).npvalue().T

    def weights(self, names=None):
        names = self.trained if names is None else names
        return {
            name: self.layout.leave(name, self._left(name, self.trained[name].as_array()))
            for name in names
        }

    def _entered(self, name, value):
        """A kernel from the neutral layout to DyNet's; one that spreads pixels is that of a convolution, turned."""
        if name in self.spread and value.ndim == 4:
            value = value.swapaxes(0, 1)[:, :, ::-1, ::-1]
        return value.T if value.ndim == 4 else value

    def _left(self, name, value):
        """The way back."""
        value = value.T if value.ndim == 4 else value
        if name in self.spread and value.ndim == 4:
            value = value[:, :, ::-1, ::-1].swapaxes(0, 1)
        return value

    def _step(self):
        """Takes a step, and returns its loss."""
        dynet.renew_cg()
        loss = dynet.mean_batches(self._losses(self._logits()))
        last = loss.scalar_value()
        loss.backward()
        self.trainer.update()
        return last

    def _aim(self, labels):
        """Takes the classes, or targets, of a mini-batch."""
        if self.distance is None:
            self.labels = [int(label) for label in labels.reshape(-1)]
        else:
            self.targets.init_from_array(labels.reshape(len(labels), -1))

    def _losses(self, outputs):
        """Of each label, or of each sample."""
        if self.distance is None:
            return dynet.pickneglogsoftmax_batch(outputs, self.labels)
        targets = dynet.lookup_batch(self.targets, range(self.batch), update=False)
        return self.distance(outputs, targets)

    def _logits(self, judging=False):
        """Scores of all labels as an expression; no dropout to judge by."""
        values = {"input": self._read()}
        for layer, node, own in self.plan:
            value, more = values[node["inputs"][0]], [values[name] for name in node["inputs"][1:]]
            if not (judging and node["op"] == "dropout"):
                value = layer(node, own, value, *more)
            values[node["name"]] = value
        return value

    def _place(self, kind, inputs):
        """Puts the batch into DyNet's memory, as rows of a table: its inputs are converted from Python in each step."""
        self.batch, self.steps = len(inputs), None
        if kind in ("tokens", "one_hot"):
            self.steps, self.batch = inputs.shape[:2]
            self.tokens = inputs.tolist() if kind == "tokens" else None
        if kind != "tokens":
            self.table = self.constants.lookup_parameters_from_numpy(self._rows(inputs))

    def _rows(self, inputs):
        """The batch as rows, with the border of the first layer."""
        if self.border:
            around = (self.border,) * 2
            inputs = np.pad(inputs, [(0, 0), (0, 0), around, around], "constant")
        self.shape = inputs.shape[:0:-1]
        return inputs.reshape(self.batch * (self.steps or 1), -1)

    def _read(self):
        """The batch as an expression; of a sequence, a list of one for each step, or of the words of each step."""
        if self.steps is None:
            rows = dynet.lookup_batch(self.table, range(self.batch), update=False)
            return dynet.reshape(rows, self.shape, batch_size=self.batch)
        if self.tokens:
            return self.tokens
        starts = range(0, self.steps * self.batch, self.batch)
        return [
            dynet.lookup_batch(self.table, range(start, start + self.batch), update=False)
            for start in starts
        ]


def _trainer(collection, wanted):
    """DyNet's own trainer."""
    rate, rho, epsilon = (wanted.get(name) for name in ("learning_rate", "rho", "epsilon"))
    if wanted["name"] == "adadelta":
        if rate != 1 or {"decay", "after_epochs"} & set(wanted):
            raise Unsupported("DyNet's Adadelta has no learning rate: it is always 1")
        return dynet.AdadeltaTrainer(collection, epsilon, rho)
    if wanted["name"] == "momentum":
        trainer = dynet.MomentumSGDTrainer(collection, rate, wanted["momentum"])
        # Rows that no word of the mini-batch is in move on, too.
        trainer.set_sparse_updates(False)
        return trainer
    return dynet.SimpleSGDTrainer(collection, rate)


def _border(readers):
    """How far around the batch those layers look that read it: with zeros, and alone, only a convolution does."""
    first = readers[0]
    alone = len(readers) == 1 and first["op"] in ("conv", "grouped_conv")
    return first["padding"] if alone else 0


def _dense(node, own, x):
    x = layers.whole(x)
    return (
        dynet.affine_transform([own["bias"], own["weight"], x])
        if node["bias"]
        else own["weight"] * x
    )


def _conv(node, own, x):
    # With an odd kernel and half of it as padding, steps of one are what DyNet calls SAME.
    same = node["stride"] == 1 and node["kernel"] == 2 * node["padding"] + 1
    arrays = [x if same else _padded(node, x, 0.0), own["weight"]] + (
        [own["bias"]] if node["bias"] else []
    )
    return (dynet.conv2d_bias if node["bias"] else dynet.conv2d)(
        *arrays, [node["stride"]] * 2, is_valid=not same
    )


def _max_pool(node, own, x):
    return dynet.maxpooling2d(
        _padded(node, x, _LOWEST), [node["kernel"]] * 2, [node["stride"]] * 2, is_valid=True
    )


def _padded(node, x, filling):
    """Images with a border of `filling`, as far as windows reach: DyNet has no such operation, so it is joined on."""
    if not node["padding"]:
        return x
    shape = node["in_shape"][::-1]
    for axis in (0, 1):
        reach = (node["shape"][2 - axis] - 1) * node["stride"] + node["kernel"]
        before, after = node["padding"], max(0, reach - shape[axis] - node["padding"])
        first, last = [
            [dynet.constant(tuple(shape[:axis] + [border] + shape[axis + 1 :]), filling)]
            if border
            else []
            for border in (before, after)
        ]
        x = dynet.concatenate(first + [x] + last, d=axis)
        shape[axis] += before + after
    return x


def _grouped_conv(node, own, x):
    """One convolution for each group: DyNet's has no groups."""
    groups, outer = node["groups"], node["channels"] // node["groups"]
    inner, made = node["in_shape"][0] // groups, []
    alone = dict(node, in_shape=[inner] + node["in_shape"][1:])
    for group in range(groups):
        start, first = group * inner, group * outer
        mine = {"weight": dynet.pick_range(own["weight"], first, first + outer, 3)}
        if node["bias"]:
            mine["bias"] = dynet.pick_range(own["bias"], first, first + outer)
        made.append(_conv(alone, mine, dynet.pick_range(x, start, start + inner, 2)))
    return dynet.concatenate(made, d=2)


def _conv_transpose(node, own, x):
    """One convolution makes the pixels of each place within a stride as channels, which are then put side by side.

    It does no more products than there are, but for kernels that no number of strides fills.
    """
    stride, batch = node["stride"], x.dim()[1]
    taps = -(-node["kernel"] // stride)
    weight = _filled(own["weight"], node, taps * stride - node["kernel"])
    places = [
        [stride - 1 - across, stride - 1 - down]
        for down in range(stride)
        for across in range(stride)
    ]
    if stride > 1:
        parts = [dynet.strided_select(weight, [stride] * 2, place, []) for place in places]
        weight = dynet.concatenate(parts, d=3)
    height, width = (extent + taps - 1 for extent in node["in_shape"][1:])
    within = {"kernel": taps, "stride": 1, "padding": taps - 1, "bias": False}
    x = _conv(dict(node, shape=[node["channels"], height, width], **within), {"weight": weight}, x)
    x = _side_by_side(x, node, height, width, batch)
    _, down, across = node["shape"]
    start = node["padding"]
    x = dynet.pick_range(dynet.pick_range(x, start, start + across, 0), start, start + down, 1)
    return x + layers.wide(node, own["bias"]) if node["bias"] else x


def _filled(weight, node, missing):
    """A kernel with zeros in front, so that it is a whole number of strides."""
    size, channels = node["kernel"], (node["in_shape"][0], node["channels"])
    if missing:
        weight = dynet.concatenate([dynet.zeros((missing, size) + channels), weight], d=0)
        weight = dynet.concatenate([dynet.zeros((size + missing, missing) + channels), weight], d=1)
    return weight


def _side_by_side(x, node, height, width, batch):
    """Channels, stride by stride, as the pixels of an image so many times as large."""
    stride, channels = node["stride"], node["channels"]
    x = dynet.reshape(x, (width, height * channels, stride, stride), batch_size=batch)
    x = dynet.transpose(x, [2, 0, 1, 3])
    x = dynet.reshape(x, (stride * width, height, channels, stride), batch_size=batch)
    x = dynet.transpose(x, [0, 3, 1, 2])
    return dynet.reshape(x, (stride * width, stride * height, channels), batch_size=batch)


def _lstm(node, own, x):
    units = node["units"]
    # DyNet's gates add one to the forget gate's bias, which the specification does not.
    bias = own["bias"] - dynet.inputVector([0.0] * units + [1.0] * units + [0.0] * 2 * units)
    output = cell = dynet.zeros((units,), batch_size=x[0].dim()[1])
    outputs = []
    for value in x:
        gates = dynet.vanilla_lstm_gates(value, output, own["input"], own["recurrent"], bias)
        cell = dynet.vanilla_lstm_c(cell, gates)
        output = dynet.vanilla_lstm_h(cell, gates)
        outputs.append(output)
    return outputs


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, x: dynet.mean_dim(x, [0, 1], False),
    "flatten": lambda node, own, x: dynet.reshape(x, (node["shape"][0],), batch_size=x.dim()[1]),
    "batch_norm": layers.batch_norm,
    "relu": lambda node, own, x: dynet.rectify(x),
    "dropout": lambda node, own, x: dynet.dropout(x, node["rate"]),
    "sigmoid": lambda node, own, x: dynet.logistic(x),
    "add": lambda node, own, x, y: x + y,
    "embedding": lambda node, own, x: [dynet.lookup_batch(own["weight"], words) for words in x],
    "lstm": _lstm,
    "grouped_conv": _grouped_conv,
    "avg_pool": lambda node, own, x: layers.avg_pool(node, _padded(node, x, 0.0)),
    "upsample": layers.upsample,
    "local_response_norm": layers.local_response_norm,
    "channel_shuffle": layers.channel_shuffle,
    "concat": layers.concat,
    "rnn": layers.rnn,
    "gru": layers.gru,
    "tanh": layers.each(dynet.tanh),
    "part": layers.part,
    "stack": lambda node, own, *values: list(values),
    "unstack": layers.unstack,
    "reversal": layers.each(dynet.flip_gradient),
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
    "dense_within": _dense,
    "conv_transpose": _conv_transpose,
    "adaptive_avg_pool": layers.adaptive_avg_pool,
    "bias": layers.bias,
    "gelu": layers.gelu,
    "gelu_tanh": layers.gelu_tanh,
    "silu": layers.silu,
    "group_norm": layers.group_norm,
    "layer_norm": layers.layer_norm,
    "rms_norm": layers.rms_norm,
    "layer_scale": layers.layer_scale,
    "table": lambda node, own, x: own["weight"],
    "lookup": layers.lookup,
    "unembedding": layers.unembedding,
    "positions": layers.positions,
    "attention": layers.attention,
    "patches": layers.patches,
    "transpose": layers.transpose,
    "class_token": layers.class_token,
    "first_step": layers.first_step,
    "mean_steps": layers.mean_steps,
}
