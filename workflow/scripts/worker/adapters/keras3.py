"""Keras 3 on TensorFlow, PyTorch or JAX (the mode): a functional model of Keras's layers, trained by Keras itself.

What was chosen here: docs/adapters/keras3.md.
"""

import os

import keras
import numpy as np
from keras import layers

from .. import specification
from ..contract import Unsupported

MODES = ("tensorflow", "torch", "jax")
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
TASKS = ("step", "training")
LAYOUT = {"images": "channels last"}
REASONS = {"gpu": "the adapter of Keras 3 speaks to CPUs only"}

# Keras's names for the parameters of a layer: those of its arguments, and of the attributes that hold them.
_NAMES = {
    "dense": {"weight": "kernel", "bias": "bias"},
    "conv": {"weight": "kernel", "bias": "bias"},
    "batch_norm": {"gamma": "gamma", "beta": "beta"},
    "embedding": {"weight": "embeddings"},
    "lstm": {"input": "kernel", "recurrent": "recurrent_kernel", "bias": "bias"},
}


def versions():
    """Versions of Keras and of its backend."""
    module = __import__(keras.backend.backend())
    return {
        "framework_version": keras.__version__,
        "build": "{} {}".format(keras.backend.backend(), module.__version__),
    }


def build(job):
    """A trainer of the specification. Keras reads its backend from the environment, when it is imported."""
    if job.mode != keras.backend.backend():
        raise Unsupported(
            "Keras was started on {} and not on {}".format(keras.backend.backend(), job.mode)
        )
    threads = _limit_threads(job.mode, job.threads)
    # Its layers of dropout draw their seeds from here.
    keras.utils.set_random_seed(job.seed)
    return _Trainer(job, threads, *_make_model(job))


