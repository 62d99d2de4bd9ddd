"""Keras 3 on TensorFlow, PyTorch or JAX (the mode): a functional model of Keras's layers, trained by Keras itself."""

import functools
import os

import keras
import numpy as np
from keras import layers

from shared import rotary, specification

from ... import rounding
from ...contract import Unsupported

MODES = ("tensorflow", "torch", "jax")
TASKS = ("step", "training")
LAYOUT = {"images": "channels last"}
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
# What the adapter of each backend asks for.
PRECISIONS = {
    "float32": {"tensor_float_32": False, "allow_tf32": False, "matmul": "highest"},
    "tf32": {"tensor_float_32": True, "allow_tf32": True, "matmul": "default"},
    "bfloat16": {},
}

# Keras's names for the parameters of a layer: those of its arguments, and of the attributes that hold them.
_WEIGHTED = {"weight": "kernel", "bias": "bias"}
_RECURRENT = {"input": "kernel", "recurrent": "recurrent_kernel", "bias": "bias"}
_RECURRENT.update({"back_" + role: "back_" + name for role, name in _RECURRENT.items()})
# For other layers, see _WEIGHTED.
_NAMES = {
    "batch_norm": {"gamma": "gamma", "beta": "beta"},
    "group_norm": {"gamma": "gamma", "beta": "beta"},
    "embedding": {"weight": "embeddings"},
    "bias": {"bias": "kernel"},
    "layer_norm": {"weight": "gamma", "bias": "beta"},
    "rbm": {"weight": "kernel", "visible": "visible", "hidden": "hidden"},
    "rnn": _RECURRENT,
    "lstm": _RECURRENT,
    "gru": _RECURRENT,
}


def versions():
    """Returns the versions of Keras and of its backend."""
    module = __import__(keras.backend.backend())
    return {
        "framework_version": keras.__version__,
        "build": "{} {}".format(keras.backend.backend(), module.__version__),
    }


def build(job, limit=None):
    """Returns a trainer of the specification. Keras reads its backend from the environment, when it is imported.

    `limit`, by default that of this module, tells a backend its number of threads.
    """
    if job.mode != keras.backend.backend():
        raise Unsupported(
            "Keras was started on {} and not on {}".format(keras.backend.backend(), job.mode)
        )
    threads = (limit or _limit_threads)(job)
    settings = {}
    if job.device == "gpu":
        settings = _ON_GPU[job.mode](job.precision, PRECISIONS[job.precision])
    mixed = job.precision == "bfloat16"
    keras.config.set_dtype_policy("mixed_bfloat16" if mixed else "float32")
    if mixed:
        settings = rounding.in_bfloat16(_product)
    # Its layers of dropout draw their seeds from here.
    keras.utils.set_random_seed(job.seed)
    return _Trainer(job, threads, settings, *_make_model(job))


def _product(left, right):
    product = keras.ops.matmul(*(keras.ops.cast(each, "bfloat16") for each in (left, right)))
    return keras.ops.convert_to_numpy(keras.ops.cast(product, "float32"))


def _tensorflow_on_gpu(precision, asked):
    from ...settings import tensorflow as tensorflow_settings

    return tensorflow_settings.configure_gpu(precision, asked)


def _torch_on_gpu(precision, asked):
    from keras.src.backend.torch import core

    from ...settings import torch as torch_settings

    # Where PyTorch sees a GPU, Keras computes there, and where not, on the CPU without a word.
    place = core.get_device()
    if place != "cuda":
        raise Unsupported("Keras on PyTorch finds no GPU and would take '{}'".format(place))
    return torch_settings.configure_cuda(precision, asked)


def _jax_on_gpu(precision, asked):
    import jax

    from ...settings import jax as jax_settings

    place = jax.default_backend()
    if place != "gpu":
        raise Unsupported("Keras on JAX finds no GPU and would take '{}'".format(place))
    jax_settings.first_gpu(precision, asked)
    return {}


# What is set on a GPU, and refused where there is none.
_ON_GPU = {"tensorflow": _tensorflow_on_gpu, "torch": _torch_on_gpu, "jax": _jax_on_gpu}


