"""TensorFlow 2: plain operations on variables, automatic differentiation, one operation of the optimiser a parameter.

A step is one `tf.function` (`graph`), one that XLA compiles (`xla`), or one operation after another (`eager`).
"""

import tensorflow as tf

from shared import rotary, specification

from ...settings import tensorflow as tensorflow_settings

MODES = ("graph", "xla", "eager")
OPTIMISERS = ("sgd", "adadelta", "rmsprop", "momentum", "adam", "adamw")
OPTIONS = {
    "conv": ("sides", "dilation"),
    "grouped_conv": ("sides", "dilation"),
    "max_pool": ("sides", "up"),
    "avg_pool": ("sides",),
    "upsample": ("bilinear",),
    "batch_norm": ("epsilon", "momentum"),
    "group_norm": ("epsilon",),
    "attention": ("kv_heads", "rotary", "dropout"),
    "lstm": ("bidirectional",),
    "gru": ("bidirectional",),
    "rnn": ("bidirectional",),
}
DEVICES = ("cpu", "gpu")
PRECISIONS = {
    "float32": {"tensor_float_32": False},
    "tf32": {"tensor_float_32": True},
    "bfloat16": {},
}
TASKS = ("step", "training")
EXCHANGES = {"sync": "ranks", "async": "asynchronous"}
LAYOUT = {"images": "channels last", "sequences": "steps first", "conv_transpose": "channels last"}


def versions():
    """Returns the versions of TensorFlow and of what it was built with."""
    built = tf.sysconfig.get_build_info()
    found = {
        name: str(built[name + "_version"])
        for name in ("cuda", "cudnn")
        if name + "_version" in built
    }
    return dict(found, framework_version=tf.__version__, build=tf.version.COMPILER_VERSION)


def build(job):
    place, settings = prepare(job)
    with tf.device(place):
        tf.random.set_seed(job.seed)
        return Trainer(Network(job), job, place, settings)


def prepare(job):
    """Sets TensorFlow's threads and GPU; returns where a job computes, and settings."""
    tensorflow_settings.limit_threads(job)
    compiler = {"xla": "XLA", "graph": "Grappler"}.get(job.mode, "none")
    settings = {"layout": "channels last, time first", "compiler": compiler}
    if job.device == "gpu":
        settings.update(tensorflow_settings.configure_gpu(job.precision, PRECISIONS[job.precision]))
    elif job.precision == "bfloat16":
        settings.update(tensorflow_settings.configure_bfloat16())
    place = "/GPU:0" if job.device == "gpu" else "/CPU:0"
    return place, settings


_IN_FLOAT32 = ("group_norm", "layer_norm", "local_response_norm", "rms_norm")


def _in_bfloat16(operation):
    """Returns an operation as Keras's mixed_bfloat16 has it: on cast values, except for means, masks and tables."""

    def cast(value, kind=tf.bfloat16):
        return tf.cast(value, kind) if value.dtype.is_floating else value

    def operate(node, own, *values):
        # Drawn in bfloat16, what is dropped would be a whole number of 128ths; there is no LRN in it on CPUs.
        if "rate" in node or node["op"] in _IN_FLOAT32:
            values = [cast(value, tf.float32) for value in values]
        else:
            values = [cast(value) for value in values]
            # The rows of a table are cast when they are read.
            kept = node["op"] in ("batch_norm", "embedding")
            own = own if kept else {role: cast(value) for role, value in own.items()}
        return cast(operation(node, own, *values))

    return operate


class Network(object):
    """The nodes of a specification as operations on variables."""

    def __init__(self, job):
        self.variables = {}
        self._plan = []
        self._layout = job.layout
        self._kept = {}
        for node in job.spec["nodes"]:
            own = {}
            for role, name in job.own(node).items():
                own[role] = self.variables[name] = tf.Variable(job.take(name))
            is_normal = node["op"] == "batch_norm"
            for role, start in (("mean", 0.0), ("variance", 1.0)) if is_normal else ():
                own[role] = tf.Variable(tf.fill(node["in_shape"][:1], start), trainable=False)
                self._kept["{}/{}".format(node["name"], role)] = own[role]
            operation = LAYERS[node["op"]]
            if node["op"] in ("upsample",):
                node = dict(node, by_xla=job.mode == "xla")
            if job.precision == "bfloat16":
                operation = _in_bfloat16(operation)
            self._plan.append((operation, node, own))

    def logits(self, inputs, judging=False):
        """Returns scores (labels, classes), those of sequences by step, then sample; without dropout for judging."""
        values = {"input": inputs}
        for operation, node, own in self._plan:
            value, *more = [values[name] for name in node["inputs"]]
            if judging and specification.rate_of(node):
                node = specification.at_dropout(node, 0.0)
            values[node["name"]] = value = operation(node, own, value, *more)
        return tf.cast(tf.reshape(value, [-1, value.shape[-1]]), tf.float32)

    def weights(self, names=None):
        wanted = self.variables if names is None else names
        return {name: self._layout.leave(name, self.variables[name].numpy()) for name in wanted}

    def statistics(self):
        return {name: variable.numpy() for name, variable in self._kept.items()}


