"""Layers of Keras 2.0 of sequences, attention and generative networks, and what they are written with.

Each is a list of Keras's own layers, or one that is written in functions of Keras's backend and takes a node, its
parameters and its inputs. The mini-batch is the first axis of all. What was chosen here: docs/adapters/keras2.md.

Plain Python that 3.6 can import: standard library, numpy and Keras.
"""

import numpy as np
from keras import activations, backend, layers

from ...contract import Unsupported


class Written(layers.Layer):
    """A layer of a node in functions of Keras's backend."""

    def __init__(self, node, form):
        super(Written, self).__init__(name=node["name"])
        self._node, self._form, self._own = node, form, {}

    def build(self, input_shape):
        for role, shape in self._node["own"]:
            self._own[role] = self.add_weight(role, tuple(shape), initializer="zeros")
        super(Written, self).build(input_shape)

    def call(self, inputs):
        values = inputs if isinstance(inputs, list) else [inputs]
        return self._form(self._node, self._own, *values)

    def compute_output_shape(self, input_shape):
        if self._node["op"] == "table":
            return tuple(self._node["shape"])
        batch = (input_shape[0] if isinstance(input_shape, list) else input_shape)[0]
        return (batch,) + placed(self._node["shape"])


def written(form):
    """What makes the layer of a node from functions of the backend."""
    return lambda node, mode: [Written(node, form)]


def described(spec):
    """The nodes of a specification with what its layers have to know besides.

    `own`, the roles and shapes of a node's parameters; `positive`, whether its input is never below zero; `repeating`,
    whether its input has numbers more than once beside one another, of a pool whose windows overlap.
    """
    own, positive, repeating, nodes = {}, set(), set(), []
    for parameter in spec["parameters"]:
        name, role = parameter["name"].split("/")
        own.setdefault(name, []).append((role, parameter["shape"]))
    for node in spec["nodes"]:
        name, sources, op = node["name"], node["inputs"], node["op"]
        marks = {
            "own": own.get(name, []),
            "positive": positive.issuperset(sources),
            "repeating": not repeating.isdisjoint(sources),
        }
        nodes.append(dict(node, **marks))
        passes = op in ("max_pool", "avg_pool", "concat", "local_response_norm", "dropout")
        if op in ("relu", "sigmoid") or (passes and marks["positive"]):
            positive.add(name)
        overlaps = op == "max_pool" and node["kernel"] > node["stride"]
        carries = op in ("max_pool", "concat", "relu", "dropout") and marks["repeating"]
        if overlaps or carries:
            repeating.add(name)
    return nodes


def channels_first():
    """Whether the channels of images are their first axis."""
    return backend.image_data_format() == "channels_first"


def placed(shape):
    """The shape of a sample as Keras has it."""
    shape = tuple(shape)
    return shape if len(shape) < 3 or channels_first() else shape[1:] + shape[:1]


def features(node):
    """The axis of features: of images, the channels."""
    return 1 if len(node["in_shape"]) == 3 and channels_first() else -1


def wide(node, vector):
    """A vector of features, to be combined with what the layer is given."""
    if features(node) == -1:
        return vector
    spread = (node["shape"][0], 1, 1)
    return backend.reshape(vector, spread if backend.backend() == "cntk" else (1,) + spread)


def shaped(value, *extents):
    """Each sample in another shape. To CNTK, -1 would be the axis of samples joined with another one."""
    first = None if backend.backend() == "cntk" else -1
    return backend.reshape(value, (first,) + extents)


def cut(value, axis, begin, end):
    """Some of the places of an axis."""
    return value[(slice(None),) * axis + (slice(begin, end),)]


def normal(value, axis, epsilon):
    """Of the mean 0 and the variance 1."""
    centred = value - backend.mean(value, axis=axis, keepdims=True)
    variance = backend.mean(backend.square(centred), axis=axis, keepdims=True)
    return centred / backend.sqrt(variance + epsilon)


def dense(node, own, value):
    """Of each step."""
    value = backend.dot(value, own["weight"])
    return value + own["bias"] if node["bias"] else value


def layer_norm(node, own, value):
    """By the mean and the variance of the features."""
    value = normal(value, features(node), node["epsilon"]) * wide(node, own["weight"])
    return value + wide(node, own["bias"]) if node["bias"] else value


def rms_norm(node, own, value):
    """By the root of the mean of squares."""
    squares = backend.mean(backend.square(value), axis=-1, keepdims=True)
    return value / backend.sqrt(squares + node["epsilon"]) * own["weight"]


def layer_scale(node, own, value):
    """Each feature times its own weight."""
    return value * wide(node, own["weight"])


def gelu(node, mode):
    """By the error function, which Keras leaves to the backend."""
    if mode == "cntk":
        raise Unsupported("CNTK has no error function, of which the exact GELU is made")
    if mode == "tensorflow":
        from tensorflow import erf
    else:
        from theano.tensor import erf
    form = lambda node, own, value: 0.5 * value * (1.0 + erf(value * 0.5**0.5))  # noqa: E731
    return [Written(node, form)]


def gelu_tanh(node, own, value):
    """By the hyperbolic tangent."""
    bent = backend.tanh(0.7978845608028654 * (value + 0.044715 * value * value * value))
    return 0.5 * value * (1.0 + bent)


