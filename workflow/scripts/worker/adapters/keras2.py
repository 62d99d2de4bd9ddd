"""Keras 2.0: its own layers and optimisers in a function of Keras's backend, which is the mode.

What was chosen here, and by which measured ratios: docs/adapters/keras2.md.
"""

import ctypes

import keras
import numpy as np
from keras import backend, layers, models

from .. import kernels, specification
from ..contract import Unsupported

MODES = ("tensorflow", "theano", "cntk")
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
TASKS = ("step", "training")
# Kernels are channels last with every backend, images with TensorFlow alone.
LAYOUT = {
    "tensorflow": {"images": "channels last"},
    "theano": {"kernels": "channels last"},
    "cntk": {"kernels": "channels last"},
}
KERNELS = {"tensorflow": "", "theano": "openblas:numpy", "cntk": "mkl"}
REASONS = {"gpu": "the backends of this Keras are built for CPUs"}

# The order of the parameters in Keras's layers; what follows in a layer is not trained, a last bias may be missing.
_ROLES = {
    "dense": ("weight", "bias"),
    "conv": ("weight", "bias"),
    "batch_norm": ("gamma", "beta"),
    "embedding": ("weight",),
    "lstm": ("input", "recurrent", "bias"),
}


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
        backend.set_session(tf.Session(config=settings))
    if mode == "theano":
        import theano

        if not theano.config.cxx:
            raise Unsupported("Theano finds no C++ compiler: it needs g++ when it runs")
        known = ctypes.CDLL("libgomp.so.1").omp_get_max_threads() if theano.config.openmp else 1
    if mode == "cntk":
        if len(spec["nodes"][-1]["shape"]) > 1:
            raise Unsupported(
                "Keras 2.0.5 on CNTK: its cross-entropy fails where each step of a sequence has a label"
            )
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
        mode, self._nodes = job.mode, job.spec["nodes"]
        self._variables, self._layout, self._mode = {}, job.layout, mode
        self.threads = threads
        self.settings = {"layout": backend.image_data_format().replace("_", " ")}
        self._layers = {node["name"]: LAYERS[node["op"]](node, mode) for node in self._nodes}
        self._first, given = _place(job.inputs, mode)
        scores = self._connect(self._first)
        model = models.Model(self._first, scores)
        self._answers, given_answers = _place(job.labels[..., None], mode)
        self._loss = backend.mean(_losses(self._answers, scores, mode))
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
            judged = layers.Input(batch_shape=inputs.shape)
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
        wanted = self._variables if names is None else names
        return {
            name: self._layout.leave(name, _turned(backend.get_value(self._variables[name])))
            for name in wanted
        }

    def _load(self, job):
        for node in job.spec["nodes"]:
            names = ["{}/{}".format(node["name"], role) for role in _ROLES.get(node["op"], ())]
            # Padding stands in front of the layer that has weights.
            for name, variable in zip(names, self._layers[node["name"]][-1].weights):
                self._variables[name] = variable
                backend.set_value(variable, np.ascontiguousarray(_turned(job.take(name))))


def _turned(value):
    """A kernel from its end with Keras on Theano, which convolves; everything else as it is."""
    convolves = backend.backend() == "theano" and value.ndim == 4
    return value[::-1, ::-1] if convolves else value


def _optimiser(mode, wanted):
    """The optimiser and the variable of its rate: Keras's own, but for SGD on TensorFlow, which has one of its own.

    On TensorFlow, Keras lets a weight be updated while the gradient of the layer's input still reads it, and the layers
    below get the gradient of another step. TensorFlow's own optimiser waits; Keras's are made to.
    """
    rate, name = wanted["learning_rate"], wanted["name"]
    if name == "sgd" and mode == "tensorflow":
        import tensorflow as tf

        rate = backend.variable(rate)
        return keras.optimizers.TFOptimizer(tf.train.GradientDescentOptimizer(rate)), rate
    kind = {"sgd": "SGD", "adadelta": "Adadelta", "rmsprop": "RMSprop"}[name]
    own = {key: wanted[key] for key in ("rho", "epsilon") if key in wanted}
    made = getattr(keras.optimizers, kind)(lr=rate, **own)
    if mode == "tensorflow":
        made.get_gradients = _all_gradients
    return made, made.lr


