"""JAX: plain functions of arrays and automatic differentiation; XLA compiles the whole step and gets the parameters.

What was chosen here, and by which measured ratios: docs/adapters/jax.md.
"""

import functools
import os

import jax
import jaxlib
import numpy as np
from jax import lax
from jax import numpy as jnp

from .. import specification
from ..contract import Unsupported

MODES = ("compiled",)
DEVICES = ("cpu", "gpu")
LAYOUT = {"images": "channels last", "sequences": "steps first"}


def versions():
    """Versions of JAX and of the library with its compiler."""
    return {"framework_version": jax.__version__, "build": "jaxlib {}".format(jaxlib.__version__)}


def build(job):
    """A trainer of the specification, with the batch and the start values in the memory of the device."""
    try:
        place = jax.devices(job.device)[0]
    except RuntimeError:
        raise Unsupported(
            "JAX {} finds no device of the kind '{}'".format(jax.__version__, job.device)
        )
    # device_put may borrow numpy's memory, which must not be given away with the parameters.
    parameters = {
        name: jax.device_put(jnp.array(job.take(name), device=place), place)
        for name in job.layout.names
    }
    batch = jax.device_put(job.inputs, place)
    answers = jax.device_put(job.labels.reshape(-1), place)
    return _Trainer(job, parameters, batch, answers)


class _Trainer(object):
    def __init__(self, job, parameters, inputs, labels):
        self._layout, self._values = job.layout, parameters
        self._inputs, self._labels = inputs, labels
        step_size, nodes = job.learning_rate, job.spec["nodes"]

        def train(values, batch, answers):
            loss, gradients = jax.value_and_grad(functools.partial(_loss, nodes))(
                values, batch, answers
            )
            return {name: values[name] - step_size * gradients[name] for name in values}, loss

        # Here and not in the first step: it takes seconds.
        self._step = jax.jit(train, donate_argnums=0).lower(parameters, inputs, labels).compile()
        self.parameters = sum(value.size for value in parameters.values())
        # XLA does not tell the size of its pool; NPROC is where it reads it from.
        self.threads = int(os.environ["NPROC"])
        self.settings = {"layout": "channels last, time first"}

    def run(self, steps):
        for _ in range(steps):
            self._values, loss = self._step(self._values, self._inputs, self._labels)
        jax.block_until_ready((self._values, loss))
        return float(loss)

    def weights(self, names=None):
        wanted = self._values if names is None else names
        # A copy: the next step writes over what is looked at.
        return {
            name: np.array(self._layout.leave(name, np.asarray(self._values[name])))
            for name in wanted
        }


def _loss(nodes, parameters, inputs, labels):
    values = {"input": inputs}
    for node in nodes:
        own = {
            name.split("/")[1]: value
            for name, value in parameters.items()
            if name.split("/")[0] == node["name"]
        }
        values[node["name"]] = LAYERS[node["op"]](
            node, own, *[values[name] for name in node["inputs"]]
        )
    logits = values[nodes[-1]["name"]]
    logits = logits.reshape(-1, logits.shape[-1])
    chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, 1) - chosen)


def _dense(node, own, value):
    value = jnp.matmul(value, own["weight"])
    return value + own["bias"] if node["bias"] else value


def _conv(node, own, value):
    strides, around = (node["stride"],) * 2, [(node["padding"],) * 2] * 2
    if node["kernel"] == 1 and not node["padding"]:
        # A plain product, which XLA does not make of it by itself.
        value = jnp.matmul(value[:, :: strides[0], :: strides[1]], own["weight"][0, 0])
    else:
        orders = ("NHWC", "HWIO", "NHWC")
        value = lax.conv_general_dilated(
            value, own["weight"], strides, around, dimension_numbers=orders
        )
    return value + own["bias"] if node["bias"] else value


def _max_pool(node, own, value):
    """The greatest of shifted views: XLA's own way back through a window takes longer."""
    around, stride = (node["padding"],) * 2, node["stride"]
    value = jnp.pad(value, [(0, 0), around, around, (0, 0)], constant_values=-jnp.inf)
    rows, columns = (
        [slice(start, start + stride * (extent - 1) + 1, stride) for start in range(node["kernel"])]
        for extent in node["shape"][1:]
    )
    return functools.reduce(
        jnp.maximum, [value[:, row, column] for row in rows for column in columns]
    )


def _batch_norm(node, own, value):
    axes = (0, 1, 2)
    scale = own["gamma"] * lax.rsqrt(jnp.var(value, axes) + specification.BATCH_NORM_EPSILON)
    return (value - jnp.mean(value, axes)) * scale + own["beta"]


def _lstm(node, own, value):
    def step(state, product):
        output, cell = state
        i, f, g, o = jnp.split(product + jnp.matmul(output, own["recurrent"]), 4, 1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        output = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (output, cell), output

    # The product with the inputs needs no loop: one large product in place of one for each step.
    products = jnp.matmul(value, own["input"]) + own["bias"]
    start = jnp.zeros((value.shape[1], node["units"]))
    return lax.scan(step, (start, start), products)[1]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: jnp.mean(value, (1, 2)),
    "flatten": lambda node, own, value: value.reshape(len(value), -1),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, value: jax.nn.relu(value),
    "sigmoid": lambda node, own, value: jax.nn.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: own["weight"][value],
    "lstm": _lstm,
}