class _Trainer(object):
    def __init__(self, job, threads, model, variables):
        self.threads = threads
        self._model, self._variables, self._layout = model, variables, job.layout
        self._inputs = keras.ops.convert_to_tensor(job.inputs)
        self._labels = keras.ops.convert_to_tensor(job.labels.flatten())
        model.compile(
            optimizer=_optimizer(job.spec["optimiser"]),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        self.parameters = sum(
            int(np.prod(variable.shape)) for variable in model.trainable_variables
        )
        self.settings = {
            "layout": keras.config.image_data_format().replace("_", " "),
            "compiler": "XLA" if model.jit_compile else "none",
        }

    def run(self, steps):
        for _ in range(steps):
            loss = self._model.train_on_batch(self._inputs, self._labels)
        self._wait()
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._model.optimizer.learning_rate = rate
            fed = self._layout.inputs(inputs), self._layout.labels(labels).flatten()
            total, steps = total + float(self._model.train_on_batch(*fed)), steps + 1
        self._wait()
        return total / steps

    def scores(self, inputs):
        return self._model.predict_on_batch(self._layout.inputs(inputs))

    def _wait(self):
        if keras.backend.backend() == "jax":
            # The loss may be there before the parameters are.
            for variable in self._model.variables:
                variable.value.block_until_ready()

    def weights(self, names=None):
        wanted = self._variables if names is None else names
        return {
            name: np.array(
                self._layout.leave(name, keras.ops.convert_to_numpy(self._variables[name]))
            )
            for name in wanted
        }


class _RMSprop(keras.optimizers.Optimizer):
    """Keras 2's rule: the epsilon of Keras 3's own stands inside of the root."""

    def __init__(self, learning_rate, rho, epsilon):
        super().__init__(learning_rate)
        self._rho, self._epsilon = rho, epsilon

    def build(self, variables):
        super().build(variables)
        self._averages = self.add_optimizer_variables(variables, "average")

    def update_step(self, gradient, variable, learning_rate):
        average = self._averages[self._get_variable_index(variable)]
        self.assign(average, self._rho * average + (1 - self._rho) * keras.ops.square(gradient))
        step = gradient / (keras.ops.sqrt(average) + self._epsilon)
        self.assign_sub(variable, learning_rate * step)


def _optimizer(wanted):
    """Keras's own optimiser."""
    rate, rho, epsilon = (wanted.get(name) for name in ("learning_rate", "rho", "epsilon"))
    if wanted["name"] == "adadelta":
        return keras.optimizers.Adadelta(rate, rho, epsilon)
    if wanted["name"] == "rmsprop":
        return _RMSprop(rate, rho, epsilon=epsilon)
    return keras.optimizers.SGD(rate)


def _limit_threads(mode, threads):
    """Tells the backend its number of threads, and returns what it then says."""
    if mode == "tensorflow":
        import tensorflow

        tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        return tensorflow.config.threading.get_intra_op_parallelism_threads()
    if mode == "torch":
        import torch

        torch.set_num_threads(threads)
        return torch.get_num_threads()
    # XLA does not tell the size of its pool; NPROC is where it reads it from.
    return int(os.environ["NPROC"])


def _make_model(job):
    """The model, and {parameter: variable of Keras}."""
    start = {name: job.take(name) for name in job.layout.names}
    source = keras.Input(job.inputs.shape[1:], len(job.inputs), str(job.inputs.dtype))
    values, made = {"input": source}, {}
    for node in job.spec["nodes"]:
        names = {
            "{}/{}".format(node["name"], role): keras_name
            for role, keras_name in _NAMES.get(node["op"], {}).items()
        }
        own = {keras_name: start[name] for name, keras_name in names.items() if name in start}
        # In place of random ones: of a hundred million those take seconds.
        own = {
            keras_name.replace("_kernel", "") + "_initializer": value
            for keras_name, value in own.items()
        }
        layer = LAYERS[node["op"]](node, own)
        values[node["name"]] = layer(*[values[name] for name in node["inputs"]])
        made[node["name"]] = (layer, names)
    variables = {
        name: getattr(getattr(layer, "cell", layer), keras_name)
        for layer, names in made.values()
        for name, keras_name in names.items()
        if name in start
    }
    logits = values[node["name"]]
    # PyTorch wants the classes second: on (batch, steps, classes) its loss works on memory with gaps.
    return keras.Model(source, keras.ops.reshape(logits, (-1, logits.shape[-1]))), variables


def _conv(node, own):
    same = node["stride"] == 1 and 2 * node["padding"] == node["kernel"] - 1
    sizes = (node["channels"], node["kernel"], node["stride"])
    layer = layers.Conv2D(*sizes, padding="same" if same else "valid", use_bias=node["bias"], **own)
    return layer if same else _Padded(node, 0.0, layer)


def _max_pool(node, own):
    return _Padded(
        node, float(np.finfo(np.float32).min), layers.MaxPooling2D(node["kernel"], node["stride"])
    )


class _Padded(object):
    """A layer behind the explicit padding that Keras's own layers do not have."""

    def __init__(self, node, filling, layer):
        self._around, self._filling, self._layer = [node["padding"]] * 2, filling, layer

    def __call__(self, value):
        if self._around[0]:
            around = [[0, 0], self._around, self._around, [0, 0]]
            value = keras.ops.pad(value, around, constant_values=self._filling)
        return self._layer(value)

    def __getattr__(self, name):
        return getattr(self._layer, name)


LAYERS = {
    "dense": lambda node, own: layers.Dense(node["units"], use_bias=node["bias"], **own),
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own: layers.GlobalAveragePooling2D(),
    "flatten": lambda node, own: layers.Flatten(),
    "batch_norm": lambda node, own: layers.BatchNormalization(
        epsilon=specification.BATCH_NORM_EPSILON, **own
    ),
    "relu": lambda node, own: layers.ReLU(),
    "dropout": lambda node, own: layers.Dropout(node["rate"]),
    "sigmoid": lambda node, own: layers.Activation("sigmoid"),
    "add": lambda node, own: lambda *values: layers.add(values),
    "embedding": lambda node, own: layers.Embedding(node["vocabulary"], node["units"], **own),
    # The start value of the bias counts as it is.
    "lstm": lambda node, own: layers.LSTM(
        node["units"], return_sequences=True, unit_forget_bias=False, **own
    ),
}
