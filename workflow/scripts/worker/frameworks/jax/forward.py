"""JAX's forward passes: the functions of the adapter jax, compiled by XLA without a gradient."""

import functools
import os

import jax
import numpy as np
from jax import lax

from shared import evaluation, specification

from .. import jax as training

TASKS = ("forward",)
# The casts to bfloat16 are those of a training step.
PRECISIONS = ("float32", "tf32")


def build(job):
    """Returns the network of the adapter jax, without training."""
    place = training.place_of(job)
    start = {name: job.take(name) for name in job.layout.names}
    return _Predictor(start, place, job)


def _outputs(nodes, parameters, inputs):
    """Returns the output of the last node; nothing is dropped."""
    values = {"input": inputs}
    for node in nodes:
        own = specification.own_of(node, parameters)
        layer = _IN_USE.get(node["op"]) or training.LAYERS[node["op"]]
        values[node["name"]] = layer(node, own, *[values[name] for name in node["inputs"]])
    return values[nodes[-1]["name"]]


def _batch_norm(node, own, value):
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    scale = own["gamma"] * lax.rsqrt(own["variance"] + epsilon)
    return (value - own["mean"]) * scale + own["beta"]


_IN_USE = {"batch_norm": _batch_norm}


class _Predictor(object):
    def __init__(self, start, place, job):
        self._layout, self._place = job.layout, place
        self.parameters = sum(value.size for value in start.values())
        # XLA does not tell the size of its pool; NPROC is where it reads it from.
        self.threads = int(os.environ["NPROC"])
        self.settings = {"layout": "channels last, time first"}
        known = dict(start, **evaluation.of_network(job.spec))
        self._values = {name: jax.device_put(value, place) for name, value in known.items()}
        self._inputs = jax.device_put(job.inputs, place)
        infer = functools.partial(_outputs, job.spec["nodes"])
        # Here and not in the first pass: it takes seconds.
        self._pass = jax.jit(infer).lower(self._values, self._inputs).compile()

    def infer(self, passes):
        for _ in range(passes):
            found = self._pass(self._values, self._inputs)
        self._found = jax.block_until_ready(found)

    def give(self, inputs):
        self._inputs = jax.device_put(self._layout.inputs(inputs), self._place)

    def outputs(self):
        return np.asarray(self._found)
