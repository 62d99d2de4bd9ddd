"""TensorFlow 0.12 to 1.15: one graph of plain operations, run by a session, with TensorFlow's own optimisers.

What was chosen here, and by which measured ratios: docs/adapters/tensorflow1.md.
"""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import errors
from tensorflow.python.ops import gen_nn_ops

from shared import specification

from ...contract import Unsupported

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
EXCHANGES = {"sync": "ranks", "async": "asynchronous"}
LAYOUT = {"images": "channels last", "sequences": "steps first"}
DEVICES = ("cpu", "gpu")
REASONS = {"tf32": "TensorFlow 1 is built for CUDA 10, which knows no TF32"}

GPU = "/gpu:0"
# What TensorFlow puts beside a TensorArray; a GPU has these.
_WITH_ARRAYS = ("Const", "Identity", "Range")
# Their Adadelta writes its average of steps before it takes the step.
_OLD = tuple(map(int, tf.__version__.split(".")[:2])) < (1, 15)
# Before 1.0, tf.split and tf.concat took their axis first, and tf.split_v was the one to come.
_AXIS_FIRST = hasattr(tf, "split_v")


def versions():
    """Versions of TensorFlow and of its compiler, where it names that."""
    found = {"framework_version": tf.__version__}
    if hasattr(tf, "COMPILER_VERSION"):
        found["build"] = tf.COMPILER_VERSION
    return found


def build(job):
    """A trainer whose graph and session are its own."""
    settings = tf.ConfigProto(
        intra_op_parallelism_threads=job.threads,
        inter_op_parallelism_threads=1,
        allow_soft_placement=False,
    )
    # What a cell uses of a GPU's memory is a measurement.
    settings.gpu_options.allow_growth = True
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(job.seed)
        session = tf.Session(graph=graph, config=settings)
        if job.device == "gpu" and not _has_gpu(session):
            raise Unsupported("TensorFlow {} finds no GPU".format(tf.__version__))
        return Trainer(session, job) if job.device == "cpu" else _on_gpu(session, job)


def _on_gpu(session, job):
    """A trainer whose operations are all on the GPU. Raises Unsupported where one is not, or has no kernel there."""
    # Integers of 32 bits lie in the memory of the host.
    job.inputs, job.labels = (
        values.astype(np.int64) if values.dtype == np.int32 else values
        for values in (job.inputs, job.labels)
    )
    try:
        with tf.device(GPU):
            wanted = tf.constant(0.0).device
            trainer = Trainer(session, job)
    except errors.InvalidArgumentError as error:
        if "Cannot assign a device" not in str(error):
            raise
        raise Unsupported("TensorFlow has no code for a GPU for one operation: " + error.message)
    left = [each.name for each in session.graph.get_operations() if _elsewhere(each, wanted)]
    if left:
        words = "{} operations would be computed elsewhere than on the GPU, such as {}"
        raise Unsupported(words.format(len(left), left[0]))
    return trainer


def _elsewhere(operation, wanted):
    """Whether an operation may be computed on another device. A TensorArray and what belongs to it ask for none."""
    follows = operation.type.startswith("TensorArray") or operation.type in _WITH_ARRAYS
    return operation.device != wanted and not (follows and not operation.device)


def _has_gpu(session):
    """Whether a session lists a GPU, which it then computes on; it takes the CPU without a word where it does not."""
    return any(each.device_type == "GPU" for each in session.list_devices())