class Trainer(object):
    def __init__(self, network, job, place, settings):
        self._network, self._mode, self._optimiser = network, job.mode, job.spec["optimiser"]
        self._layout, self._place = job.layout, place
        self._inputs, self._labels = tf.constant(job.inputs), tf.constant(job.labels.reshape(-1))
        self._waits, self._variables = job.device == "gpu", list(network.variables.values())
        plain = self._optimiser["name"] == "sgd"
        self._averages = [
            [] if plain else [tf.Variable(tf.zeros_like(v)) for _ in range(2)]
            for v in self._variables
        ]
        if self._optimiser["name"] in ("momentum", "adam", "adamw"):
            self._averages = [_averages_of(self._optimiser, v) for v in self._variables]
        rate = job.learning_rate
        self._loss = LOSSES[job.spec["loss"]]
        self._step = self._compiled(lambda: self._train(self._inputs, self._labels, rate))
        self._fed_step = self._judged = None
        self.weights, self.statistics = network.weights, network.statistics
        self.settings = settings
        self.threads = tf.config.threading.get_intra_op_parallelism_threads()
        self.parameters = sum(variable.shape.num_elements() for variable in self._variables)

    def run(self, steps):
        with tf.device(self._place):
            for _ in range(steps):
                loss = self._step()
        # On a CPU a step returns when its updates are done; on a GPU, when they are queued.
        if self._waits:
            tf.test.experimental.sync_devices()
        return float(loss.numpy())

    def train(self, batches):
        total, steps = 0.0, 0
        with tf.device(self._place):
            for inputs, labels, rate in batches:
                answers = tf.constant(self._layout.labels(labels).reshape(-1))
                fed = self._placed(inputs), answers, tf.constant(rate, tf.float32)
                self._fed_step = self._fed_step or self._compiled(self._train, *fed)
                total, steps = total + self._fed_step(*fed), steps + 1
            if self._waits:
                tf.test.experimental.sync_devices()
            return float(total.numpy()) / steps

    def scores(self, inputs):
        with tf.device(self._place):
            fed = self._placed(inputs)
            self._judged = self._judged or self._compiled(
                lambda values: self._network.logits(values, True), fed
            )
            return self._judged(fed).numpy()

    def _placed(self, inputs):
        return tf.constant(self._layout.inputs(inputs))

    def _compiled(self, function, *arguments):
        if self._mode == "eager":
            return function
        return tf.function(function, jit_compile=self._mode == "xla" or None).get_concrete_function(
            *arguments
        )

    def _train(self, inputs, labels, rate):
        with tf.GradientTape() as tape:
            loss = self._loss(self._network.logits(inputs), labels)
        gradients = self.shared(tape.gradient(loss, self._variables))
        for variable, gradient, averages in zip(self._variables, gradients, self._averages):
            UPDATES[self._optimiser["name"]](self._optimiser, variable, gradient, averages, rate)
        return loss

    def shared(self, gradients):
        """Returns the gradients of all ranks; here, there is only one."""
        return gradients


def _missed(distance):
    """Returns a loss: the mean of `distance` between outputs and targets, one row a sample."""

    def loss(outputs, targets):
        return tf.reduce_mean(distance(outputs, tf.reshape(targets, [outputs.shape[0], -1])))

    return loss


def _cross_entropy(scores, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))


