"""TensorFlow 0.12 to 1.15: one graph of plain operations, run by a session, with TensorFlow's own optimisers."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import errors
from tensorflow.python.ops import gen_nn_ops

from shared import specification

from ...contract import Unsupported

MODES = ("graph",)
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
    """Returns the versions of TensorFlow and of its compiler, where it names that."""
    found = {"framework_version": tf.__version__}
    if hasattr(tf, "COMPILER_VERSION"):
        found["build"] = tf.COMPILER_VERSION
    return found


def build(job):
    """Returns a trainer whose graph and session are its own."""
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
    """Returns a trainer whose operations are all on the GPU. Raises Unsupported where one has no kernel there."""
    # Integers of 32 bits are in the host's memory.
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
    """Tells whether an operation may be on another device. A TensorArray, and what belongs to it, asks for none."""
    follows = operation.type.startswith("TensorArray") or operation.type in _WITH_ARRAYS
    return operation.device != wanted and not (follows and not operation.device)


def _has_gpu(session):
    """Tells whether a session lists a GPU; without one, it computes on the CPU and does not say so."""
    return any(each.device_type == "GPU" for each in session.list_devices())


class Trainer(object):
    settings = {"layout": "channels last, time first", "loop": "while_loop"}

    def __init__(self, session, job):
        self._session, self._layout, self._nodes = session, job.layout, job.spec["nodes"]
        self._variables, self._starts, self._kept, self._keeping = {}, {}, {}, []
        self._place = GPU if job.device == "gpu" else None
        # What is fed in place of these is read by the same graph.
        self._batch = self._variable(job.inputs, trainable=False).value()
        self._answers = self._variable(job.labels.reshape(-1), trainable=False).value()
        self._rate = tf.constant(job.learning_rate, tf.float32)
        for name in job.layout.names:
            self._variables[name] = self._variable(job.take(name))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=self._connect(), labels=self._answers
        )
        self._loss, self._scores = tf.reduce_mean(losses), None
        update = _update(job.spec["optimiser"], self._loss, self._rate)
        self._fetched = [self._loss, tf.group(update, *self._keeping)]
        session.run(tf.global_variables_initializer(), self._starts)
        del self._starts
        self.threads = job.threads
        self.parameters = sum(each.get_shape().num_elements() for each in tf.trainable_variables())

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
                self._answers: self._layout.labels(labels).reshape(-1),
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

    def statistics(self):
        return {name: self._session.run(variable) for name, variable in self._kept.items()}

    def _keep(self, name, mean, variance):
        """Adds a mini-batch's means and variances to the running averages of a batch normalisation, in each step."""
        for role, start, fresh in (("mean", 0.0, mean), ("variance", 1.0, variance)):
            starts = np.full(fresh.get_shape().as_list(), start, np.float32)
            kept = self._kept["{}/{}".format(name, role)] = self._variable(starts, trainable=False)
            change = specification.BATCH_NORM_SHARE * (kept - fresh)
            self._keeping.append(tf.assign_sub(kept, change))

    def _connect(self, judging=False):
        """Returns scores (labels, classes), those of sequences by step, then sample; without dropout for judging."""
        values = {"input": self._batch}
        for node in self._nodes:
            op, (value, *more) = node["op"], [values[name] for name in node["inputs"]]
            own = specification.own_of(node, self._variables)
            own["keep"] = (lambda *_: None) if judging else self._keep
            if not (judging and op == "dropout"):
                value = LAYERS[op](node, own, value, *more)
            values[node["name"]] = value
        return _rows(value)

    def _variable(self, value, trainable=True):
        """Returns a variable that holds `value`, by way of a placeholder: a graph cannot hold 2 GiB of constants."""
        start = tf.placeholder(value.dtype, value.shape)
        self._starts[start] = value
        return tf.Variable(start, trainable=trainable)


def _update(wanted, loss, rate):
    """Returns the operation that trains all parameters, by TensorFlow's own rules, but for RMSProp's epsilon."""
    if wanted["name"] == "sgd":
        return tf.train.GradientDescentOptimizer(rate).minimize(loss)
    if wanted["name"] == "adadelta" and not _OLD:
        return tf.train.AdadeltaOptimizer(rate, wanted["rho"], wanted["epsilon"]).minimize(loss)
    variables = tf.trainable_variables()
    updates = []
    for variable, gradient in zip(variables, tf.tuple(tf.gradients(loss, variables))):
        step, averages = OPTIMISERS[wanted["name"]](wanted, variable, gradient)
        updates += averages + [tf.assign_sub(variable, rate * step)]
    return tf.group(*updates)