class Trainer(object):
    settings = {"layout": "channels last, time first", "loop": "while_loop"}

    def __init__(self, session, job):
        self._session, self._layout, self._nodes = session, job.layout, job.spec["nodes"]
        self._variables, self._starts = {}, {}
        self._place = GPU if job.device == "gpu" else None
        # What is fed in place of these is read by the same graph.
        self._batch = self._variable(job.inputs, trainable=False).value()
        distance = _DISTANCES.get(job.spec.get("loss"))
        # Targets keep their shape; labels are those of all steps.
        self._answered = (
            (lambda labels: labels) if distance else (lambda labels: labels.reshape(-1))
        )
        self._answers = self._variable(self._answered(job.labels), trainable=False).value()
        self._rate = tf.constant(job.learning_rate, tf.float32)
        for name in job.layout.names:
            self._variables[name] = self._variable(job.take(name))
        self._loss = (distance or _cross_entropy)(self._connect(), self._answers)
        self._scores = None
        # Gradients of a mean need no outputs (an RBM's energies), which would be those of new weights. Of another loss
        # they do, and to wait for it took 1.02 of the time of an LSTM.
        first = [self._loss] if job.spec.get("loss") == "mean_output" else []
        with tf.control_dependencies(first):
            self._fetched = [self._loss, _update(job.spec["optimiser"], self._loss, self._rate)]
        session.run(tf.global_variables_initializer(), self._starts)
        del self._starts
        self.threads = job.threads
        self.parameters = sum(
            variable.get_shape().num_elements() for variable in tf.trainable_variables()
        )

    def run(self, steps):
        for _ in range(steps):
            loss = self._session.run(self._fetched)[0]
        # A session returns when everything that it was asked for is done.
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            fed = {
                self._batch: self._layout.inputs(inputs),
                self._answers: self._answered(self._layout.labels(labels)),
                self._rate: rate,
            }
            total, steps = total + float(self._session.run(self._fetched, fed)[0]), steps + 1
        return total / steps

    def scores(self, inputs):
        if self._scores is None:
            with self._session.graph.as_default(), tf.device(self._place):
                self._scores = self._connect(judging=True)
        return self._session.run(self._scores, {self._batch: self._layout.inputs(inputs)})

    def weights(self, names=None):
        wanted = sorted(self._variables) if names is None else names
        values = self._session.run([self._variables[name] for name in wanted])
        return {name: self._layout.leave(name, value) for name, value in zip(wanted, values)}

    def _connect(self, judging=False):
        """Scores of all labels, (labels, classes); of sequences in the order step, sample; no dropout to judge by."""
        values = {"input": self._batch}
        least = _not_negative(self._nodes)
        for node in self._nodes:
            op, (value, *more) = node["op"], [values[name] for name in node["inputs"]]
            if op == "max_pool" and node["inputs"][0] not in least:
                node, value = _padded(node, value)
            own = {
                name.split("/")[1]: variable
                for name, variable in self._variables.items()
                if name.split("/")[0] == node["name"]
            }
            if not (judging and op == "dropout"):
                value = LAYERS[op](node, own, value, *more)
            values[node["name"]] = value
        return _rows(value)

    def _variable(self, value, trainable=True):
        """A variable that holds `value`. By way of a placeholder: a graph may not hold 2 GiB of constants."""
        start = tf.placeholder(value.dtype, value.shape)
        self._starts[start] = value
        return tf.Variable(start, trainable=trainable)


def _cross_entropy(logits, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    )


def _missed(logits, targets):
    """The binary cross entropy of each."""
    return tf.nn.softplus(logits) - logits * targets


def _evidence_bound(outputs, targets):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    decoded, width = _shape(targets)[1], _shape(outputs)[1]
    code = (width - decoded) // 2
    mean, spread = outputs[:, decoded : decoded + code], outputs[:, decoded + code :]
    apart = 0.5 * tf.reduce_sum(tf.square(mean) + tf.exp(spread) - spread - 1)
    missed = tf.reduce_sum(_missed(outputs[:, :decoded], targets))
    return (missed + apart) / (_shape(outputs)[0] * width)


_DISTANCES = {
    "mean_squares": lambda outputs, targets: tf.reduce_mean(tf.square(outputs - targets)),
    "binary_cross_entropy": lambda logits, targets: tf.reduce_mean(_missed(logits, targets)),
    "evidence_bound": _evidence_bound,
    "adversarial": lambda logits, targets: tf.reduce_mean(_missed(logits, targets)),
    "mean_output": lambda outputs, targets: tf.reduce_mean(outputs),
}