class _Trainer(object):
    def __init__(self, job, threads, settings, model, variables):
        self.threads, self._on_gpu = threads, job.device == "gpu"
        self._model, self._variables, self._layout = model, variables, job.layout
        self._inputs = keras.ops.convert_to_tensor(job.inputs)
        optimiser, loss = job.spec["optimiser"], job.spec["loss"]
        self._classes = loss == "softmax_cross_entropy"
        self._labels = keras.ops.convert_to_tensor(self._targets(job.labels))
        model.compile(OPTIMISERS[optimiser["name"]](optimiser), LOSSES[loss]())
        sizes = [int(np.prod(variable.shape)) for variable in model.trainable_variables]
        # Second biases, which stay at zero.
        self.frozen_parameters = sum(
            layer.bias.shape[1] for layer in model.layers if isinstance(layer, _GRU)
        )
        self.parameters = sum(sizes) - self.frozen_parameters
        self.settings = dict(
            settings,
            layout=keras.config.image_data_format().replace("_", " "),
            compiler="XLA" if model.jit_compile else "none",
        )

    def _targets(self, labels):
        """Returns labels as Keras wants them: one for each row of classes; other targets in the shape of outputs."""
        return labels.flatten() if self._classes else labels

    def run(self, steps):
        for _ in range(steps):
            loss = self._model.train_on_batch(self._inputs, self._labels)
        self._wait()
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._model.optimizer.learning_rate = rate
            fed = self._layout.inputs(inputs), self._targets(self._layout.labels(labels))
            total, steps = total + float(self._model.train_on_batch(*fed)), steps + 1
        self._wait()
        return total / steps

    def scores(self, inputs):
        return self._model.predict_on_batch(self._layout.inputs(inputs))

    def _wait(self):
        """Waits for the parameters, which may come later than the loss: on JAX, and on a GPU."""
        backend = keras.backend.backend()
        if backend == "jax":
            for variable in self._model.variables:
                variable.value.block_until_ready()
        elif self._on_gpu and backend == "torch":
            __import__("torch").cuda.synchronize()
        elif self._on_gpu:
            __import__("tensorflow").test.experimental.sync_devices()

    def weights(self, names=None):
        wanted = self._variables if names is None else names
        return {
            name: np.array(self._layout.leave(name, read(keras.ops.convert_to_numpy(variable))))
            for name in wanted
            for variable, read in [self._variables[name]]
        }

    def statistics(self):
        gammas = {id(kept): name.split("/")[0] for name, (kept, _) in self._variables.items()}
        return {
            "{}/{}".format(gammas[id(layer.gamma)], role): keras.ops.convert_to_numpy(values)
            for layer in self._model.layers
            if isinstance(layer, layers.BatchNormalization)
            for role, values in (("mean", layer.moving_mean), ("variance", layer.moving_variance))
        }


def _evidence_bound(targets, outputs):
    decoded, code = targets.shape[1], (outputs.shape[1] - targets.shape[1]) // 2
    mean, spread = outputs[:, decoded : decoded + code], outputs[:, decoded + code :]
    missed = keras.ops.binary_crossentropy(targets, outputs[:, :decoded], from_logits=True)
    apart = 0.5 * (keras.ops.square(mean) + keras.ops.exp(spread) - spread - 1)
    return (keras.ops.sum(missed, 1) + keras.ops.sum(apart, 1)) / outputs.shape[1]


LOSSES = {
    "softmax_cross_entropy": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "mean_squares": keras.losses.MeanSquaredError,
    "binary_cross_entropy": lambda: keras.losses.BinaryCrossentropy(from_logits=True),
    "evidence_bound": lambda: _evidence_bound,
    "adversarial": lambda: keras.losses.BinaryCrossentropy(from_logits=True),
    "mean_output": lambda: lambda targets, outputs: keras.ops.mean(outputs, 1),
}


class _RMSprop(keras.optimizers.Optimizer):
    """Keras 2's rule: Keras 3's own has its epsilon inside the root."""

    def __init__(self, wanted):
        # From the private name, Keras would make a name that TensorFlow refuses.
        super().__init__(wanted["learning_rate"], name="rmsprop")
        self._rho, self._epsilon = wanted["rho"], wanted["epsilon"]

    def build(self, variables):
        super().build(variables)
        self._averages = self.add_optimizer_variables(variables, "average")

    def update_step(self, gradient, variable, learning_rate):
        average = self._averages[self._get_variable_index(variable)]
        gradient = _summed(gradient, variable)
        self.assign(average, self._rho * average + (1 - self._rho) * keras.ops.square(gradient))
        step = gradient / (keras.ops.sqrt(average) + self._epsilon)
        self.assign_sub(variable, learning_rate * step)


