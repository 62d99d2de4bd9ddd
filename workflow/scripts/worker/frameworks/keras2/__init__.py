"""Keras 2.0: its own layers and optimisers in a function of Keras's backend, which is the mode."""

import ctypes
import sys

import keras
import numpy as np
from keras import backend, models, optimizers
from keras import layers as stock

from shared import specification

from ... import kernels
from ...contract import Unsupported

MODES = ("tensorflow", "theano", "cntk")
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
    """Returns the versions of Keras and of its backend."""
    engine = __import__(backend.backend())
    found = {
        "framework_version": keras.__version__,
        "build": "{} {}".format(engine.__name__, engine.__version__),
    }
    return dict(found, blas=kernels.describe_openblas()) if backend.backend() == "theano" else found


def build(job):
    """Returns a trainer of the specification. Keras reads the name of its backend from the environment."""
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
        # A graph with another network in it would take longer to read and to write.
        backend.clear_session()
        backend.set_session(tf.Session(config=settings))
    if mode == "theano":
        import theano

        if not theano.config.cxx:
            raise Unsupported("Theano finds no C++ compiler: it needs g++ when it runs")
        from ..theano import pools

        pools.give_to_one()
        # It walks a graph by recursion, which deep networks are too deep for.
        sys.setrecursionlimit(max(10000, sys.getrecursionlimit()))
        known = ctypes.CDLL("libgomp.so.1").omp_get_max_threads() if theano.config.openmp else 1
    if mode == "cntk":
        import cntk

        cntk.cntk_py.set_max_num_cputhreads(known)
        # Each layer of dropout draws the next seed from here: of a fixed one, all layers drop the same values.
        cntk.cntk_py.reset_random_seed(job.seed)
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
        mode, self._nodes = job.mode, job.spec["nodes"]
        self._variables = {}
        self._leave = {}
        self._layout = job.layout
        self._mode = mode
        self.threads = threads
        self.settings = {"layout": backend.image_data_format().replace("_", " ")}
        self._layers = {node["name"]: LAYERS[node["op"]](node, mode) for node in self._nodes}
        self._first, given = _place(job.inputs, mode)
        scores = self._connect(self._first)
        model = models.Model(self._first, scores)
        # Keras has labels as targets of one number each.
        self._answers, given_answers = _place(job.labels[..., None], mode)
        self._loss = backend.mean(_cross_entropy(self._answers, scores))
        optimiser, self._rate = _optimiser(mode, job.spec["optimiser"])
        self._learning_rate = job.learning_rate
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
            labels = self._layout.labels(labels)[..., None]
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
        """Returns the output of the last layer, without dropout if it is for judging."""
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
            turn = _from_its_end if node["op"] == "conv" else np.asarray
            # What follows in a layer is not trained.
            for name, variable in zip(job.own(node).values(), made):
                self._variables[name], self._leave[name] = variable, turn
                started.append((variable, np.ascontiguousarray(turn(job.take(name)))))
        # At once: TensorFlow reads its graph anew for each other set of values.
        backend.batch_set_value(started)


def _from_its_end(value):
    """Turns a kernel on its way into the layers of Keras, or back: on Theano, they flip it."""
    convolves = backend.backend() == "theano" and value.ndim == 4
    return value[::-1, ::-1] if convolves else value


def _place(value, mode):
    """Returns a tensor with the array, and a list of what each step needs for it: on CNTK, a value in CNTK's memory."""
    value = np.ascontiguousarray(value)
    if mode != "cntk":
        return stock.Input(tensor=backend.variable(value, dtype=str(value.dtype))), []
    import cntk

    return stock.Input(batch_shape=value.shape), [cntk.Value(value.astype(np.float32))]


def _cross_entropy(labels, scores):
    """Computes the loss from scores, so that no softmax is taken twice; on Theano not by Keras's, which is dense."""
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


# The maker of each, and what it takes.
OPTIMISERS = {
    "sgd": (optimizers.SGD, ()),
    "adadelta": (optimizers.Adadelta, ("rho", "epsilon")),
    "rmsprop": (optimizers.RMSprop, ("rho", "epsilon")),
}


def _optimiser(mode, wanted):
    """Returns Keras's own optimiser, for SGD on TensorFlow TensorFlow's, and the variable of its rate.

    On TensorFlow, Keras lets a weight be updated while the gradient of the layer's input still reads it, and the layers
    below get the gradient of another step. TensorFlow's own optimiser waits; Keras's others are made to wait.
    """
    rate, name = wanted["learning_rate"], wanted["name"]
    if name == "sgd" and mode == "tensorflow":
        import tensorflow as tf

        rate = backend.variable(rate)
        return optimizers.TFOptimizer(tf.train.GradientDescentOptimizer(rate)), rate
    make, words = OPTIMISERS[name]
    optimiser = make(lr=rate, **{word: wanted[word] for word in words})
    if mode == "tensorflow":
        optimiser.get_gradients = _all_gradients
    return optimiser, optimiser.lr


def _all_gradients(loss, parameters):
    """Returns gradients that are passed on when all of them are there."""
    import tensorflow as tf

    return tf.tuple(tf.gradients(loss, parameters))


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
        # The float32 next to 1e-5 is smaller, and Theano takes no smaller one.
        epsilon = float(np.nextafter(np.float32(epsilon), np.float32(1)))
    return [stock.BatchNormalization(axis=axis, epsilon=epsilon)]


class _LSTM(stock.LSTM):
    """An LSTM that multiplies all steps' inputs at once; Keras joins steps with samples, which CNTK does not allow."""

    def preprocess_input(self, inputs, training=None):
        return backend.dot(inputs, self.kernel) + self.bias


def _lstm(node, mode):
    kind = _LSTM if mode == "cntk" else stock.LSTM
    made = kind(
        node["units"],
        kernel_initializer="zeros",
        recurrent_initializer="zeros",
        return_sequences=True,
        # The default of Keras's LSTM is a hard sigmoid.
        recurrent_activation="sigmoid",
        unit_forget_bias=False,
    )
    return [made]


def _dense(node, mode):
    return [stock.Dense(node["units"], use_bias=node["bias"], kernel_initializer="zeros")]


def _flatten(node, mode):
    # Channels are last with TensorFlow alone.
    turn = [stock.Permute((3, 1, 2))] if node.get("turned") else []
    return turn + [stock.Flatten()]


def _max_pool(node, mode):
    """Returns a max pool padded with zeros, as is right after ReLUs."""
    pool = stock.MaxPooling2D(node["kernel"], node["stride"])
    return [stock.ZeroPadding2D(node["padding"]), pool] if node["padding"] else [pool]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, mode: [stock.GlobalAveragePooling2D()],
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "relu": lambda node, mode: [stock.Activation("relu")],
    "dropout": lambda node, mode: [stock.Dropout(node["rate"])],
    "sigmoid": lambda node, mode: [stock.Activation("sigmoid")],
    "add": lambda node, mode: [stock.Add()],
    "embedding": lambda node, mode: [stock.Embedding(node["vocabulary"], node["units"])],
    "lstm": _lstm,
}