def _update(wanted, loss, rate):
    """The operation that trains all parameters, when all gradients are known: TensorFlow's own where it has the rule.

    The epsilon of its RMSProp stands inside of the root, and its averages begin with 1.
    """
    if wanted["name"] == "sgd":
        return tf.train.GradientDescentOptimizer(rate).minimize(loss)
    if wanted["name"] == "adadelta" and not _OLD:
        return tf.train.AdadeltaOptimizer(rate, wanted["rho"], wanted["epsilon"]).minimize(loss)
    variables = tf.trainable_variables()
    updates = []
    for variable, gradient in zip(variables, tf.tuple(tf.gradients(loss, variables))):
        step, averages = _STEPS[wanted["name"]](wanted, variable, gradient)
        updates += averages + [tf.assign_sub(variable, rate * step)]
    return tf.group(*updates)


def _adadelta(wanted, variable, gradient):
    """The step of a parameter at a rate of 1, and the updates of its averages."""
    rho, epsilon = wanted["rho"], wanted["epsilon"]
    squares, steps = _average(variable), _average(variable)
    after = rho * squares + (1 - rho) * tf.square(gradient)
    step = gradient * tf.sqrt(steps + epsilon) * tf.rsqrt(after + epsilon)
    moved = rho * steps + (1 - rho) * tf.square(step)
    return step, [tf.assign(squares, after), tf.assign(steps, moved)]


def _rmsprop(wanted, variable, gradient):
    """The step of a parameter at a rate of 1, and the update of its average."""
    squares = _average(variable)
    after = wanted["rho"] * squares + (1 - wanted["rho"]) * tf.square(gradient)
    return gradient / (tf.sqrt(after) + wanted["epsilon"]), [tf.assign(squares, after)]


def _average(variable):
    """A running average of what has the shape of a parameter."""
    return tf.Variable(tf.zeros(_shape(variable)), trainable=False)


def _momentum(wanted, variable, gradient):
    kept = _average(variable)
    after = wanted["momentum"] * kept + tf.convert_to_tensor(gradient)
    return after, [tf.assign(kept, after)]


def _adam(wanted, variable, gradient):
    # What is looked up has gradients of some rows.
    gradient, beta1, beta2 = tf.convert_to_tensor(gradient), wanted["beta1"], wanted["beta2"]
    means, squares, taken = (
        _average(variable),
        _average(variable),
        tf.Variable(0.0, trainable=False),
    )
    mean = beta1 * means + (1 - beta1) * gradient
    square, now = beta2 * squares + (1 - beta2) * tf.square(gradient), taken + 1
    # The averages begin at zero.
    root = tf.sqrt(square / (1 - tf.pow(beta2, now))) + wanted["epsilon"]
    step = mean / (1 - tf.pow(beta1, now)) / root
    return step, [tf.assign(means, mean), tf.assign(squares, square), tf.assign(taken, now)]


def _adamw(wanted, variable, gradient):
    step, averages = _adam(wanted, variable, gradient)
    decayed = wanted["weight_decay"] * variable if len(_shape(variable)) > 1 else 0.0
    return step + decayed, averages


_STEPS = {
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adamw,
}


def _shape(value):
    return value.get_shape().as_list()


def _rows(value):
    return value if len(_shape(value)) == 2 else tf.reshape(value, [-1, _shape(value)[-1]])


def _dense(node, own, value):
    rows = tf.matmul(_rows(value), own["weight"])
    rows = tf.nn.bias_add(rows, own["bias"]) if node["bias"] else rows
    return (
        rows if len(_shape(value)) == 2 else tf.reshape(rows, _shape(value)[:-1] + [node["units"]])
    )


def _conv(node, own, value):
    same = node["stride"] == 1 and 2 * node["padding"] == node["kernel"] - 1
    value = value if same else _pad(node, value)
    steps = [1, node["stride"], node["stride"], 1]
    value = tf.nn.conv2d(value, own["weight"], steps, "SAME" if same else "VALID")
    return tf.nn.bias_add(value, own["bias"]) if node["bias"] else value


def _max_pool(node, own, value):
    window, steps = ([1, node[extent], node[extent], 1] for extent in ("kernel", "stride"))
    return tf.nn.max_pool(_pad(node, value), window, steps, "VALID")