class _Adam(keras.optimizers.Adam):
    """Keras's Adam, which adds its epsilon to a root that is not corrected yet; parameters of two axes may decay.

    On PyTorch, Keras has a class that updates all parameters at once (docs/adapters/keras3.md).
    """

    def __init__(self, wanted):
        decay = {"weight_decay": wanted["weight_decay"]} if "weight_decay" in wanted else {}
        betas = wanted["beta1"], wanted["beta2"]
        # A class whose name begins with an underscore would give TensorFlow no valid name.
        own = dict(decay, epsilon=wanted["epsilon"], name="adam")
        super().__init__(wanted["learning_rate"], *betas, **own)

    def _backend_update_step(self, gradients, variables, learning_rate):
        added = self.epsilon
        power = keras.ops.power(self.beta_2, keras.ops.cast(self.iterations + 1, "float32"))
        self.epsilon = added * keras.ops.sqrt(1 - power)
        gradients = [_summed(*pair) for pair in zip(gradients, variables)]
        super()._backend_update_step(gradients, variables, learning_rate)
        self.epsilon = added

    def _use_weight_decay(self, variable):
        return len(variable.shape) > 1


def _summed(gradient, variable):
    """Returns the gradient of an embedding with one row for each word.

    TensorFlow gives a row for each time that a word is read, and Keras 3.15 squares each of them: its Adam moves a word
    that is read three times by as little as a tenth of what the sum would.
    """
    if not hasattr(gradient, "dense_shape"):
        return gradient
    return keras.ops.add(keras.ops.zeros_like(variable), gradient)


OPTIMISERS = {
    "sgd": lambda wanted: keras.optimizers.SGD(wanted["learning_rate"]),
    "adadelta": lambda wanted: keras.optimizers.Adadelta(
        wanted["learning_rate"], wanted["rho"], wanted["epsilon"]
    ),
    "rmsprop": _RMSprop,
    "momentum": lambda wanted: keras.optimizers.SGD(
        wanted["learning_rate"], momentum=wanted["momentum"]
    ),
    "adam": _Adam,
    "adamw": _Adam,
}


def _limit_threads(job):
    """Sets the backend's number of threads, and returns the number that it then reports."""
    if job.mode == "tensorflow":
        from ...settings import tensorflow as tensorflow_settings

        return tensorflow_settings.limit_threads(job)
    if job.mode == "torch":
        import torch

        torch.set_num_threads(job.threads)
        return torch.get_num_threads()
    # XLA does not tell the size of its pool; NPROC is where it reads it from.
    return int(os.environ["NPROC"])


def _make_model(job):
    """Returns the model, and {parameter: variable of Keras}."""
    start = {name: job.take(name) for name in job.layout.names}
    source = keras.Input(job.inputs.shape[1:], len(job.inputs), str(job.inputs.dtype))
    values = {"input": source}
    made = {}
    for node in job.spec["nodes"]:
        names = {
            "{}/{}".format(node["name"], role): keras_name
            for role, keras_name in _NAMES.get(node["op"], _WEIGHTED).items()
        }
        # In place of random ones: of a hundred million those take seconds.
        own = {
            keras_name.replace("recurrent_kernel", "recurrent") + "_initializer": start[name]
            for name, keras_name in names.items()
            if name in start
        }
        layer = LAYERS[node["op"]](node, own)
        values[node["name"]] = layer(*[values[name] for name in node["inputs"]])
        made[node["name"]] = (layer, names)
        if job.mode == "torch" and node["op"] == "conv" and node["channels"] == 1:
            # With its usual strides, PyTorch takes no gradient of one image.
            layer.kernel.value.data = layer.kernel.value.data[None, ..., 0].movedim(0, 3)
    variables = {
        name: (
            getattr(getattr(layer, "cell", layer), keras_name),
            functools.partial(getattr(layer, "read", _as_it_is), keras_name),
        )
        for layer, names in made.values()
        for name, keras_name in names.items()
        if name in start
    }
    logits = values[node["name"]]
    # PyTorch wants the classes second: on (batch, steps, classes) its loss works on memory with gaps.
    rows = keras.ops.reshape(logits, (-1, logits.shape[-1]))
    if job.precision == "bfloat16":
        rows = keras.ops.cast(rows, "float32")
    return keras.Model(source, rows), variables


