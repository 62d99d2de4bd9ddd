"""DyNet 2.1: a new graph in every step, as DyNet is meant to be used, and its own trainer, on a CPU.

DyNet's arrays are column-major with the batch last, so that every array of the specification is transposed: images are
(width, height, channels), kernels (width, height, in, out), dense matrices (units, in).
"""

import dynet
import numpy as np

from shared import specification

MODES = ("eager",)
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "lstm": "units first",
    "gates": "ifog",
    "rnn": "units first",
}
REASONS = {
    "gpu": "the packages of DyNet are built without CUDA",
    "rmsprop": "the epsilon of DyNet's RMSProp stands inside of the root, and its operators update no parameter",
    "adam": "DyNet's Adam adds its epsilon to a root that is not corrected yet, and its operators update no parameter",
    "adamw": "DyNet has no Adam with a decay beside its step, and its operators update no parameter",
}

_LOWEST = -3e38


def versions():
    """Returns DyNet's version; its products are Eigen's, whose version DyNet does not know."""
    return {"framework_version": dynet.__version__, "blas": "Eigen, compiled into DyNet"}


def build(job):
    """Returns a trainer of the specification. There is no thread number to set: DyNet computes on one thread."""
    return _Trainer(job)


class _Trainer(object):
    threads = 1

    def __init__(self, job):
        spec, self.layout = job.spec, job.layout
        self.collection = dynet.ParameterCollection()
        self.constants = dynet.ParameterCollection()
        self.trained, self.plan = {}, []
        readers = [node for node in spec["nodes"] if "input" in node["inputs"]]
        self.border = _border(readers)
        for node in spec["nodes"]:
            kind = "lookup_parameters" if node["op"] == "embedding" else "parameters"
            make = getattr(self.collection, kind + "_from_numpy")
            own = {}
            for role, name in job.own(node).items():
                own[role] = self.trained[name] = make(_turned(job.take(name)))
            # The border of the batch is there already.
            bare = dict(node, padding=0) if self.border and node is readers[0] else node
            self.plan.append((LAYERS[node["op"]], bare, own))
        self.labels = [int(label) for label in job.labels.reshape(-1)]
        self._place(spec["input"]["kind"], job.inputs)
        self.trainer = dynet.SimpleSGDTrainer(self.collection, job.learning_rate)
        self.trainer.set_clip_threshold(0)
        self.parameters = self.collection.parameter_count()
        self.settings = {
            "convolution": "Eigen's SpatialConvolution",
            "lstm": "vanilla_lstm_gates, of CompactVanillaLSTM",
        }

    def run(self, steps):
        for _ in range(steps):
            dynet.renew_cg()
            losses = dynet.pickneglogsoftmax_batch(self._logits(), self.labels)
            loss = dynet.mean_batches(losses)
            last = loss.scalar_value()
            loss.backward()
            self.trainer.update()
        return last

    def weights(self, names=None):
        names = self.trained if names is None else names
        return {
            name: self.layout.leave(name, _turned(self.trained[name].as_array())) for name in names
        }

    def _logits(self):
        """Returns the scores of all labels as an expression."""
        values = {"input": self._read()}
        for layer, node, own in self.plan:
            value = layer(node, own, *[values[name] for name in node["inputs"]])
            values[node["name"]] = value
        return value

    def _place(self, kind, inputs):
        """Puts the batch into DyNet's memory, as rows of a table; inputs are converted from Python in each step."""
        self.batch, self.steps = len(inputs), None
        if kind in ("tokens", "one_hot"):
            self.steps, self.batch = inputs.shape[:2]
            self.tokens = inputs.tolist() if kind == "tokens" else None
        if kind != "tokens":
            self.table = self.constants.lookup_parameters_from_numpy(self._rows(inputs))

    def _rows(self, inputs):
        """Returns the batch as rows, with the border of the first layer."""
        if self.border:
            around = (self.border,) * 2
            inputs = np.pad(inputs, [(0, 0), (0, 0), around, around], "constant")
        self.shape = inputs.shape[:0:-1]
        return inputs.reshape(self.batch * (self.steps or 1), -1)

    def _read(self):
        """Returns the batch as an expression; a sequence as a list of one for each step, or for its words."""
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


def _turned(value):
    """Turns a kernel from the neutral layout to DyNet's, or back; returns anything else as it is."""
    return value.T if value.ndim == 4 else value


def _border(readers):
    """Returns the width of the zeros around the batch: the padding of its only reader, if a convolution; else 0."""
    first = readers[0]
    alone = len(readers) == 1 and first["op"] in ("conv", "grouped_conv")
    return first["padding"] if alone else 0