def _not_negative(nodes):
    """The names of nodes whose outputs are never below zero."""
    found = set()
    for node in nodes:
        if node["op"] == "relu" or (
            node["op"] in ("max_pool", "avg_pool", "concat", "local_response_norm")
            and found.issuperset(node["inputs"])
        ):
            found.add(node["name"])
    return found


def _padded(node, value):
    """A pool and its input, padded with what no maximum is: with zeros, it is right behind ReLUs alone."""
    if node["padding"] and _OLD:
        raise Unsupported(
            "before TensorFlow 1.15 a pool is padded with zeros, as is right behind ReLUs"
        )
    return dict(node, padding=0), _pad(node, value, constant_values=value.dtype.min)


def _pad(node, value, **filling):
    around = [node["padding"]] * 2
    return tf.pad(value, [[0, 0], around, around, [0, 0]], **filling) if node["padding"] else value


def _batch_norm(node, own, value):
    # tf.nn's own function raises an epsilon of 1e-5 to 1.001e-5.
    normalise = getattr(gen_nn_ops, "_fused_batch_norm", None) or gen_nn_ops.fused_batch_norm
    fixed = {"mean": [], "variance": [], "epsilon": specification.BATCH_NORM_EPSILON}
    return normalise(value, own["gamma"], own["beta"], **fixed)[0]


def _lstm(node, own, value):
    given = _products(own, value)

    def move(step, output, cell):
        sums = given.read(step) + tf.matmul(output, own["recurrent"])
        i, f, g, o = tf.split(1, 4, sums) if _AXIS_FIRST else tf.split(sums, 4, 1)
        cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(cell), cell

    return _recur(node, value, move, 2)


def _rnn(node, own, value):
    given = _products(own, value)

    def move(step, output):
        return (tf.tanh(given.read(step) + tf.matmul(output, own["recurrent"])),)

    return _recur(node, value, move, 1)


def _gru(node, own, value):
    given, units = _products(own, value), node["units"]

    def move(step, output):
        arriving, inner = given.read(step), tf.matmul(output, own["recurrent"])
        gates = tf.sigmoid(arriving[:, : 2 * units] + inner[:, : 2 * units])
        reset, update = gates[:, :units], gates[:, units:]
        new = tf.tanh(arriving[:, 2 * units :] + reset * inner[:, 2 * units :])
        return (new + update * (output - new),)

    return _recur(node, value, move, 1)


def _products(own, value):
    """Of each step with the inputs, as one large one in place of one for each step; to be read in a loop."""
    products = tf.nn.bias_add(tf.matmul(_rows(value), own["input"]), own["bias"])
    return _unstack(tf.reshape(products, _shape(value)[:2] + [-1]))


def _recur(node, value, move, count):
    """Outputs of a loop: of a step and `count` states, `move` makes the next ones; the first is the output."""
    steps, batch, _ = _shape(value)

    def forward(step, outputs, *states):
        states = move(step, *states)
        return (step + 1, outputs.write(step, states[0])) + states

    begun = (0, tf.TensorArray(tf.float32, steps)) + (tf.zeros([batch, node["units"]]),) * count
    outputs = tf.while_loop(lambda step, *_: step < steps, forward, begun)[1]
    outputs = outputs.stack() if hasattr(outputs, "stack") else outputs.pack()
    outputs.set_shape([steps, batch, node["units"]])
    return outputs


def _unstack(value):
    """The steps of a sequence, to be read in a loop."""
    array = tf.TensorArray(tf.float32, _shape(value)[0])
    return array.unstack(value) if hasattr(array, "unstack") else array.unpack(value)


def _gelu(node, own, value):
    return 0.5 * value * (1.0 + tf.erf(value * 0.5**0.5))


def _gelu_tanh(node, own, value):
    return 0.5 * value * (1.0 + tf.tanh(0.7978845608028654 * (value + 0.044715 * value**3)))


def _last_axis(value):
    return [len(_shape(value)) - 1]


def _layer_norm(node, own, value):
    centred = value - tf.reduce_mean(value, _last_axis(value), True)
    variance = tf.reduce_mean(tf.square(centred), _last_axis(value), True)
    value = centred * (tf.rsqrt(variance + node["epsilon"]) * own["weight"])
    return value + own["bias"] if node["bias"] else value