def _conv(node, own):
    same = specification.is_same(node)
    sizes = (node["channels"], node["kernel"], node["stride"])
    layer = layers.Conv2D(
        *sizes,
        padding="same" if same else "valid",
        dilation_rate=node.get("dilation", 1),
        use_bias=node["bias"],
        **own,
    )
    return layer if same else _Padded(node, 0.0, layer)


def _flatten(node, own):
    flatten = layers.Flatten()
    turn = layers.Permute((3, 1, 2))
    return (lambda values: flatten(turn(values))) if node["turned"] else flatten


def _recurrent(kind):
    """Returns what makes a recurrent layer of a node, and what Keras's Bidirectional makes of two such layers."""

    def make(node, own):
        starts = {name: start for name, start in own.items() if not name.startswith("back_")}
        layer = kind(node["units"], return_sequences=True, **starts)
        if not node.get("bidirectional"):
            return layer
        starts = {name: own["back_" + name] for name in starts}
        back = kind(node["units"], return_sequences=True, go_backwards=True, **starts)
        return _Bidirectional(layer, back)

    return make


class _Bidirectional(object):
    """Keras's own with arrays as start values, which that does not accept."""

    def __init__(self, there, back):
        self._there, self._back = there, back
        self.read = getattr(there, "read", _as_it_is)

    def __call__(self, values):
        both = self._there(values), keras.ops.flip(self._back(values), 1)
        return keras.ops.concatenate(both, -1)

    def __getattr__(self, name):
        cell = self._back.cell if name.startswith("back_") else self._there.cell
        return getattr(cell, name.removeprefix("back_"))


class _GRU(layers.GRU):
    """Keras's GRU: its gates are update, reset, new, and its second bias stays at zero, since the network has one."""

    def __init__(self, units, bias_initializer, kernel_initializer, recurrent_initializer, **own):
        bias = _swapped(bias_initializer)
        super().__init__(
            units,
            kernel_initializer=_swapped(kernel_initializer),
            recurrent_initializer=_swapped(recurrent_initializer),
            bias_initializer=np.stack([bias, np.zeros_like(bias)]),
            bias_constraint=lambda both: both * np.array([[1], [0]], np.float32),
            **own,
        )

    @property
    def bias(self):
        return self.cell.bias

    def read(self, name, value):
        """Returns a parameter as the network has it; of two biases, (2, 3 units), the first."""
        return _swapped(value[0] if name.endswith("bias") else value)


def _as_it_is(name, value):
    return value


def _swapped(value):
    """Swaps the first two of three gates, which are side by side in (..., 3 units)."""
    first, second, third = np.split(value, 3, -1)
    return np.concatenate([second, first, third], -1)


def _hold(layer, name, start):
    """Gives a layer a weight that begins with these values."""

    def given(shape, dtype=None):
        return keras.ops.convert_to_tensor(start, dtype)

    setattr(layer, name, layer.add_weight(shape=start.shape, initializer=given))


class _Windowed(layers.Layer):
    """A layer with kernels in the neutral layout, which Keras's own layers do not have, and its function."""

    def __init__(self, node, function, kernel_initializer, bias_initializer=None):
        super().__init__()
        self._node, self._function = node, function
        self._starts = {"kernel": kernel_initializer, "bias": bias_initializer}
        self.bias = None

    def build(self, shape):
        for name in ("kernel", "bias")[: 1 + self._node["bias"]]:
            _hold(self, name, self._starts.pop(name))

    def call(self, values):
        values = self._function(self._node, self.kernel, values)
        return values if self.bias is None else values + self.bias

    def compute_output_spec(self, values):
        channels, height, width = self._node["shape"]
        return keras.KerasTensor((values.shape[0], height, width, channels), self.compute_dtype)


