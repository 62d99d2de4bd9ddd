"""PaddlePaddle 2 and later: `paddle.nn` layers run as they are called (dynamic graph), and Paddle's own SGD.

What was chosen here: docs/adapters/paddle.md.
"""

import os

from .. import mkl

KERNELS = mkl.find_kernels()

import numpy as np  # noqa: E402
import paddle  # noqa: E402
from paddle import nn  # noqa: E402
from paddle.nn import functional  # noqa: E402

from .. import specification  # noqa: E402
from . import Unsupported  # noqa: E402

MODES = ("eager",)

# Where a parameter of the specification lives in the layer, and whether Paddle keeps it transposed.
_HOMES = {
    "dense": {"weight": ("weight", False), "bias": ("bias", False)},
    "conv": {"weight": ("weight", False), "bias": ("bias", False)},
    "batch_norm": {"gamma": ("weight", False), "beta": ("bias", False)},
    "embedding": {"weight": ("weight", False)},
    "lstm": {
        "input": ("weight_ih_l0", True),
        "recurrent": ("weight_hh_l0", True),
        "bias": ("bias_ih_l0", False),
    },
}


def versions():
    """Versions of Paddle and of its math libraries."""
    return {"framework_version": paddle.__version__}


def build(spec, weights, inputs, labels, mode, threads, device):
    """A trainer of the specification, with the batch and the start values in memory."""
    if device != "cpu":
        raise Unsupported("this build of PaddlePaddle is for CPUs only")
    paddle.set_device("cpu")
    network = _Network(spec["nodes"])
    network.load(weights)
    if spec["input"]["kind"] in ("tokens", "one_hot"):
        # As its LSTM works inside: the steps first.
        inputs, labels = inputs.swapaxes(0, 1), labels.T
    inputs = paddle.to_tensor(np.ascontiguousarray(inputs))
    labels = paddle.to_tensor(labels.flatten().astype(np.int64))
    return _Trainer(network, inputs, labels, spec["optimiser"]["learning_rate"])


class _Network(nn.Layer):
    """The nodes of a specification as layers, called in their order."""

    def __init__(self, nodes):
        super().__init__()
        self.plan, self.homes = [], []
        # Their own start values would be random; a hundred million of those take seconds.
        nn.initializer.set_global_initializer(
            nn.initializer.Constant(0.0), nn.initializer.Constant(0.0)
        )
        for node in nodes:
            name, op = node["name"], node["op"]
            if op not in _LAYERS:
                raise Unsupported("the Paddle adapter has no layer '{}'".format(op))
            layer = _LAYERS[op](node)
            if isinstance(layer, nn.Layer):
                self.add_sublayer(name, layer)
            self.plan.append((name, layer, node["inputs"]))
            for role, (attribute, transposed) in sorted(_HOMES.get(op, {}).items()):
                if role != "bias" or node.get("bias", True):
                    self.homes.append(
                        ("{}/{}".format(name, role), getattr(layer, attribute), transposed)
                    )

    def forward(self, batch):
        values = {"input": batch}
        for name, layer, sources in self.plan:
            values[name] = layer(*[values[source] for source in sources])
        return values[name]

    def load(self, weights):
        for name, parameter, transposed in self.homes:
            value = weights.pop(name)
            parameter.set_value(np.ascontiguousarray(value.T) if transposed else value)


class _Trainer(object):
    def __init__(self, network, inputs, labels, learning_rate):
        self._network, self._inputs, self._labels = network, inputs, labels
        # Paddle does not tell; this is where it reads it from.
        self.threads = int(os.environ["OMP_NUM_THREADS"])
        self.settings = {"kernels": KERNELS}
        trained = [parameter for _, parameter, _ in network.homes]
        self._optimiser = paddle.optimizer.SGD(learning_rate, parameters=trained)
        self.parameters = sum(value.size for value in trained)
        # Statistics of batch normalisation are parameters too there, but have no gradient.
        learnt = [value for value in network.parameters() if not value.stop_gradient]
        self.frozen_parameters = sum(value.size for value in learnt) - self.parameters

    def run(self, steps):
        for _ in range(steps):
            logits = self._network(self._inputs)
            loss = functional.cross_entropy(logits.reshape([-1, logits.shape[-1]]), self._labels)
            loss.backward()
            self._optimiser.step()
            self._network.clear_gradients(set_to_zero=False)
        return float(loss)

    def weights(self, names=None):
        found = {}
        for name, parameter, transposed in self._network.homes:
            if names is None or name in names:
                value = parameter.numpy()
                found[name] = np.array(value.T if transposed else value, order="C")
        return found


class _LSTM(nn.LSTM):
    """An LSTM layer over (steps, batch, features).

    Its redundant second bias stays at zero, since no optimiser has it; Paddle's kernel must have its gradient.
    """

    def __init__(self, features, units):
        super().__init__(features, units, time_major=True)

    def forward(self, values):
        return super().forward(values)[0]


_LAYERS = {
    "dense": lambda node: nn.Linear(
        node["in_shape"][-1], node["units"], bias_attr=None if node["bias"] else False
    ),
    "conv": lambda node: nn.Conv2D(
        *[node["in_shape"][0], node["channels"], node["kernel"], node["stride"], node["padding"]],
        bias_attr=None if node["bias"] else False,
    ),
    "max_pool": lambda node: nn.MaxPool2D(node["kernel"], node["stride"], node["padding"]),
    "global_average_pool": lambda node: lambda values: values.mean([2, 3]),
    "flatten": lambda node: nn.Flatten(),
    "batch_norm": lambda node: nn.BatchNorm2D(
        node["in_shape"][0], epsilon=specification.BATCH_NORM_EPSILON
    ),
    "relu": lambda node: nn.ReLU(),
    "sigmoid": lambda node: nn.Sigmoid(),
    "add": lambda node: paddle.add,
    "embedding": lambda node: nn.Embedding(node["vocabulary"], node["units"]),
    "lstm": lambda node: _LSTM(node["in_shape"][-1], node["units"]),
}