def _adadelta(wanted, variable, gradient):
    """Returns the step of a parameter at a rate of 1, and the updates of its averages."""
    rho, epsilon = wanted["rho"], wanted["epsilon"]
    squares, steps = _average(variable), _average(variable)
    after = rho * squares + (1 - rho) * tf.square(gradient)
    step = gradient * tf.sqrt(steps + epsilon) * tf.rsqrt(after + epsilon)
    moved = rho * steps + (1 - rho) * tf.square(step)
    return step, [tf.assign(squares, after), tf.assign(steps, moved)]


def _rmsprop(wanted, variable, gradient):
    """Returns the step of a parameter at a rate of 1, and the update of its average."""
    squares = _average(variable)
    after = wanted["rho"] * squares + (1 - wanted["rho"]) * tf.square(gradient)
    return gradient / (tf.sqrt(after) + wanted["epsilon"]), [tf.assign(squares, after)]


def _average(variable):
    """Returns a running average in the shape of a parameter."""
    return tf.Variable(tf.zeros(_shape(variable)), trainable=False)


OPTIMISERS = {"sgd": None, "adadelta": _adadelta, "rmsprop": _rmsprop}


def _shape(value):
    return value.get_shape().as_list()


def _rows(value):
    return value if len(_shape(value)) == 2 else tf.reshape(value, [-1, _shape(value)[-1]])


def _dense(node, own, value):
    rows = tf.nn.bias_add(tf.matmul(_rows(value), own["weight"]), own["bias"])
    shape = _shape(value)[:-1] + [node["units"]]
    return rows if len(shape) == 2 else tf.reshape(rows, shape)


def _conv(node, own, value):
    same = node["stride"] == 1 and 2 * node["padding"] == node["kernel"] - 1
    value = value if same else _pad(node, value)
    steps = [1, node["stride"], node["stride"], 1]
    value = tf.nn.conv2d(value, own["weight"], steps, "SAME" if same else "VALID")
    return tf.nn.bias_add(value, own["bias"]) if node["bias"] else value


def _max_pool(node, own, value):
    """Returns a max pool padded with zeros, as is right after ReLUs: `tf.pad` of 0.12 has no other number."""
    window, steps = ([1, node[extent], node[extent], 1] for extent in ("kernel", "stride"))
    return tf.nn.max_pool(_pad(node, value), window, steps, "VALID")


def _pad(node, value):
    around = [node["padding"]] * 2
    return tf.pad(value, [[0, 0], around, around, [0, 0]]) if node["padding"] else value


def _flatten(node, own, value):
    value = tf.transpose(value, [0, 3, 1, 2]) if node["turned"] else value
    return tf.reshape(value, [_shape(value)[0], -1])


def _batch_norm(node, own, value):
    # tf.nn's own function raises an epsilon of 1e-5 to 1.001e-5.
    normalise = getattr(gen_nn_ops, "_fused_batch_norm", None) or gen_nn_ops.fused_batch_norm
    fixed = {"mean": [], "variance": [], "epsilon": specification.BATCH_NORM_EPSILON}
    normal, mean, variance = normalise(value, own["gamma"], own["beta"], **fixed)[:3]
    own["keep"](node["name"], mean, variance)
    return normal


def _lstm(node, own, value):
    """Computes a loop, after one product of all steps' inputs."""
    steps, batch, _ = _shape(value)
    products = tf.nn.bias_add(tf.matmul(_rows(value), own["input"]), own["bias"])
    products = tf.reshape(products, [steps, batch, -1])
    given = tf.TensorArray(tf.float32, steps)
    given = given.unstack(products) if hasattr(given, "unstack") else given.unpack(products)

    def move(step, outputs, output, cell):
        sums = given.read(step) + tf.matmul(output, own["recurrent"])
        i, f, g, o = tf.split(1, 4, sums) if _AXIS_FIRST else tf.split(sums, 4, 1)
        cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
        output = tf.sigmoid(o) * tf.tanh(cell)
        return step + 1, outputs.write(step, output), output, cell

    zeros = tf.zeros([batch, node["units"]])
    begun = (0, tf.TensorArray(tf.float32, steps), zeros, zeros)
    outputs = tf.while_loop(lambda step, *_: step < steps, move, begun)[1]
    outputs = outputs.stack() if hasattr(outputs, "stack") else outputs.pack()
    outputs.set_shape([steps, batch, node["units"]])
    return outputs


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: tf.reduce_mean(value, [1, 2]),
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: tf.nn.relu(value),
    "dropout": lambda node, own, value: tf.nn.dropout(value, 1.0 - node["rate"]),
    "sigmoid": lambda node, own, value: tf.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: tf.gather(own["weight"], value),
    "lstm": _lstm,
}
