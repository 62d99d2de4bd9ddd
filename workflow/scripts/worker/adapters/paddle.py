"""PaddlePaddle 2 and later: `paddle.nn` layers run as they are called (dynamic graph), with its own optimisers.

What was chosen here: docs/adapters/paddle.md.
"""

import os

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from .. import specification

MODES = ("eager",)
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
TASKS = ("step", "training")
# As its LSTM works inside.
LAYOUT = {"sequences": "steps first", "lstm": "units first"}
KERNELS = "mkl"
REASONS = {"gpu": "this build of PaddlePaddle is for CPUs only"}

# Where a parameter of the specification lives in the layer.
_HOMES = {
    "dense": {"weight": "weight", "bias": "bias"},
    "conv": {"weight": "weight", "bias": "bias"},
    "batch_norm": {"gamma": "weight", "beta": "bias"},
    "embedding": {"weight": "weight"},
    "lstm": {"input": "weight_ih_l0", "recurrent": "weight_hh_l0", "bias": "bias_ih_l0"},
}


def versions():
    """Versions of Paddle and of its math libraries."""
    return {"framework_version": paddle.__version__}


def build(job):
    """A trainer of the specification, with the batch and the start values in memory."""
    paddle.set_device("cpu")
    paddle.seed(job.seed)
    return _Trainer(_Network(job), job)


class _Network(nn.Layer):
    """The nodes of a specification as layers, called in their order."""

    def __init__(self, job):
        super().__init__()
        self.plan, self.homes = [], {}
        # Their own start values would be random; a hundred million of those take seconds.
        nn.initializer.set_global_initializer(
            nn.initializer.Constant(0.0), nn.initializer.Constant(0.0)
        )
        for node in job.spec["nodes"]:
            layer = LAYERS[node["op"]](node)
            if isinstance(layer, nn.Layer):
                self.add_sublayer(node["name"], layer)
            self.plan.append((node["name"], layer, node["inputs"]))
            for role, name in sorted(job.own(node).items()):
                self.homes[name] = getattr(layer, _HOMES[node["op"]][role])
                self.homes[name].set_value(np.ascontiguousarray(job.take(name)))

    def forward(self, batch):
        values = {"input": batch}
        for name, layer, sources in self.plan:
            values[name] = layer(*[values[source] for source in sources])
        return values[name]


class _Trainer(object):
    def __init__(self, network, job):
        self._network, self._layout, self.settings = network, job.layout, {}
        self._inputs, self._labels = paddle.to_tensor(job.inputs), _answers(job.labels)
        # Paddle does not tell; this is where it reads it from.
        self.threads = int(os.environ["OMP_NUM_THREADS"])
        trained = list(network.homes.values())
        self._optimiser = _optimiser(job.spec["optimiser"], trained)
        self.parameters = sum(value.size for value in trained)
        # Statistics of batch normalisation are parameters too there, but have no gradient.
        learnt = [value for value in network.parameters() if not value.stop_gradient]
        self.frozen_parameters = sum(value.size for value in learnt) - self.parameters

    def run(self, steps):
        for _ in range(steps):
            loss = self._step(self._inputs, self._labels)
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._optimiser.set_lr(rate)
            inputs, labels = self._layout.inputs(inputs), self._layout.labels(labels)
            loss = self._step(paddle.to_tensor(inputs), _answers(labels))
            total, steps = total + float(loss), steps + 1
        return total / steps

    def scores(self, inputs):
        self._network.eval()
        with paddle.no_grad():
            found = self._network(paddle.to_tensor(self._layout.inputs(inputs))).numpy()
        self._network.train()
        return found

    def _step(self, inputs, labels):
        """Takes a step, and returns its loss."""
        logits = self._network(inputs)
        loss = functional.cross_entropy(logits.reshape([-1, logits.shape[-1]]), labels)
        loss.backward()
        self._optimiser.step()
        self._network.clear_gradients(set_to_zero=False)
        return loss

    def weights(self, names=None):
        homes = self._network.homes
        return {
            name: np.array(self._layout.leave(name, homes[name].numpy()))
            for name in (homes if names is None else names)
        }


def _answers(labels):
    return paddle.to_tensor(labels.flatten().astype(np.int64))


def _optimiser(wanted, trained):
    """Paddle's own optimiser."""
    rate, rho, epsilon = (wanted.get(name) for name in ("learning_rate", "rho", "epsilon"))
    if wanted["name"] == "adadelta":
        return paddle.optimizer.Adadelta(rate, epsilon, rho, parameters=trained)
    if wanted["name"] == "rmsprop":
        return _RMSProp(rate, rho, epsilon, trained)
    return paddle.optimizer.SGD(rate, parameters=trained)


class _RMSProp(object):
    """The epsilon of Paddle's own stands inside of the root."""

    def __init__(self, rate, rho, epsilon, trained):
        self._rho, self._epsilon, self._trained = rho, epsilon, trained
        self._averages = [paddle.zeros_like(value) for value in trained]
        self.set_lr(rate)

    def set_lr(self, rate):
        self._rate = rate

    @paddle.no_grad()
    def step(self):
        for value, average in zip(self._trained, self._averages):
            average.scale_(self._rho).add_((1 - self._rho) * value.grad.square())
            value.subtract_(value.grad * self._rate / (average.sqrt() + self._epsilon))


class _LSTM(nn.LSTM):
    """An LSTM layer over (steps, batch, features).

    Its redundant second bias stays at zero, since no optimiser has it; Paddle's kernel must have its gradient.
    """

    def __init__(self, features, units):
        super().__init__(features, units, time_major=True)

    def forward(self, values):
        return super().forward(values)[0]


LAYERS = {
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
    "dropout": lambda node: nn.Dropout(node["rate"]),
    "sigmoid": lambda node: nn.Sigmoid(),
    "add": lambda node: paddle.add,
    "embedding": lambda node: nn.Embedding(node["vocabulary"], node["units"]),
    "lstm": lambda node: _LSTM(node["in_shape"][-1], node["units"]),
}
