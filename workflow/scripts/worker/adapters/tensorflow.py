"""TensorFlow 2: plain operations on variables, automatic differentiation, one operation of the optimiser a parameter.

A step is one `tf.function` (`graph`), one compiled by XLA (`xla`), or one operation after another (`eager`).
What was chosen here, and by which measured ratios: docs/adapters/tensorflow.md.
"""

import tensorflow as tf

from .. import specification
from ..contract import Unsupported

MODES = ("graph", "xla", "eager")
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
DEVICES = ("cpu", "gpu")
TASKS = ("step", "training")
LAYOUT = {"images": "channels last", "sequences": "steps first"}


def versions():
    """Versions of TensorFlow and of what it was built with."""
    built = tf.sysconfig.get_build_info()
    found = {
        name: str(built[name + "_version"])
        for name in ("cuda", "cudnn")
        if name + "_version" in built
    }
    return dict(found, framework_version=tf.__version__, build=tf.version.COMPILER_VERSION)


def build(job):
    """A trainer of the specification, with the batch and the start values in the memory of the device."""
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    compiler = {"xla": "XLA", "graph": "Grappler"}.get(job.mode, "none")
    settings = {"layout": "channels last, time first", "compiler": compiler}
    if job.device == "gpu":
        settings.update(_configure_gpu())
    place = "/GPU:0" if job.device == "gpu" else "/CPU:0"
    with tf.device(place):
        tf.random.set_seed(job.seed)
        return _Trainer(_Network(job), job, place, settings)


class _Network(object):
    """The nodes of a specification as operations on variables."""

    def __init__(self, job):
        self.variables, self._plan, self._layout = {}, [], job.layout
        for node in job.spec["nodes"]:
            own = {}
            for role, name in job.own(node).items():
                own[role] = self.variables[name] = tf.Variable(job.take(name))
            self._plan.append((LAYERS[node["op"]], node, own))

    def logits(self, inputs, judging=False):
        """Scores (labels, classes), of sequences in the order step, sample; no dropout to judge by."""
        values = {"input": inputs}
        for operation, node, own in self._plan:
            value, *more = [values[name] for name in node["inputs"]]
            if not (judging and node["op"] == "dropout"):
                value = operation(node, own, value, *more)
            values[node["name"]] = value
        return tf.reshape(value, [-1, value.shape[-1]])

    def weights(self, names=None):
        wanted = self.variables if names is None else names
        return {name: self._layout.leave(name, self.variables[name].numpy()) for name in wanted}


class _Trainer(object):
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
        rate = job.learning_rate
        self._step = self._compiled(lambda: self._train(self._inputs, self._labels, rate))
        self._fed_step = self._judged = None
        self.weights, self.settings = network.weights, settings
        self.threads = tf.config.threading.get_intra_op_parallelism_threads()
        self.parameters = sum(variable.shape.num_elements() for variable in self._variables)

    def run(self, steps):
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
            scores = self._network.logits(inputs)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        gradients = tape.gradient(loss, self._variables)
        for variable, gradient, averages in zip(self._variables, gradients, self._averages):
            _UPDATES[self._optimiser["name"]](self._optimiser, variable, gradient, averages, rate)
        return loss


def _descend(optimiser, variable, gradient, averages, rate):
    """What keras.optimizers.SGD does by a product and a difference, in one pass over a parameter."""
    if isinstance(gradient, tf.IndexedSlices):
        variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
    else:
        tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)


def _adadelta(optimiser, variable, gradient, averages, rate):
    slots = {"accum": averages[0].handle, "accum_update": averages[1].handle}
    decay = {"lr": rate, "rho": optimiser["rho"], "epsilon": optimiser["epsilon"]}
    tf.raw_ops.ResourceApplyAdadelta(var=variable.handle, grad=gradient, **slots, **decay)


def _rmsprop(optimiser, variable, gradient, averages, rate):
    # The epsilon of TensorFlow's own operation stands inside of the root.
    rho = optimiser["rho"]
    after = rho * averages[0] + (1 - rho) * tf.square(gradient)
    averages[0].assign(after)
    variable.assign_sub(rate * gradient / (tf.sqrt(after) + optimiser["epsilon"]))


_UPDATES = {"sgd": _descend, "adadelta": _adadelta, "rmsprop": _rmsprop}


def _configure_gpu():
    cards = tf.config.list_physical_devices("GPU")
    if not cards:
        raise Unsupported("TensorFlow {} finds no GPU".format(tf.__version__))
    for card in cards:
        tf.config.experimental.set_memory_growth(card, True)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    return {"memory_growth": "on", "tensor_float_32": "off"}