def _all_gradients(loss, parameters):
    """Gradients that are handed on when all of them are there."""
    import tensorflow as tf

    return tf.tuple(tf.gradients(loss, parameters))


def _place(value, mode):
    """A tensor that holds the array, and a list of what a step has to be given for it: a value in CNTK's memory."""
    value = np.ascontiguousarray(value)
    if mode != "cntk":
        return layers.Input(tensor=backend.variable(value, dtype=str(value.dtype))), []
    import cntk

    return layers.Input(batch_shape=value.shape), [cntk.Value(value.astype(np.float32))]


def _losses(labels, scores, mode):
    """Cross-entropies from scores, so that no softmax is taken twice: Keras's own, but on Theano, where it is dense."""
    if mode != "theano":
        return backend.sparse_categorical_crossentropy(scores, labels, from_logits=True)
    from theano.tensor import nnet

    likelihoods = nnet.softmax(backend.reshape(scores, (-1, backend.int_shape(scores)[-1])))
    return nnet.categorical_crossentropy(likelihoods, labels.flatten())


def _conv(node, mode):
    same = node["stride"] == 1 and 2 * node["padding"] == node["kernel"] - 1
    # CNTK takes no kernel above the image that it pads by itself.
    same = same and (mode != "cntk" or node["kernel"] <= min(node["in_shape"][1:]))
    options = {
        "strides": node["stride"],
        "padding": "same" if same else "valid",
        "use_bias": node["bias"],
    }
    conv = layers.Conv2D(node["channels"], node["kernel"], kernel_initializer="zeros", **options)
    return [conv] if same or not node["padding"] else [layers.ZeroPadding2D(node["padding"]), conv]


def _max_pool(node, mode):
    pool = layers.MaxPooling2D(node["kernel"], node["stride"])
    # Keras pads with zeros, which is right behind a ReLU; all padded pools of the networks stand there.
    return [layers.ZeroPadding2D(node["padding"]), pool] if node["padding"] else [pool]


def _batch_norm(node, mode):
    axis = -1 if backend.image_data_format() == "channels_last" else 1
    epsilon = specification.BATCH_NORM_EPSILON
    if mode == "theano":
        # The float32 next to 1e-5 lies below it, and Theano takes none below it.
        epsilon = float(np.nextafter(np.float32(epsilon), np.float32(1)))
    return [layers.BatchNormalization(axis=axis, epsilon=epsilon)]


def _lstm(node, mode):
    # The default of Keras's LSTM is a hard sigmoid.
    return [
        layers.LSTM(
            node["units"],
            recurrent_activation="sigmoid",
            kernel_initializer="zeros",
            recurrent_initializer="zeros",
            unit_forget_bias=False,
            return_sequences=True,
        )
    ]


LAYERS = {
    "dense": lambda node, mode: [
        layers.Dense(node["units"], use_bias=node["bias"], kernel_initializer="zeros")
    ],
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, mode: [layers.GlobalAveragePooling2D()],
    "flatten": lambda node, mode: [layers.Flatten()],
    "batch_norm": _batch_norm,
    "relu": lambda node, mode: [layers.Activation("relu")],
    "dropout": lambda node, mode: [layers.Dropout(node["rate"])],
    "sigmoid": lambda node, mode: [layers.Activation("sigmoid")],
    "add": lambda node, mode: [layers.Add()],
    "embedding": lambda node, mode: [layers.Embedding(node["vocabulary"], node["units"])],
    "lstm": _lstm,
}