RECURRENT = {
    "kernel_initializer": "zeros",
    "recurrent_initializer": "zeros",
    "return_sequences": True,
}


class _AtOnce(object):
    """Products of all steps with the inputs as one; Keras joins steps with samples, which CNTK does not take."""

    def preprocess_input(self, inputs, training=None):
        return backend.dot(inputs, self.kernel) + self.bias


class LSTM(_AtOnce, layers.LSTM):
    """Keras's own."""


class _RNN(_AtOnce, layers.SimpleRNN):
    """Keras's own."""


class _GRU(_AtOnce, layers.GRU):
    """Its reset gate multiplies the recurrent product; that of Keras multiplies what goes into it."""

    def step(self, inputs, states):
        output, units = states[0], self.units
        inner = backend.dot(output, self.recurrent_kernel)
        gates = backend.sigmoid(inputs[:, : 2 * units] + inner[:, : 2 * units])
        reset, update = gates[:, :units], gates[:, units:]
        new = backend.tanh(inputs[:, 2 * units :] + reset * inner[:, 2 * units :])
        output = new + update * (output - new)
        return output, [output]


def rnn(node, mode):
    """Keras's own."""
    return [_RNN(node["units"], **RECURRENT)]


def gru(node, mode):
    """Keras's own, but for the place of a gate."""
    return [_GRU(node["units"], **RECURRENT)]


def positions(node, own, value):
    """A row for each step, or for each of several."""
    rows, steps = own["weight"], node["shape"][0]
    rows = backend.repeat_elements(rows, node["each"], 0) if node["each"] > 1 else rows
    return value + (rows if node["rows"] * node["each"] == steps else rows[:steps])


def class_token(node, own, value):
    """The same for each sample."""
    return backend.concatenate([0.0 * value[:, :1] + own["weight"], value], axis=1)


def unembedding(node, own, value, table):
    """By the weight that words are looked up in."""
    return backend.dot(value, backend.transpose(table))


def attention(node, own, value):
    """From products and a softmax."""
    (steps, wide), heads = node["in_shape"], node["heads"]
    size = wide // (3 * heads)
    unseen = np.triu(np.full((steps, steps), -1e30, np.float32), 1)
    mask = backend.constant(unseen, shape=unseen.shape) if node.get("causal") else 0.0
    if backend.backend() == "cntk":
        # It multiplies but matrices of each sample: one head after the other.
        cuts = [cut(value, 2, at * size, (at + 1) * size) for at in range(3 * heads)]
        found = [
            _attended(cuts[head], cuts[heads + head], cuts[2 * heads + head], mask)
            for head in range(heads)
        ]
        return backend.concatenate(found, axis=2) if heads > 1 else found[0]
    parts = backend.reshape(value, (-1, steps, 3, heads, size))
    parts = backend.permute_dimensions(parts, (2, 0, 3, 1, 4))
    parts = [backend.reshape(parts[at], (-1, steps, size)) for at in range(3)]
    found = backend.reshape(_attended(*parts, mask=mask), (-1, heads, steps, size))
    found = backend.permute_dimensions(found, (0, 2, 1, 3))
    return backend.reshape(found, (-1, steps, heads * size))


def _attended(queries, keys, values, mask):
    """Of (samples, steps, units) each."""
    scale = backend.int_shape(queries)[-1] ** -0.5
    scores = backend.batch_dot(queries * scale, keys, axes=(2, 2)) + mask
    return backend.batch_dot(activations.softmax(scores), values, axes=(2, 1))


def patches(node, mode):
    """Each pixel as a step."""
    steps, channels = node["shape"]
    if channels_first():
        return [layers.Reshape((channels, steps)), layers.Permute((2, 1))]
    return [layers.Reshape((steps, channels))]


def part(node, own, value):
    """Some of the features."""
    return cut(value, len(node["in_shape"]), node["start"], node["start"] + node["size"])


def stack(node, own, *values):
    """Two steps."""
    return backend.concatenate([shaped(value, 1, node["shape"][1]) for value in values], axis=1)


def reversal(node, own, value):
    """Its gradient is turned."""
    return 2.0 * backend.stop_gradient(value) - value


def sampled_code(node, own, value, noise):
    """Means and logarithms of variances come behind one another."""
    code = node["shape"][-1]
    return value[:, :code] + backend.exp(0.5 * value[:, code:]) * noise


def rbm(node, own, visible, noise):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    visible = backend.stop_gradient(visible)
    scores = backend.dot(visible, own["weight"]) + own["hidden"]
    chances = backend.stop_gradient(backend.sigmoid(scores))
    drawn = backend.cast(backend.greater(2.0 * chances - 1.0, noise), "float32")
    end = backend.dot(drawn, backend.transpose(own["weight"])) + own["visible"]
    end = backend.stop_gradient(backend.sigmoid(end))
    again = backend.dot(end, own["weight"]) + own["hidden"]
    energy = backend.softplus(again) - backend.softplus(scores)
    energy = backend.sum(energy, axis=1, keepdims=True)
    energy = energy + backend.sum((end - visible) * own["visible"], axis=1, keepdims=True)
    return backend.concatenate([energy, chances], axis=1)
