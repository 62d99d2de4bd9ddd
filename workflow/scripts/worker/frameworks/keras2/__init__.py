"""Keras 2.0: its own layers and optimisers in a function of Keras's backend, which is the mode.

What was chosen here, and by which measured ratios: docs/adapters/keras2.md.
"""

import contextlib
import ctypes
import sys

import keras
import numpy as np
from keras import backend, models
from keras import layers as stock

from shared import specification

from ... import kernels
from ...contract import Unsupported
from . import images
from . import layers as kinds
from . import optimisers as keras2_optimisers

MODES = ("tensorflow", "theano", "cntk")
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
# Kernels are channels last with every backend, images with TensorFlow alone.
LAYOUT = {
    "tensorflow": {"images": "channels last"},
    "theano": {"kernels": "channels last"},
    "cntk": {"kernels": "channels last"},
}
KERNELS = {"tensorflow": "", "theano": "openblas:numpy", "cntk": "mkl"}
REASONS = {"gpu": "the backends of this Keras are built for CPUs"}


def versions():
    """Versions of Keras and of its backend."""
    engine = __import__(backend.backend())
    found = {
        "framework_version": keras.__version__,
        "build": "{} {}".format(engine.__name__, engine.__version__),
    }
    return dict(found, blas=kernels.describe_openblas()) if backend.backend() == "theano" else found


def build(job):
    """A trainer of the specification. Keras reads the name of its backend from the environment."""
    mode, spec, known = job.mode, job.spec, job.threads
    if mode != backend.backend():
        raise Unsupported(
            "Keras was started with the backend {} and not {}".format(backend.backend(), mode)
        )
    if mode == "tensorflow":
        import tensorflow as tf

        settings = tf.ConfigProto(
            intra_op_parallelism_threads=known, inter_op_parallelism_threads=1
        )
        # A graph that held another network too would take longer to read and to write.
        backend.clear_session()
        backend.set_session(tf.Session(config=settings))
    if mode == "theano":
        import theano

        if not theano.config.cxx:
            raise Unsupported("Theano finds no C++ compiler: it needs g++ when it runs")
        # It walks a graph by recursion, which deep networks are too deep for.
        sys.setrecursionlimit(max(10000, sys.getrecursionlimit()))
        known = ctypes.CDLL("libgomp.so.1").omp_get_max_threads() if theano.config.openmp else 1
    if mode == "cntk":
        import cntk

        cntk.cntk_py.set_max_num_cputhreads(known)
        cntk.cntk_py.set_fixed_random_seed(job.seed)
    # Where there is no image too: on Theano, channels first is where Keras looks for the features of a sequence.
    last = mode == "tensorflow" or spec["input"]["kind"] != "image"
    backend.set_image_data_format("channels_last" if last else "channels_first")
    # Known while the graph is made, it needs no branch for another phase.
    backend.set_learning_phase(1)
    # Its layers of dropout draw their seeds from here.
    np.random.seed(job.seed)
    return _Trainer(job, known)


