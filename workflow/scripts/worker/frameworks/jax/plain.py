"""JAX as its own tutorial has it: functions of arrays, and `jax.jit` around the step. No switch is turned."""

import os

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from shared import specification

MODES = ("plain",)
OPTIONS = {}
OPTIMISERS = ("sgd",)
LOSSES = ("softmax_cross_entropy",)
DEVICES = ("cpu",)
PRECISIONS = ("float32",)


def build(job):
    return _Trainer(job)


class _Trainer(object):
    settings = {"plain": "jax.jit, without donation"}

    def __init__(self, job):
        nodes, rate, self._layout = job.spec["nodes"], job.learning_rate, job.layout
        self._parameters = {name: jnp.array(job.take(name)) for name in job.layout.names}
        self._fed = jnp.array(job.inputs), jnp.array(job.labels.reshape(-1))

        @jax.jit
        def step(parameters, inputs, labels):
            loss, gradients = jax.value_and_grad(_loss)(parameters, nodes, inputs, labels)
            updated = {name: parameters[name] - rate * gradients[name] for name in parameters}
            return updated, loss

        self._step = step
        self.parameters = sum(value.size for value in self._parameters.values())
        # XLA does not tell the size of its pool; NPROC is where it reads it from.
        self.threads = int(os.environ["NPROC"])

    def run(self, steps):
        for _ in range(steps):
            self._parameters, loss = self._step(self._parameters, *self._fed)
        jax.block_until_ready((self._parameters, loss))
        return float(loss)

    def weights(self, names=None):
        names = self._parameters if names is None else names
        values = {name: np.array(self._parameters[name]) for name in names}
        return {name: self._layout.leave(name, value) for name, value in values.items()}


def _loss(parameters, nodes, inputs, labels):
    values = {"input": inputs}
    for node in nodes:
        own = specification.own_of(node, parameters)
        given = [values[name] for name in node["inputs"]]
        values[node["name"]] = LAYERS[node["op"]](node, own, *given)
    outputs = values[node["name"]].reshape(-1, node["shape"][-1])
    chances = jax.nn.log_softmax(outputs)
    return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], 1))


def _dense(node, own, value):
    value = jnp.dot(value, own["weight"])
    return value + own["bias"] if node["bias"] else value


def _conv(node, own, value):
    strides, around = (node["stride"],) * 2, [(node["padding"],) * 2] * 2
    orders = ("NHWC", "HWIO", "NHWC")
    value = lax.conv_general_dilated(value, own["weight"], strides, around, None, None, orders)
    return value + own["bias"] if node["bias"] else value


def _max_pool(node, own, value):
    window, strides = ((1, node[name], node[name], 1) for name in ("kernel", "stride"))
    around = [(0, 0), (node["padding"],) * 2, (node["padding"],) * 2, (0, 0)]
    return lax.reduce_window(value, -jnp.inf, lax.max, window, strides, around)


def _flatten(node, own, value):
    value = value.transpose(0, 3, 1, 2) if node["turned"] else value
    return value.reshape(len(value), -1)


def _lstm(node, own, value):
    def step(state, given):
        output, cell = state
        sums = jnp.dot(given, own["input"]) + jnp.dot(output, own["recurrent"]) + own["bias"]
        i, f, g, o = jnp.split(sums, 4, 1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        output = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (output, cell), output

    start = jnp.zeros((value.shape[1], node["units"]))
    return lax.scan(step, (start, start), value)[1]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: jnp.mean(value, (1, 2)),
    "flatten": _flatten,
    "relu": lambda node, own, value: jax.nn.relu(value),
    "sigmoid": lambda node, own, value: jax.nn.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: own["weight"][value],
    "lstm": _lstm,
}
LAYOUT = {"images": "channels last", "sequences": "steps first"}