def _in_groups(node, kernel, values):
    """Convolves in groups; kernels are (out, in / groups, height, width)."""
    groups, same = node["groups"], specification.is_same(node)
    if not same:
        values = keras.ops.pad(values, [[0, 0], *specification.edges(node), [0, 0]])
    stride, apart = (tuple(specification.pair(node.get(key, 1))) for key in ("stride", "dilation"))
    padding = "same" if same else "valid"
    # TensorFlow has depthwise convolutions of one stride alone, and of none beside a dilation.
    fits = stride[0] == stride[1] and (1, 1) in (stride, apart)
    if groups == node["in_shape"][0] and fits:
        kernel = keras.ops.reshape(kernel, (groups, -1, *kernel.shape[2:]))
        kernel = keras.ops.transpose(kernel, (2, 3, 0, 1))
        return keras.ops.depthwise_conv(values, kernel, stride, padding, dilation_rate=apart)
    # TensorFlow has no gradient of a convolution in groups on CPUs.
    kernels = keras.ops.split(keras.ops.transpose(kernel, (2, 3, 1, 0)), groups, 3)
    parts = zip(keras.ops.split(values, groups, 3), kernels)
    made = [keras.ops.conv(*part, stride, padding, dilation_rate=apart) for part in parts]
    return keras.ops.concatenate(made, 3)


def _spread(node, kernel, values):
    """Convolves, transposed; kernels are (in, out, height, width)."""
    kernel, edge = keras.ops.transpose(kernel, (2, 3, 1, 0)), node["padding"]
    values = keras.ops.conv_transpose(values, kernel, node["stride"], "valid")
    _, height, width = node["shape"]
    return values[:, edge : edge + height, edge : edge + width]