def _evidence_bound(outputs, targets):
    decoded, code = targets.shape[1], (outputs.shape[1] - targets.shape[1]) // 2
    decoded, mean, spread = tf.split(outputs, [decoded, code, code], 1)
    missed = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(targets, decoded))
    apart = 0.5 * tf.reduce_sum(tf.square(mean) + tf.exp(spread) - spread - 1)
    return (missed + apart) / outputs.shape.num_elements()


_mean_entropy = _missed(
    lambda outputs, targets: tf.nn.sigmoid_cross_entropy_with_logits(targets, outputs)
)
LOSSES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": _missed(tf.math.squared_difference),
    "binary_cross_entropy": _mean_entropy,
    "evidence_bound": _missed(_evidence_bound),
    "adversarial": _mean_entropy,
    "mean_output": _missed(lambda outputs, targets: outputs),
}


def _descend(optimiser, variable, gradient, averages, rate):
    """Does what keras.optimizers.SGD does, in one pass over a parameter, not in a product and a difference."""
    if isinstance(gradient, tf.IndexedSlices):
        variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
    else:
        tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)


def _adadelta(optimiser, variable, gradient, averages, rate):
    slots = {"accum": averages[0].handle, "accum_update": averages[1].handle}
    decay = {"lr": rate, "rho": optimiser["rho"], "epsilon": optimiser["epsilon"]}
    tf.raw_ops.ResourceApplyAdadelta(var=variable.handle, grad=gradient, **slots, **decay)


def _rmsprop(optimiser, variable, gradient, averages, rate):
    # TensorFlow's own operation has its epsilon inside the root.
    rho = optimiser["rho"]
    # An embedding's gradient holds the rows that were read; the averages of all rows decay.
    gradient = tf.convert_to_tensor(gradient)
    after = rho * averages[0] + (1 - rho) * tf.square(gradient)
    averages[0].assign(after)
    variable.assign_sub(rate * gradient / (tf.sqrt(after) + optimiser["epsilon"]))


def _averages_of(optimiser, variable):
    """Returns one running average for momentum; two for Adam, and the number of steps."""
    count = 1 if optimiser["name"] == "momentum" else 2
    zeros = [tf.Variable(tf.zeros_like(variable)) for _ in range(count)]
    return zeros + [tf.Variable(0.0)] if count > 1 else zeros


def _momentum(optimiser, variable, gradient, averages, rate):
    kept = {"accum": averages[0].handle, "momentum": optimiser["momentum"]}
    tf.raw_ops.ResourceApplyMomentum(
        var=variable.handle, lr=rate, grad=tf.convert_to_tensor(gradient), **kept
    )


def _adam(optimiser, variable, gradient, averages, rate):
    """Takes Adam's step by TensorFlow's own operation, which adds its epsilon to a root that is not corrected yet."""
    mean, square, taken = averages
    now, beta1, beta2 = taken.assign_add(1.0), optimiser["beta1"], optimiser["beta2"]
    powers = {"beta1_power": tf.pow(beta1, now), "beta2_power": tf.pow(beta2, now)}
    epsilon = optimiser["epsilon"] * tf.sqrt(1 - powers["beta2_power"])
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=mean.handle,
        v=square.handle,
        lr=rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        grad=tf.convert_to_tensor(gradient),
        **powers,
    )


def _adamw(optimiser, variable, gradient, averages, rate):
    if len(variable.shape) > 1:
        variable.assign(variable * (1 - rate * optimiser["weight_decay"]))
    _adam(optimiser, variable, gradient, averages, rate)


UPDATES = {
    "sgd": _descend,
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adamw,
}


def _biased(value, bias):
    # On CPUs, bias_add adds up its gradient in bfloat16, and a plain addition does so in float32.
    return value + bias if value.dtype == tf.bfloat16 else tf.nn.bias_add(value, bias)


def _dense(node, own, value):
    rows = tf.matmul(tf.reshape(value, [-1, value.shape[-1]]), own["weight"])
    rows = _biased(rows, own["bias"]) if node["bias"] else rows
    return tf.reshape(rows, list(value.shape[:-1]) + [node["units"]])


def _conv(node, own, value):
    if node["kernel"] == node["stride"] == 1 and not node["padding"]:
        # As a convolution, oneDNN takes longer: a step of convnext-tiny 1.3 to 1.5 times as long.
        filters, channels = own["weight"], own["weight"].shape[3]
        plain = dict(own, weight=tf.reshape(filters, filters.shape[2:]))
        return _dense(dict(node, units=channels), plain, value)
    # A convolution with explicit padding takes a fifth longer than either of these.
    same = specification.is_same(node)
    value = value if same else _pad(node, value, 0)
    value = _convolved(node, value, own["weight"], "SAME" if same else "VALID")
    return _biased(value, own["bias"]) if node["bias"] else value