class _Trainer(object):
    def __init__(self, job, threads):
        mode, self._nodes = job.mode, kinds.described(job.spec)
        self._variables, self._leave, self._layout, self._mode = {}, {}, job.layout, mode
        self.threads = threads
        self.settings = {"layout": backend.image_data_format().replace("_", " ")}
        self._layers = {node["name"]: LAYERS[node["op"]](node, mode) for node in self._nodes}
        self._first, given = _place(job.inputs, mode)
        scores = self._connect(self._first)
        model = models.Model(self._first, scores)
        loss = job.spec.get("loss", LOSSES[0])
        # Keras has labels as targets of one number each.
        self._answered = (lambda labels: labels[..., None]) if loss == LOSSES[0] else np.asarray
        self._answers, given_answers = _place(self._answered(job.labels), mode)
        self._loss = backend.mean(_DISTANCES[loss](self._answers, scores))
        optimiser, self._rate = keras2_optimisers.made(mode, job.spec["optimiser"])
        self._learning_rate = job.learning_rate
        with _when_known(self._loss if loss == "mean_output" else None):
            updates = optimiser.get_updates(model.trainable_weights, {}, self._loss)
        self._updates = model.updates + updates
        handed = [self._first, self._answers] if given else []
        self._train = backend.function(handed, [self._loss], self._updates)
        self._given = given + given_answers
        self._fed = self._judge = None
        self._load(job)
        self.parameters = sum(int(np.prod(backend.int_shape(w))) for w in model.trainable_weights)

    def run(self, steps):
        for _ in range(steps):
            loss = self._train(self._given)[0]
        # Keras hands out the loss as a number: the step is done.
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            if rate != self._learning_rate:
                backend.set_value(self._rate, rate)
                self._learning_rate = rate
            inputs = self._layout.inputs(inputs)
            labels = self._answered(self._layout.labels(labels))
            total, steps = total + float(self._feed(inputs, labels)[0]), steps + 1
        return total / steps

    def scores(self, inputs):
        inputs = self._layout.inputs(inputs)
        if self._judge is None:
            judged = stock.Input(batch_shape=inputs.shape)
            self._judge = backend.function([judged], [self._connect(judged, judging=True)])
        return self._judge([inputs])[0]

    def _feed(self, inputs, labels):
        """Trains a step on these arrays."""
        if self._mode == "theano":
            # The very function that was compiled, on other contents of its variables.
            self._first.set_value(inputs, borrow=True)
            self._answers.set_value(labels, borrow=True)
            return self._train([])
        if self._mode == "tensorflow" and self._fed is None:
            # What is fed in place of the values of both variables is read by the same graph.
            handed = [self._first.value(), self._answers.value()]
            self._fed = backend.function(handed, [self._loss], self._updates)
        return (self._fed or self._train)([inputs, labels])

    def _connect(self, first, judging=False):
        """What the last layer gives; no dropout to judge by."""
        values = {"input": first}
        for node in self._nodes:
            value = [values[name] for name in node["inputs"]]
            for layer in () if judging and node["op"] == "dropout" else self._layers[node["name"]]:
                value = [layer(value if len(value) > 1 else value[0])]
            values[node["name"]] = value[0]
        return value[0]

    def weights(self, names=None):
        wanted = list(self._variables if names is None else names)
        values = backend.batch_get_value([self._variables[name] for name in wanted])
        return {
            name: self._layout.leave(name, self._leave[name](value))
            for name, value in zip(wanted, values)
        }

    def _load(self, job):
        started = []
        for node in self._nodes:
            made = [weight for layer in self._layers[node["name"]] for weight in layer.weights]
            enter, leave = _TURNS.get(node["op"], (np.asarray, np.asarray))
            # What follows in a layer is not trained.
            for name, variable in zip(job.own(node).values(), made):
                self._variables[name], self._leave[name] = variable, leave
                started.append((variable, np.ascontiguousarray(enter(job.take(name)))))
        # At once: TensorFlow reads its graph anew for each other set of values.
        backend.batch_set_value(started)


def _from_its_end(value):
    """A kernel with Keras on Theano, which convolves."""
    convolves = backend.backend() == "theano" and value.ndim == 4
    return value[::-1, ::-1] if convolves else value


# How parameters go into the layers of Keras, and back; "conv_transpose" has kernels (in, out, height, width).
_TURNS = {
    "conv": (_from_its_end, _from_its_end),
    "conv_transpose": (
        lambda value: _from_its_end(value.transpose(2, 3, 1, 0)) if value.ndim == 4 else value,
        lambda value: _from_its_end(value).transpose(3, 2, 0, 1) if value.ndim == 4 else value,
    ),
}


@contextlib.contextmanager
def _when_known(loss):
    """Where gradients need no outputs (an RBM's energies), TensorFlow may update weights that the loss still reads."""
    if loss is None or backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    with tf.control_dependencies([loss]):
        yield


def _place(value, mode):
    """A tensor that holds the array, and a list of what a step has to be given for it: a value in CNTK's memory."""
    value = np.ascontiguousarray(value)
    if mode != "cntk":
        return stock.Input(tensor=backend.variable(value, dtype=str(value.dtype))), []
    import cntk

    return stock.Input(batch_shape=value.shape), [cntk.Value(value.astype(np.float32))]


def _cross_entropy(labels, scores):
    """From scores, so that no softmax is taken twice: Keras's own, but on Theano, where it is dense."""
    mode = backend.backend()
    if mode == "theano":
        from theano.tensor import nnet

        likelihoods = nnet.softmax(backend.reshape(scores, (-1, backend.int_shape(scores)[-1])))
        return nnet.categorical_crossentropy(likelihoods, labels.flatten())
    shape = backend.int_shape(scores)
    if mode == "tensorflow" or len(shape) == 2:
        return backend.sparse_categorical_crossentropy(scores, labels, from_logits=True)
    # Keras's own takes all steps for one there.
    wanted = backend.reshape(backend.one_hot(labels, shape[-1]), (None,) + shape[1:])
    highest = backend.stop_gradient(backend.max(scores, axis=-1, keepdims=True))
    sums = backend.logsumexp(scores - highest, axis=-1, keepdims=True) + highest
    return sums - backend.sum(scores * wanted, axis=-1, keepdims=True)


def _missed(targets, scores):
    """The binary cross entropy of each; Keras's own cuts what is near to 0 and 1."""
    return backend.softplus(scores) - scores * targets


def _evidence_bound(targets, outputs):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    decoded, width = (backend.int_shape(value)[-1] for value in (targets, outputs))
    middle = (decoded + width) // 2
    mean, spread = outputs[:, decoded:middle], outputs[:, middle:]
    apart = 0.5 * (backend.square(mean) + backend.exp(spread) - spread - 1.0)
    missed = backend.sum(_missed(targets, outputs[:, :decoded]), axis=-1)
    return (missed + backend.sum(apart, axis=-1)) / float(width)