def _dense(node, own, value):
    rows = tf.matmul(tf.reshape(value, [-1, value.shape[-1]]), own["weight"])
    rows = tf.nn.bias_add(rows, own["bias"]) if node["bias"] else rows
    return tf.reshape(rows, list(value.shape[:-1]) + [node["units"]])


def _conv(node, own, value):
    # A convolution with explicit padding takes a fifth longer than either of these.
    same = node["stride"] == 1 and 2 * node["padding"] == node["kernel"] - 1
    value = value if same else _pad(node, value, 0)
    value = tf.nn.conv2d(value, own["weight"], node["stride"], "SAME" if same else "VALID")
    return tf.nn.bias_add(value, own["bias"]) if node["bias"] else value


def _max_pool(node, own, value):
    # XLA has no pooling with padding of its own.
    return tf.nn.max_pool2d(
        _pad(node, value, value.dtype.min), node["kernel"], node["stride"], "VALID"
    )


def _pad(node, value, filling):
    around = [node["padding"]] * 2
    return (
        tf.pad(value, [[0, 0], around, around, [0, 0]], constant_values=filling)
        if node["padding"]
        else value
    )


def _batch_norm(node, own, value):
    # tf.nn's own function raises an epsilon of 1e-5 to 1.001e-5.
    fixed = {"mean": [], "variance": [], "epsilon": specification.BATCH_NORM_EPSILON}
    return tf.raw_ops.FusedBatchNormV3(x=value, scale=own["gamma"], offset=own["beta"], **fixed).y


def _lstm(node, own, value):
    steps, batch, features = value.shape
    # The product with the inputs needs no loop: one large product in place of one for each step.
    products = tf.nn.bias_add(
        tf.matmul(tf.reshape(value, [-1, features]), own["input"]), own["bias"]
    )
    return _recur(tf.reshape(products, [steps, batch, 4 * node["units"]]), own["recurrent"])


@tf.custom_gradient
def _recur(products, weight):
    """Outputs (steps, batch, units) of an LSTM from the products of its inputs (steps, batch, 4 units).

    With a gradient of its own, so that the recurrent weight's too is one large product outside of the loop.
    """
    steps, batch, width = products.shape
    units, zero = width // 4, tf.zeros([batch, width // 4])

    def array(columns, values=None):
        made = tf.TensorArray(
            tf.float32, steps, element_shape=[batch, columns], clear_after_read=False
        )
        return made if values is None else made.unstack(values)

    def forward(step, output, cell, kept):
        i, f, g, o = tf.split(given.read(step) + tf.matmul(output, weight), 4, 1)
        i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
        after = f * cell + i * g
        squashed = tf.tanh(after)
        output = o * squashed
        values = (output, i, f, g, o, cell, squashed)
        return (
            step + 1,
            output,
            after,
            [into.write(step, value) for into, value in zip(kept, values)],
        )

    given = array(width, products)
    state = (0, zero, zero, [array(units) for _ in range(7)])
    kept = tf.while_loop(lambda step, *_: step < steps, forward, state, maximum_iterations=steps)[3]
    outputs = kept[0].stack()

    def gradient(upstream):
        arriving = array(units, upstream)

        def backward(step, d_output, d_cell, d_gates):
            i, f, g, o, before, squashed = [values.read(step) for values in kept[1:]]
            d_output += arriving.read(step)
            d_cell += tf.raw_ops.TanhGrad(y=squashed, dy=d_output * o)
            d_i = tf.raw_ops.SigmoidGrad(y=i, dy=d_cell * g)
            d_f = tf.raw_ops.SigmoidGrad(y=f, dy=d_cell * before)
            d_g = tf.raw_ops.TanhGrad(y=g, dy=d_cell * i)
            d_o = tf.raw_ops.SigmoidGrad(y=o, dy=d_output * squashed)
            d_gate = tf.concat([d_i, d_f, d_g, d_o], 1)
            d_output = tf.matmul(d_gate, weight, transpose_b=True)
            return step - 1, d_output, d_cell * f, d_gates.write(step, d_gate)

        state = (steps - 1, zero, zero, array(width))
        done = tf.while_loop(lambda step, *_: step >= 0, backward, state, maximum_iterations=steps)
        d_gates = done[3].stack()
        before = tf.reshape(tf.concat([zero[None], outputs[:-1]], 0), [-1, units])
        return d_gates, tf.matmul(before, tf.reshape(d_gates, [-1, width]), transpose_a=True)

    return outputs, gradient


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: tf.reduce_mean(value, [1, 2]),
    "flatten": lambda node, own, value: tf.reshape(value, [value.shape[0], -1]),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: tf.nn.relu(value),
    "dropout": lambda node, own, value: tf.nn.dropout(value, node["rate"]),
    "sigmoid": lambda node, own, value: tf.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: tf.gather(own["weight"], value),
    "lstm": _lstm,
}