def _dense(node, own, x):
    return dynet.affine_transform([own["bias"], own["weight"], _whole(x)])


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
    """Joins a border of `filling` to images, as far as windows reach: DyNet has no such operation."""
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
    """Returns one convolution for each group: DyNet's has no groups."""
    groups, outer = node["groups"], node["channels"] // node["groups"]
    inner = node["in_shape"][0] // groups
    made = []
    alone = dict(node, in_shape=[inner] + node["in_shape"][1:])
    for group in range(groups):
        start, first = group * inner, group * outer
        mine = {"weight": dynet.pick_range(own["weight"], first, first + outer, 3)}
        made.append(_conv(alone, mine, dynet.pick_range(x, start, start + inner, 2)))
    return dynet.concatenate(made, d=2)


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


def _whole(x):
    """Returns the steps of a sequence as one batch, so that one product takes them all."""
    return dynet.concatenate_to_batch(x) if isinstance(x, list) else x


def _rnn(node, own, x):
    outputs = []
    for value in x:
        before = [own["recurrent"], outputs[-1]] if outputs else []
        sums = dynet.affine_transform([own["bias"], own["input"], value] + before)
        outputs.append(dynet.tanh(sums))
    return outputs


def _avg_pool(node, x):
    """Returns the mean of one strided part of the image for each place in a window: DyNet has no average pooling."""
    stride, kernel = node["stride"], node["kernel"]
    reach = [(extent - 1) * stride + 1 for extent in node["shape"][:0:-1]]
    parts = [
        dynet.strided_select(
            x, [stride, stride], [across, down], [across + reach[0], down + reach[1]]
        )
        for down in range(kernel)
        for across in range(kernel)
    ]
    return dynet.average(parts)


def _local_response_norm(node, own, x):
    (channels, height, width), half = node["in_shape"], node["size"] // 2
    border = [dynet.zeros((width, height, half), batch_size=x.dim()[1])]
    squares = dynet.concatenate(border + [dynet.square(x)] + border, d=2)
    parts = [dynet.pick_range(squares, at, at + channels, 2) for at in range(node["size"])]
    sums = dynet.esum(parts) * (1 / (node["inverse_alpha"] * node["size"])) + 1.0
    return dynet.cmult(x, dynet.exp(dynet.log(sums) * -0.75))


def _channel_shuffle(node, own, x):
    groups, (channels, height, width) = node["groups"], node["in_shape"]
    batch = x.dim()[1]
    parts = dynet.reshape(x, (width * height, channels // groups, groups), batch_size=batch)
    parts = dynet.transpose(parts, [0, 2, 1])
    return dynet.reshape(parts, (width, height, channels), batch_size=batch)


def _concat(node, own, *values):
    """Joins images by their channels."""
    return dynet.concatenate(list(values), d=2)


def _batch_norm(node, own, x):
    """Normalises by primitives: DyNet has no batch normalisation."""
    centred = x - _wide(node, _of_channels(x))
    variance = _of_channels(dynet.square(centred))
    scale = dynet.cdiv(own["gamma"], dynet.sqrt(variance + specification.BATCH_NORM_EPSILON))
    return dynet.cmult(centred, _wide(node, scale)) + _wide(node, own["beta"])


def _of_channels(x):
    """Returns the mean of each channel, first of each image, since one long sum in float32 is less exact."""
    (width, height, channels), batch = x.dim()
    columns = dynet.reshape(x, (width * height, channels), batch_size=batch)
    # A product, since what DyNet repeats for itself takes five times as long.
    means = dynet.constant((1, width * height), 1.0 / (width * height)) * columns
    return dynet.mean_batches(dynet.reshape(means, (channels,), batch_size=batch))


def _wide(node, values):
    """Returns one number a channel, in a shape to be combined with images."""
    channels, height, width = node["shape"]
    rows = dynet.ones((width * height, 1)) * dynet.reshape(values, (1, channels))
    return dynet.reshape(rows, (width, height, channels))


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, x: dynet.mean_dim(x, [0, 1], False),
    "flatten": lambda node, own, x: dynet.reshape(x, (node["shape"][0],), batch_size=x.dim()[1]),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, x: dynet.rectify(x),
    "sigmoid": lambda node, own, x: dynet.logistic(x),
    "add": lambda node, own, x, y: x + y,
    "embedding": lambda node, own, x: [dynet.lookup_batch(own["weight"], words) for words in x],
    "lstm": _lstm,
    "grouped_conv": _grouped_conv,
    "avg_pool": lambda node, own, x: _avg_pool(node, _padded(node, x, 0.0)),
    "local_response_norm": _local_response_norm,
    "channel_shuffle": _channel_shuffle,
    "concat": _concat,
    "rnn": _rnn,
}