def _convolved(node, value, filters, padding):
    """Convolves. With gaps, `conv2d` has no gradient on CPUs without oneDNN, and is no faster with it."""
    if "dilation" in node and node["stride"] == 1 and not tf.config.list_logical_devices("GPU"):
        return tf.nn.convolution(value, filters, padding=padding, dilations=node["dilation"])
    return tf.nn.conv2d(value, filters, node["stride"], padding, dilations=node.get("dilation"))


def _grouped_conv(node, own, value):
    # Weights come as (out, in / groups, height, width); to turn them costs nothing beside the products.
    groups, apart = node["groups"], specification.pair(node.get("dilation", 1))
    down, along = specification.pair(node["stride"])
    # TensorFlow has depthwise convolutions of one stride alone, and of none beside a dilation.
    if groups == node["in_shape"][0] and down == along and (down == 1 or apart == [1, 1]):
        filters = tf.reshape(own["weight"], [groups, -1, *own["weight"].shape[2:]])
        same = specification.is_same(node)
        value = tf.nn.depthwise_conv2d(
            value if same else _pad(node, value, 0),
            tf.transpose(filters, [2, 3, 0, 1]),
            [1, down, along, 1],
            "SAME" if same else "VALID",
            dilations=apart,
        )
    else:
        # A convolution in groups has no gradient on CPUs.
        filters = tf.split(tf.transpose(own["weight"], [2, 3, 1, 0]), groups, 3)
        parts = zip(tf.split(_pad(node, value, 0), groups, 3), filters)
        made = [_convolved(node, part, filter, "VALID") for part, filter in parts]
        value = tf.concat(made, 3)
    return _biased(value, own["bias"]) if node["bias"] else value