def _channel_shuffle(node, own):
    channels, height, width = node["shape"]
    parts = (-1, height, width, node["groups"], channels // node["groups"])

    def shuffle(values):
        values = keras.ops.swapaxes(keras.ops.reshape(values, parts), 3, 4)
        return keras.ops.reshape(values, (-1, height, width, channels))

    return shuffle


def _local_response_norm(node, own):
    size, channels = node["size"], node["shape"][0]

    def norm(values):
        squares = keras.ops.pad(keras.ops.square(values), [[0, 0]] * 3 + [[size // 2] * 2])
        near = sum(squares[..., first : first + channels] for first in range(size))
        return values * (1 + near / (node["inverse_alpha"] * size)) ** -0.75

    return norm


def _max_pool(node, own):
    # The least float32 is none of bfloat16's numbers.
    return _Padded(node, -3e38, layers.MaxPooling2D(node["kernel"], node["stride"]))


class _Padded(object):
    """A layer after explicit padding, which Keras's own layers do not have."""

    def __init__(self, node, filling, layer):
        self._around, self._filling, self._layer = specification.edges(node), filling, layer

    def __call__(self, value):
        if any(map(any, self._around)):
            around = [[0, 0], *self._around, [0, 0]]
            value = keras.ops.pad(value, around, constant_values=self._filling)
        return self._layer(value)

    def __getattr__(self, name):
        return getattr(self._layer, name)


class _Weighted(layers.Layer):
    """A function of a weight and of the layer's input, as a layer; `made` is the shape of its output."""

    def __init__(self, function, made, kernel_initializer):
        super().__init__()
        self._start, self._function, self._made = kernel_initializer, function, made

    def build(self, *shapes):
        _hold(self, "kernel", self._start)

    def call(self, *values):
        return self._function(self.kernel, *values)

    def compute_output_spec(self, values):
        return keras.KerasTensor(self._made(values.shape), self.compute_dtype)


def _positions(node, own):
    steps, each = node["shape"][0], node["each"]

    def add(kernel, values):
        rows = kernel[: -(-steps // each)]
        return values + (keras.ops.repeat(rows, each, 0)[:steps] if each > 1 else rows)

    return _Weighted(add, tuple, **own)


def _class_token(node, own):
    def put(kernel, values):
        first = keras.ops.broadcast_to(kernel, (values.shape[0], 1, values.shape[-1]))
        return keras.ops.concatenate([first, values], 1)

    def made(shape):
        return (shape[0], *node["shape"])

    return _Weighted(put, made, **own)


def _attention(node, own):
    (steps, units), heads = node["shape"], node["heads"]
    shared, size = node.get("kv_heads", heads), units // heads

    def attend(values):
        values = keras.ops.reshape(values, (values.shape[0], steps, heads + 2 * shared, size))
        # Each (batch, steps, heads, size), as Keras's own function wants them.
        q, k, v = keras.ops.split(values, [heads, heads + shared], 2)
        if "rotary" in node:
            q, k = (_turned(node, each) for each in (q, k))
        if shared < heads:
            k, v = (keras.ops.repeat(each, heads // shared, 2) for each in (k, v))
        if "dropout" in node:
            found = _dropping_attention(node, q, k, v)
        else:
            found = keras.ops.dot_product_attention(q, k, v, is_causal=bool(node.get("causal")))
        return keras.ops.reshape(found, (values.shape[0], steps, units))

    return attend


def _dropping_attention(node, q, k, v):
    """Computes what Keras's layer of several heads does, whose own function cannot drop shares."""
    steps, size = q.shape[1], q.shape[3]
    scores = keras.ops.einsum("bths,buhs->bhtu", q * size**-0.5, k)
    if node.get("causal"):
        unseen = np.triu(np.full((steps, steps), -1e9, "float32"), 1)
        scores = scores + keras.ops.cast(unseen, scores.dtype)
    shares = layers.Dropout(node["dropout"])(keras.ops.softmax(scores))
    return keras.ops.einsum("bhtu,buhs->bths", shares, v)


def _turned(node, values):
    steps, size = values.shape[1], values.shape[3]
    cosine, sine = (each[:, None] for each in rotary.turns(steps, size, node["rotary"]))
    first, second = keras.ops.split(values, 2, -1)
    turned = first * cosine - second * sine, second * cosine + first * sine
    return keras.ops.concatenate(turned, -1)


def _batch_norm(node, own):
    if "momentum" in node:
        # Keras's is the share of the old average, not of the mini-batch.
        own = dict(own, momentum=1 - node["momentum"])
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    return layers.BatchNormalization(epsilon=epsilon, **own)


def _sampled_code(values, noise):
    mean, spread = keras.ops.split(values, 2, 1)
    return mean + keras.ops.exp(0.5 * spread) * noise


class _RBM(layers.Layer):
    def __init__(self, node, **starts):
        super().__init__()
        self._starts, self._units = starts, node["shape"][0]

    def build(self, *shapes):
        for name in ("kernel", "visible", "hidden"):
            _hold(self, name, self._starts.pop(name + "_initializer"))

    def call(self, visible, noise):
        visible = keras.ops.stop_gradient(visible)
        scores = keras.ops.matmul(visible, self.kernel) + self.hidden
        chances = keras.ops.stop_gradient(keras.ops.sigmoid(scores))
        drawn = keras.ops.cast(2 * chances - 1 > noise, "float32")
        end = keras.ops.matmul(drawn, keras.ops.transpose(self.kernel)) + self.visible
        end = keras.ops.stop_gradient(keras.ops.sigmoid(end))
        again = keras.ops.matmul(end, self.kernel) + self.hidden
        energy = keras.ops.sum(keras.ops.softplus(again) - keras.ops.softplus(scores), 1)
        energy = energy + keras.ops.matmul(end - visible, self.visible)
        return keras.ops.concatenate([energy[:, None], chances], 1)

    def compute_output_spec(self, visible, noise):
        return keras.KerasTensor((visible.shape[0], self._units), "float32")


LAYERS = {
    "dense": lambda node, own: layers.Dense(node["units"], use_bias=node["bias"], **own),
    "dense_within": lambda node, own: layers.Dense(node["units"], use_bias=node["bias"], **own),
    "conv": _conv,
    "conv_transpose": lambda node, own: _Windowed(node, _spread, **own),
    "grouped_conv": lambda node, own: _Windowed(node, _in_groups, **own),
    "avg_pool": lambda node, own: _Padded(
        node, 0.0, layers.AveragePooling2D(node["kernel"], node["stride"])
    ),
    # On TensorFlow, its adaptive pooling to one pixel asks for a window that is larger than the image.
    "adaptive_avg_pool": lambda node, own: (
        layers.AdaptiveAveragePooling2D(node["size"])
        if node["size"] > 1
        else layers.GlobalAveragePooling2D(keepdims=True)
    ),
    "upsample": lambda node, own: layers.UpSampling2D(
        node["factor"], interpolation="bilinear" if node.get("bilinear") else "nearest"
    ),
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "group_norm": lambda node, own: layers.GroupNormalization(
        node["groups"], epsilon=node.get("epsilon", specification.BATCH_NORM_EPSILON), **own
    ),
    "concat": lambda node, own: lambda *values: layers.concatenate(values),
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own: layers.GlobalAveragePooling2D(),
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "relu": lambda node, own: layers.ReLU(),
    "dropout": lambda node, own: layers.Dropout(node["rate"]),
    "sigmoid": lambda node, own: layers.Activation("sigmoid"),
    "add": lambda node, own: lambda *values: layers.add(values),
    "embedding": lambda node, own: layers.Embedding(node["vocabulary"], node["units"], **own),
    # The start value of the bias counts as it is.
    "lstm": _recurrent(functools.partial(layers.LSTM, unit_forget_bias=False)),
    "rnn": _recurrent(layers.SimpleRNN),
    "gru": _recurrent(_GRU),
    "tanh": lambda node, own: layers.Activation("tanh"),
    "gelu": lambda node, own: lambda values: keras.ops.gelu(values, approximate=False),
    "gelu_tanh": lambda node, own: lambda values: keras.ops.gelu(values, approximate=True),
    "silu": lambda node, own: layers.Activation("silu"),
    "layer_norm": lambda node, own: layers.LayerNormalization(
        epsilon=node["epsilon"], center=node["bias"], **own
    ),
    "rms_norm": lambda node, own: _Weighted(
        lambda kernel, values: keras.ops.rms_normalization(values, kernel, epsilon=node["epsilon"]),
        tuple,
        **own,
    ),
    "layer_scale": lambda node, own: _Weighted(lambda kernel, x: x * kernel, tuple, **own),
    "bias": lambda node, own: _Weighted(lambda kernel, values: values + kernel, tuple, **own),
    "positions": _positions,
    "table": lambda node, own: _Weighted(
        lambda kernel, values: kernel, lambda shape: node["shape"], **own
    ),
    "lookup": lambda node, own: lambda values, table: keras.ops.take(table, values, 0),
    "unembedding": lambda node, own: (
        lambda values, table: keras.ops.matmul(values, keras.ops.transpose(table))
    ),
    "attention": _attention,
    "patches": lambda node, own: lambda x: keras.ops.reshape(x, (x.shape[0], *node["shape"])),
    "class_token": _class_token,
    "first_step": lambda node, own: lambda values: values[:, 0],
    "last_step": lambda node, own: lambda values: values[:, -1],
    "leaky_relu": lambda node, own: layers.LeakyReLU(negative_slope=node["slope"]),
    "stochastic_depth": lambda node, own: layers.Dropout(
        node["rate"], (None,) + (1,) * len(node["shape"])
    ),
    "relu6": lambda node, own: layers.Activation("relu6"),
    "hard_swish": lambda node, own: layers.Activation("hard_swish"),
    "hard_sigmoid": lambda node, own: layers.Activation("hard_sigmoid"),
    "elu": lambda node, own: layers.Activation("elu"),
    "softplus": lambda node, own: layers.Activation("softplus"),
    "scale_channels": lambda node, own: lambda x, factors: x * factors[:, None, None],
    "pad": lambda node, own: layers.ZeroPadding2D((node["rows"], node["columns"])),
    "channel_part": lambda node, own: (
        lambda x: x[..., node["start"] : node["start"] + node["size"]]
    ),
    "multiply": lambda node, own: lambda *values: layers.multiply(values),
    "mean_steps": lambda node, own: layers.GlobalAveragePooling1D(),
    "transpose": lambda node, own: layers.Permute((2, 1)),
    "part": lambda node, own: lambda x: x[..., node["start"] : node["start"] + node["size"]],
    "stack": lambda node, own: lambda *values: keras.ops.stack(values, 1),
    "unstack": lambda node, own: layers.Flatten(),
    "reversal": lambda node, own: lambda values: 2 * keras.ops.stop_gradient(values) - values,
    "sampled_code": lambda node, own: _sampled_code,
    "rbm": lambda node, own: _RBM(node, **own),
}