def _rms_norm(node, own, value):
    square = tf.reduce_mean(tf.square(value), _last_axis(value), True)
    return value * tf.rsqrt(square + node["epsilon"]) * own["weight"]


def _positions(node, own, value):
    rows = [step // node["each"] for step in range(node["shape"][0])]
    return value + tf.expand_dims(tf.gather(own["weight"], rows), 1)


def _unembedding(node, own, value, table):
    rows = tf.matmul(_rows(value), table, transpose_b=True)
    return tf.reshape(rows, _shape(value)[:-1] + node["shape"][-1:])


def _attention(node, own, value):
    steps, batch, features = _shape(value)
    size = features // (3 * node["heads"])
    value = tf.reshape(value, [steps, batch, 3, node["heads"], size])
    # Each (batch, heads, steps, size).
    q, k, v = tf.unstack(tf.transpose(value, [2, 1, 3, 0, 4]))
    scores = tf.matmul(q * size**-0.5, k, transpose_b=True)
    if node.get("causal"):
        later = [[-1e30 * (other > step) for other in range(steps)] for step in range(steps)]
        scores += tf.constant(later, tf.float32)
    found = tf.matmul(tf.nn.softmax(scores), v)
    return tf.reshape(tf.transpose(found, [2, 0, 1, 3]), [steps, batch, -1])


def _patches(node, own, value):
    batch, channels = _shape(value)[0], _shape(value)[-1]
    return tf.transpose(tf.reshape(value, [batch, -1, channels]), [1, 0, 2])


def _class_token(node, own, value):
    first = tf.zeros([1] + _shape(value)[1:]) + own["weight"]
    return _concat([first, value], 0)


def _grouped_conv(node, own, value):
    """Kernels are (out, in / groups, height, width), as the network has them."""
    groups, stride, weight = node["groups"], node["stride"], own["weight"]
    padded, turned = _pad(node, value), tf.transpose(weight, [2, 3, 1, 0])
    if groups == node["in_shape"][0]:
        kernel, filters = node["kernel"], tf.transpose(weight, [2, 3, 0, 1])
        filters = tf.reshape(filters, [kernel, kernel, groups, -1])
        made = tf.nn.depthwise_conv2d(padded, filters, [1, stride, stride, 1], "VALID")
    else:
        # It has no convolution in groups on CPUs.
        pairs = zip(_split(padded, groups), _split(turned, groups))
        steps = [1, stride, stride, 1]
        made = _concat([tf.nn.conv2d(*pair, strides=steps, padding="VALID") for pair in pairs], 3)
    return tf.nn.bias_add(made, own["bias"]) if node["bias"] else made


def _conv_transpose(node, own, value):
    """Kernels are (in, out, height, width), as the network has them."""
    channels, height, width = node["shape"]
    around, stride = node["padding"], node["stride"]
    whole = [_shape(value)[0], height + 2 * around, width + 2 * around, channels]
    turned = tf.transpose(own["weight"], [2, 3, 1, 0])
    made = tf.nn.conv2d_transpose(value, turned, whole, [1, stride, stride, 1], "VALID")
    made = made[:, around : around + height, around : around + width]
    return tf.nn.bias_add(made, own["bias"]) if node["bias"] else made


def _split(value, parts):
    """Equal parts of the last axis."""
    axis = len(_shape(value)) - 1
    return tf.split(axis, parts, value) if _AXIS_FIRST else tf.split(value, parts, axis)


def _concat(values, axis):
    return tf.concat(axis, values) if _AXIS_FIRST else tf.concat(values, axis)


def _avg_pool(node, own, value):
    window, steps = ([1, node[extent], node[extent], 1] for extent in ("kernel", "stride"))
    # Padding counts.
    return tf.nn.avg_pool(_pad(node, value), window, steps, "VALID")


def _upsample(node, own, value):
    batch, height, width, channels = _shape(value)
    factor = node["factor"]
    value = tf.reshape(value, [batch, height, 1, width, 1, channels])
    value = tf.tile(value, [1, 1, factor, 1, factor, 1])
    return tf.reshape(value, [batch, height * factor, width * factor, channels])


def _channel_shuffle(node, own, value):
    shape, groups = _shape(value), node["groups"]
    parts = tf.reshape(value, shape[:3] + [groups, shape[3] // groups])
    return tf.reshape(tf.transpose(parts, [0, 1, 2, 4, 3]), shape)


def _local_response_norm(node, own, value):
    alpha = 1.0 / (node["inverse_alpha"] * node["size"])
    return tf.nn.local_response_normalization(value, node["size"] // 2, 1.0, alpha, 0.75)


def _group_norm(node, own, value):
    shape = _shape(value)
    parts = tf.reshape(value, shape[:3] + [node["groups"], shape[3] // node["groups"]])
    centred = parts - tf.reduce_mean(parts, [1, 2, 4], True)
    variance = tf.reduce_mean(tf.square(centred), [1, 2, 4], True)
    normal = centred * tf.rsqrt(variance + specification.BATCH_NORM_EPSILON)
    return tf.reshape(normal, shape) * own["gamma"] + own["beta"]


def _part(node, own, value):
    end = node["start"] + node["size"]
    return value[..., node["start"] : end]


def _stack(values):
    return (getattr(tf, "stack", None) or tf.pack)(values)


def _unstack_steps(node, own, value):
    steps, batch = _shape(value)[:2]
    return tf.reshape(tf.transpose(value, [1, 0, 2]), [batch, -1])


def _sampled_code(node, own, value, noise):
    mean, spread = _split(value, 2)
    return mean + tf.exp(0.5 * spread) * noise


def _rbm(node, own, visible, noise):
    visible = tf.stop_gradient(visible)
    scores = tf.matmul(visible, own["weight"]) + own["hidden"]
    chances = tf.stop_gradient(tf.sigmoid(scores))
    drawn = tf.to_float(tf.greater(2 * chances - 1, noise))
    end = tf.matmul(drawn, own["weight"], transpose_b=True) + own["visible"]
    end = tf.stop_gradient(tf.sigmoid(end))
    again = tf.matmul(end, own["weight"]) + own["hidden"]
    energy = tf.reduce_sum(tf.nn.softplus(again) - tf.nn.softplus(scores), 1)
    energy += tf.reduce_sum((end - visible) * own["visible"], 1)
    return _concat([tf.expand_dims(energy, 1), chances], 1)


LAYERS = {
    "dense": _dense,
    "dense_within": _dense,
    "conv": _conv,
    "grouped_conv": _grouped_conv,
    "conv_transpose": _conv_transpose,
    "avg_pool": _avg_pool,
    "upsample": _upsample,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "group_norm": _group_norm,
    "concat": lambda node, own, *values: _concat(list(values), len(_shape(values[0])) - 1),
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: tf.reduce_mean(value, [1, 2]),
    "flatten": lambda node, own, value: tf.reshape(value, [_shape(value)[0], -1]),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: tf.nn.relu(value),
    "dropout": lambda node, own, value: tf.nn.dropout(value, 1.0 - node["rate"]),
    "sigmoid": lambda node, own, value: tf.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: tf.gather(own["weight"], value),
    "lstm": _lstm,
    "rnn": _rnn,
    "gru": _gru,
    "tanh": lambda node, own, value: tf.tanh(value),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda node, own, value: value * tf.sigmoid(value),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "layer_scale": lambda node, own, value: value * own["weight"],
    "bias": lambda node, own, value: value + own["bias"],
    "positions": _positions,
    "table": lambda node, own, value: own["weight"],
    "lookup": lambda node, own, value, table: tf.gather(table, value),
    "unembedding": _unembedding,
    "attention": _attention,
    "patches": _patches,
    "class_token": _class_token,
    "first_step": lambda node, own, value: value[0],
    "mean_steps": lambda node, own, value: tf.reduce_mean(value, [0]),
    "transpose": lambda node, own, value: tf.transpose(value, [2, 1, 0]),
    "part": _part,
    "stack": lambda node, own, *values: _stack(list(values)),
    "unstack": _unstack_steps,
    "reversal": lambda node, own, value: 2 * tf.stop_gradient(value) - value,
    "sampled_code": _sampled_code,
    "rbm": _rbm,
}