def _conv_transpose(node, own, value):
    filters, count = own["weight"], value.shape[3]
    sizes, stride, around = node["shape"][1:], node["stride"], node["padding"]
    whole = [value.shape[0], *sizes, node["channels"]]
    if value.shape[1] == value.shape[2] == 1 and not around:
        # Nothing overlaps.
        rows, flat = tf.reshape(value, [-1, count]), tf.reshape(filters, [-1, count])
        value = tf.reshape(tf.matmul(rows, flat, transpose_b=True), whole)
    else:
        # Paddings that are written out take twice as long on CPUs as "SAME" where that is the same.
        same = all(
            -(-size // stride) == before
            and (before - 1) * stride + node["kernel"] - size == 2 * around
            for before, size in zip(value.shape[1:3], sizes)
        )
        paddings = "SAME" if same else [[0, 0], *[[around] * 2] * 2, [0, 0]]
        value = tf.nn.conv2d_transpose(value, filters, whole, stride, paddings)
    return _biased(value, own["bias"]) if node["bias"] else value


def _avg_pool(node, own, value):
    return tf.nn.avg_pool2d(_pad(node, value, 0), node["kernel"], node["stride"], "VALID")


def _adaptive_avg_pool(node, own, value):
    rows, columns = (
        tf.constant(_shares(node["size"], extent), value.dtype) for extent in node["in_shape"][1:]
    )
    return tf.einsum("ih,bhwc,jw->bijc", rows, value, columns)


def _shares(size, extent):
    """Returns the weight of each of `extent` rows in each of `size` means."""
    ends = [(share * extent // size, -(-(share + 1) * extent // size)) for share in range(size)]
    return [[(start <= row < end) / (end - start) for row in range(extent)] for start, end in ends]


def _upsample(node, own, value):
    if node.get("bilinear") and node["by_xla"]:
        return _between(_between(value, 1, node["factor"]), 2, node["factor"])
    if node.get("bilinear"):
        return tf.image.resize(value, node["shape"][1:])
    return tf.repeat(tf.repeat(value, node["factor"], 1), node["factor"], 2)


def _between(value, axis, factor):
    """Returns `factor` pixels for each pixel of an axis, between it and its neighbours.

    XLA's `tf.image.resize` interpolates differently by a factor of three, and takes three times as long.
    """
    shape, around = value.shape.as_list(), [[0, 0]] * 4
    extent, around[axis] = shape[axis], [1, 1]
    wide = tf.pad(value, around, "SYMMETRIC")
    before, behind = tf.split(wide, [extent, 2], axis)[0], tf.split(wide, [2, extent], axis)[1]
    shares = [(place + 0.5) / factor - 0.5 for place in range(factor)]
    parts = [value + abs(share) * ((behind if share > 0 else before) - value) for share in shares]
    return tf.reshape(tf.stack(parts, axis + 1), [*shape[:axis], -1, *shape[axis + 1 :]])


def _channel_shuffle(node, own, value):
    shape = list(value.shape)
    parts = tf.reshape(value, shape[:3] + [node["groups"], shape[3] // node["groups"]])
    return tf.reshape(tf.transpose(parts, [0, 1, 2, 4, 3]), shape)


def _local_response_norm(node, own, value):
    alpha = 1 / (node["inverse_alpha"] * node["size"])
    return tf.nn.local_response_normalization(value, node["size"] // 2, 1.0, alpha, 0.75)


def _group_norm(node, own, value):
    shape = list(value.shape)
    parts = tf.reshape(value, shape[:3] + [node["groups"], shape[3] // node["groups"]])
    mean, variance = tf.nn.moments(parts, [1, 2, 4], keepdims=True)
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    normal = (parts - mean) * tf.math.rsqrt(variance + epsilon)
    return tf.reshape(normal, shape) * own["gamma"] + own["beta"]


def _max_pool(node, own, value):
    # XLA has no pooling with padding of its own.
    return tf.nn.max_pool2d(
        _pad(node, value, value.dtype.min), node["kernel"], node["stride"], "VALID"
    )


def _pad(node, value, filling):
    around = specification.edges(node)
    if not any(map(any, around)):
        return value
    return tf.pad(value, [[0, 0], *around, [0, 0]], constant_values=filling)


def _batch_norm(node, own, value):
    # tf.nn's own function raises an epsilon of 1e-5 to 1.001e-5.
    fixed = {
        "epsilon": node.get("epsilon", specification.BATCH_NORM_EPSILON),
        "exponential_avg_factor": node.get("momentum", specification.BATCH_NORM_SHARE),
    }
    kept = {"mean": own["mean"], "variance": own["variance"]}
    found = tf.raw_ops.FusedBatchNormV3(
        x=value, scale=own["gamma"], offset=own["beta"], **kept, **fixed
    )
    own["mean"].assign(found.batch_mean)
    own["variance"].assign(found.batch_variance)
    return found.y


def _both_ways(recur):
    """Extends a recurrent layer to nodes that are `bidirectional`."""

    def layer(node, own, value):
        found = recur(node, own, value)
        if node.get("bidirectional"):
            back = {role: own["back_" + role] for role in ("input", "recurrent", "bias")}
            behind = tf.reverse(recur(node, back, tf.reverse(value, [0])), [0])
            found = tf.concat([found, behind], -1)
        return found

    return layer


def _lstm(node, own, value):
    """Computes a loop: unrolled, the first step would take three times as long to build, and by XLA eighteen times."""
    products, weight = _products(own, value), tf.convert_to_tensor(own["recurrent"])
    steps, batch, width = products.shape
    given = tf.TensorArray(products.dtype, steps, element_shape=[batch, width]).unstack(products)
    zero = tf.zeros([batch, node["units"]], products.dtype)

    def advance(step, output, cell, outputs):
        i, f, g, o = tf.split(given.read(step) + tf.matmul(output, weight), 4, 1)
        cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
        output = tf.sigmoid(o) * tf.tanh(cell)
        return step + 1, output, cell, outputs.write(step, output)

    outputs = tf.TensorArray(products.dtype, steps, element_shape=zero.shape)
    state = (0, zero, zero, outputs)
    done = tf.while_loop(lambda step, *_: step < steps, advance, state, maximum_iterations=steps)
    return done[3].stack()


def _rnn(node, own, value):
    output = tf.zeros([value.shape[1], node["units"]], value.dtype)
    outputs = []
    weight = tf.convert_to_tensor(own["recurrent"])
    for product in tf.unstack(_products(own, value)):
        output = tf.tanh(product + tf.matmul(output, weight))
        outputs.append(output)
    return tf.stack(outputs)


def _gru(node, own, value):
    output = tf.zeros([value.shape[1], node["units"]], value.dtype)
    outputs = []
    units, weight = node["units"], tf.convert_to_tensor(own["recurrent"])
    for given in tf.unstack(_products(own, value)):
        product = tf.matmul(output, weight)
        gates = tf.sigmoid(given[:, : 2 * units] + product[:, : 2 * units])
        r, z = tf.split(gates, 2, 1)
        n = tf.tanh(given[:, 2 * units :] + r * product[:, 2 * units :])
        output = n + z * (output - n)
        outputs.append(output)
    return tf.stack(outputs)


def _products(own, value):
    """Multiplies all steps' inputs at once."""
    steps, batch, features = value.shape
    rows = tf.matmul(tf.reshape(value, [-1, features]), own["input"])
    return tf.reshape(_biased(rows, own["bias"]), [steps, batch, -1])


def _stochastic_depth(node, own, value):
    # Sequences have the steps first.
    alike = [1] * len(value.shape)
    samples = 1 if len(value.shape) == 3 else 0
    alike[samples] = value.shape[samples]
    return tf.nn.dropout(value, node["rate"], alike)


def _layer_norm(node, own, value):
    centred = value - tf.reduce_mean(value, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    value = centred * (tf.math.rsqrt(variance + node["epsilon"]) * own["weight"])
    return value + own["bias"] if node["bias"] else value


def _rms_norm(node, own, value):
    square = tf.reduce_mean(tf.square(value), -1, keepdims=True)
    return value * tf.math.rsqrt(square + node["epsilon"]) * own["weight"]


def _positions(node, own, value):
    steps, each = node["shape"][0], node["each"]
    rows = own["weight"][: -(-steps // each)]
    rows = tf.repeat(rows, each, 0)[:steps] if each > 1 else rows
    return value + rows[:, None]


def _unembedding(node, own, value, table):
    rows = tf.matmul(tf.reshape(value, [-1, value.shape[-1]]), table, transpose_b=True)
    return tf.reshape(rows, list(value.shape[:-1]) + node["shape"][-1:])


def _attention(node, own, value):
    if "kv_heads" in node or "rotary" in node:
        return _shared_attention(node, value)
    steps, batch, features = value.shape
    size = features // (3 * node["heads"])
    value = tf.reshape(value, [steps, batch, 3, node["heads"], size])
    # Each (batch, heads, steps, size).
    q, k, v = tf.unstack(tf.transpose(value, [2, 1, 3, 0, 4]))
    scores = tf.matmul(q * size**-0.5, k, transpose_b=True)
    if node.get("causal"):
        seen = tf.linalg.band_part(tf.ones([steps, steps], tf.bool), -1, 0)
        scores = tf.where(seen, scores, scores.dtype.min)
    found = tf.matmul(_kept(node, tf.nn.softmax(scores)), v)
    return tf.reshape(tf.transpose(found, [2, 0, 1, 3]), [steps, batch, -1])


def _kept(node, shares):
    """Drops some of an attention's shares, by masks in float32, as other layers' are."""
    if not node.get("dropout"):
        return shares
    return tf.cast(tf.nn.dropout(tf.cast(shares, tf.float32), node["dropout"]), shares.dtype)


def _flatten(node, own, value):
    value = tf.transpose(value, [0, 3, 1, 2]) if node["turned"] else value
    return tf.reshape(value, [value.shape[0], -1])


def _shared_attention(node, value):
    """Computes attention where queries share keys, or are turned: queries of one key are more rows of one product."""
    (steps, units), heads, batch = node["shape"], node["heads"], value.shape[1]
    shared, size = node.get("kv_heads", heads), units // heads
    value = tf.transpose(tf.reshape(value, [steps, batch, -1, size]), [1, 2, 0, 3])
    q, k, v = tf.split(value, [heads, shared, shared], 1)
    if "rotary" in node:
        q, k = (_turned(node, each) for each in (q, k))
    q = tf.reshape(q * size**-0.5, [batch, shared, -1, size])
    scores = tf.matmul(q, k, transpose_b=True)
    if node.get("causal"):
        seen = tf.linalg.band_part(tf.ones([steps, steps], tf.bool), -1, 0)
        scores = tf.where(tf.tile(seen, [heads // shared, 1]), scores, scores.dtype.min)
    found = tf.matmul(_kept(node, tf.nn.softmax(scores)), v)
    found = tf.reshape(found, [batch, heads, steps, size])
    return tf.reshape(tf.transpose(found, [2, 0, 1, 3]), [steps, batch, -1])


def _turned(node, value):
    cosine, sine = rotary.turns(*value.shape[2:], node["rotary"])
    first, second = tf.split(value, 2, -1)
    return tf.concat([first * cosine - second * sine, second * cosine + first * sine], -1)


def _patches(node, own, value):
    return tf.transpose(tf.reshape(value, [value.shape[0], -1, value.shape[-1]]), [1, 0, 2])


def _class_token(node, own, value):
    return tf.concat([tf.broadcast_to(own["weight"], [1] + value.shape[1:]), value], 0)


def _sampled_code(node, own, value, noise):
    mean, spread = tf.split(value, 2, 1)
    return mean + tf.exp(0.5 * spread) * noise


def _rbm(node, own, visible, noise):
    visible = tf.stop_gradient(visible)
    scores = _biased(tf.matmul(visible, own["weight"]), own["hidden"])
    chances = tf.stop_gradient(tf.sigmoid(scores))
    drawn = tf.cast(2 * chances - 1 > noise, chances.dtype)
    end = _biased(tf.matmul(drawn, own["weight"], transpose_b=True), own["visible"])
    end = tf.stop_gradient(tf.sigmoid(end))
    again = _biased(tf.matmul(end, own["weight"]), own["hidden"])
    energy = tf.reduce_sum(tf.nn.softplus(again) - tf.nn.softplus(scores), 1)
    energy += tf.linalg.matvec(end - visible, own["visible"])
    return tf.concat([energy[:, None], chances], 1)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "grouped_conv": _grouped_conv,
    "upsample": _upsample,
    "avg_pool": _avg_pool,
    "adaptive_avg_pool": _adaptive_avg_pool,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "group_norm": _group_norm,
    "concat": lambda node, own, *values: tf.concat(values, -1),
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: tf.reduce_mean(value, [1, 2]),
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: tf.nn.relu(value),
    "dropout": lambda node, own, value: tf.nn.dropout(value, node["rate"]),
    "sigmoid": lambda node, own, value: tf.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: tf.gather(own["weight"], value),
    "lstm": _both_ways(_lstm),
    "rnn": _both_ways(_rnn),
    "gru": _both_ways(_gru),
    "tanh": lambda node, own, value: tf.tanh(value),
    "gelu": lambda node, own, value: tf.nn.gelu(value, approximate=False),
    "gelu_tanh": lambda node, own, value: tf.nn.gelu(value, approximate=True),
    "silu": lambda node, own, value: tf.nn.silu(value),
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
    "last_step": lambda node, own, value: value[-1],
    "leaky_relu": lambda node, own, value: tf.nn.leaky_relu(value, node["slope"]),
    "stochastic_depth": _stochastic_depth,
    "relu6": lambda node, own, value: tf.nn.relu6(value),
    "hard_swish": lambda node, own, value: value * tf.nn.relu6(value + 3) / 6,
    "hard_sigmoid": lambda node, own, value: tf.nn.relu6(value + 3) / 6,
    "elu": lambda node, own, value: tf.nn.elu(value),
    "softplus": lambda node, own, value: tf.nn.softplus(value),
    "scale_channels": lambda node, own, value, factors: value * factors[:, None, None],
    "pad": lambda node, own, value: tf.pad(value, [[0, 0], node["rows"], node["columns"], [0, 0]]),
    "channel_part": lambda node, own, value: value[
        ..., node["start"] : node["start"] + node["size"]
    ],
    "multiply": lambda node, own, left, right: left * right,
    "mean_steps": lambda node, own, value: tf.reduce_mean(value, 0),
    "transpose": lambda node, own, value: tf.transpose(value, [2, 1, 0]),
    "dense_within": _dense,
    "part": lambda node, own, value: value[..., node["start"] : node["start"] + node["size"]],
    "stack": lambda node, own, *values: tf.stack(values),
    "unstack": lambda node, own, value: tf.concat(tf.unstack(value), 1),
    "reversal": lambda node, own, value: 2 * tf.stop_gradient(value) - value,
    "sampled_code": _sampled_code,
    "rbm": _rbm,
}
