"""TensorFlow 0.12 to 1.15: one graph of plain operations, run by a session, with TensorFlow's own SGD.

What was chosen here, and by which measured ratios: docs/adapters/tensorflow1.md.
"""

import tensorflow as tf
from tensorflow.python.ops import gen_nn_ops

from .. import specification
from ..contract import Unsupported

MODES = ("graph",)
LAYOUT = {"images": "channels last", "sequences": "steps first"}
REASONS = {"gpu": "the adapter of TensorFlow before 2.0 is for CPUs"}

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
        intra_op_parallelism_threads=job.threads, inter_op_parallelism_threads=1
    )
    graph = tf.Graph()
    with graph.as_default():
        session = tf.Session(graph=graph, config=settings)
        return _Trainer(session, job)


class _Trainer(object):
    settings = {"layout": "channels last, time first", "loop": "while_loop"}

    def __init__(self, session, job):
        self._session, self._layout = session, job.layout
        self._variables, self._starts = {}, {}
        batch = self._variable(job.inputs, trainable=False)
        answers = self._variable(job.labels.reshape(-1), trainable=False)
        logits = self._connect(job, batch)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=answers)
        self._loss = tf.reduce_mean(losses)
        optimizer = tf.train.GradientDescentOptimizer(job.learning_rate)
        self._fetched = [self._loss, optimizer.minimize(self._loss)]
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

    def weights(self, names=None):
        wanted = sorted(self._variables) if names is None else names
        values = self._session.run([self._variables[name] for name in wanted])
        return {name: self._layout.leave(name, value) for name, value in zip(wanted, values)}

    def _connect(self, job, batch):
        """Scores of all labels, (labels, classes); of sequences in the order step, sample."""
        nodes = job.spec["nodes"]
        values, operators = {"input": batch}, {node["name"]: node["op"] for node in nodes}
        for node in nodes:
            op = node["op"]
            if op == "max_pool" and node["padding"] and operators.get(node["inputs"][0]) != "relu":
                raise Unsupported(
                    "this adapter pads a pool with zeros, which is right behind a ReLU alone"
                )
            own = {}
            for role, name in job.own(node).items():
                own[role] = self._variables[name] = self._variable(job.take(name))
            values[node["name"]] = LAYERS[op](node, own, *[values[name] for name in node["inputs"]])
        return _rows(values[nodes[-1]["name"]])

    def _variable(self, value, trainable=True):
        """A variable that holds `value`. By way of a placeholder: a graph may not hold 2 GiB of constants."""
        start = tf.placeholder(value.dtype, value.shape)
        self._starts[start] = value
        return tf.Variable(start, trainable=trainable)


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


def _pad(node, value):
    around = [node["padding"]] * 2
    return tf.pad(value, [[0, 0], around, around, [0, 0]]) if node["padding"] else value


def _batch_norm(node, own, value):
    # tf.nn's own function raises an epsilon of 1e-5 to 1.001e-5.
    normalise = getattr(gen_nn_ops, "_fused_batch_norm", None) or gen_nn_ops.fused_batch_norm
    fixed = {"mean": [], "variance": [], "epsilon": specification.BATCH_NORM_EPSILON}
    return normalise(value, own["gamma"], own["beta"], **fixed)[0]


def _lstm(node, own, value):
    steps, batch, features = _shape(value)
    units = node["units"]
    # The product with the inputs needs no loop: one large product in place of one for each step.
    products = tf.nn.bias_add(tf.matmul(_rows(value), own["input"]), own["bias"])
    given = _unstack(tf.reshape(products, [steps, batch, 4 * units]))

    def forward(step, output, cell, outputs):
        sums = given.read(step) + tf.matmul(output, own["recurrent"])
        i, f, g, o = tf.split(1, 4, sums) if _AXIS_FIRST else tf.split(sums, 4, 1)
        cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
        output = tf.sigmoid(o) * tf.tanh(cell)
        return step + 1, output, cell, outputs.write(step, output)

    start = tf.zeros([batch, units])
    state = (0, start, start, tf.TensorArray(tf.float32, steps))
    outputs = tf.while_loop(lambda step, *_: step < steps, forward, state)[3]
    outputs = outputs.stack() if hasattr(outputs, "stack") else outputs.pack()
    outputs.set_shape([steps, batch, units])
    return outputs


def _unstack(value):
    """The steps of a sequence, to be read in a loop."""
    array = tf.TensorArray(tf.float32, _shape(value)[0])
    return array.unstack(value) if hasattr(array, "unstack") else array.unpack(value)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: tf.reduce_mean(value, [1, 2]),
    "flatten": lambda node, own, value: tf.reshape(value, [_shape(value)[0], -1]),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: tf.nn.relu(value),
    "sigmoid": lambda node, own, value: tf.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: tf.gather(own["weight"], value),
    "lstm": _lstm,
}