# Whose mean over the mini-batch is the loss.
_DISTANCES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": lambda targets, outputs: backend.square(outputs - targets),
    "binary_cross_entropy": _missed,
    "evidence_bound": _evidence_bound,
    "adversarial": _missed,
    "mean_output": lambda targets, outputs: outputs,
}


def _conv(node, mode):
    same = node["stride"] == 1 and 2 * node["padding"] == node["kernel"] - 1
    # CNTK takes no kernel above the image that it pads by itself.
    same = same and (mode != "cntk" or node["kernel"] <= min(node["in_shape"][1:]))
    options = {
        "strides": node["stride"],
        "padding": "same" if same else "valid",
        "use_bias": node["bias"],
    }
    conv = stock.Conv2D(node["channels"], node["kernel"], kernel_initializer="zeros", **options)
    return [conv] if same or not node["padding"] else [stock.ZeroPadding2D(node["padding"]), conv]


def _batch_norm(node, mode):
    axis = -1 if backend.image_data_format() == "channels_last" else 1
    epsilon = specification.BATCH_NORM_EPSILON
    if mode == "theano":
        # The float32 next to 1e-5 lies below it, and Theano takes none below it.
        epsilon = float(np.nextafter(np.float32(epsilon), np.float32(1)))
    return [stock.BatchNormalization(axis=axis, epsilon=epsilon)]


def _lstm(node, mode):
    kind = kinds.LSTM if mode == "cntk" else stock.LSTM
    # The default of Keras's LSTM is a hard sigmoid.
    own = dict(kinds.RECURRENT, recurrent_activation="sigmoid", unit_forget_bias=False)
    return [kind(node["units"], **own)]


def _dense(node, mode):
    if len(node["in_shape"]) > 1 and kinds.channels_first():
        # Keras would add its bias to steps, as to the channels of an image.
        return [kinds.Written(node, kinds.dense)]
    return [stock.Dense(node["units"], use_bias=node["bias"], kernel_initializer="zeros")]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": images.max_pool,
    "global_average_pool": lambda node, mode: [stock.GlobalAveragePooling2D()],
    "flatten": lambda node, mode: [stock.Flatten()],
    "batch_norm": _batch_norm,
    "relu": lambda node, mode: [stock.Activation("relu")],
    "dropout": lambda node, mode: [stock.Dropout(node["rate"])],
    "sigmoid": lambda node, mode: [stock.Activation("sigmoid")],
    "add": lambda node, mode: [stock.Add()],
    "embedding": lambda node, mode: [stock.Embedding(node["vocabulary"], node["units"])],
    "lstm": _lstm,
    "dense_within": _dense,
    "grouped_conv": images.grouped_conv,
    "conv_transpose": images.conv_transpose,
    "avg_pool": images.avg_pool,
    "adaptive_avg_pool": kinds.written(images.adaptive_avg_pool),
    "upsample": lambda node, mode: [stock.UpSampling2D(node["factor"])],
    "channel_shuffle": images.channel_shuffle,
    "local_response_norm": kinds.written(images.local_response_norm),
    "group_norm": kinds.written(images.group_norm),
    "concat": lambda node, mode: [stock.Concatenate(kinds.features(node))],
    "rnn": kinds.rnn,
    "gru": kinds.gru,
    "tanh": lambda node, mode: [stock.Activation("tanh")],
    "gelu": kinds.gelu,
    "gelu_tanh": kinds.written(kinds.gelu_tanh),
    "silu": kinds.written(lambda node, own, value: value * backend.sigmoid(value)),
    "layer_norm": kinds.written(kinds.layer_norm),
    "rms_norm": kinds.written(kinds.rms_norm),
    "layer_scale": kinds.written(kinds.layer_scale),
    "bias": kinds.written(lambda node, own, value: value + own["bias"]),
    "positions": kinds.written(kinds.positions),
    "table": kinds.written(lambda node, own, value: own["weight"]),
    "lookup": kinds.written(lambda node, own, words, table: backend.gather(table, words)),
    "unembedding": kinds.written(kinds.unembedding),
    "attention": kinds.written(kinds.attention),
    "patches": kinds.patches,
    "class_token": kinds.written(kinds.class_token),
    "first_step": kinds.written(lambda node, own, value: backend.batch_flatten(value[:, :1])),
    "mean_steps": lambda node, mode: [stock.GlobalAveragePooling1D()],
    "transpose": lambda node, mode: [stock.Permute((2, 1))],
    "part": kinds.written(kinds.part),
    "stack": kinds.written(kinds.stack),
    "unstack": lambda node, mode: [stock.Flatten()],
    "reversal": kinds.written(kinds.reversal),
    "sampled_code": kinds.written(kinds.sampled_code),
    "rbm": kinds.written(kinds.rbm),
}
