"""JAX's parts of planted defects (see `planted`)."""

import sys
from contextlib import contextmanager

import jax
from jax import lax
from jax import numpy as jnp

HERE = sys.modules[__name__]


def cut(values, bits):
    return lax.reduce_precision(values, 8, bits - 1)


def stopped(values):
    return lax.stop_gradient(values)


def front(values):
    return jnp.concatenate([values[:-1], lax.stop_gradient(values[-1:])])


def in_two(adapter, right):
    def lstm(node, own, value):
        def step(state, product):
            output, cell = state
            i, f, g, o = jnp.split(product + jnp.matmul(output, own["recurrent"]), 4, 1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            output = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (output, cell), output

        products = jnp.matmul(value, own["input"]) + own["bias"]
        start, half = jnp.zeros((value.shape[1], node["units"])), len(value) // 2
        state, first = lax.scan(step, (start, start), products[:half])
        return jnp.concatenate([first, lax.scan(step, stopped(state), products[half:])[1]])

    return lstm


@contextmanager
def changing(adapter, changes):
    """Functions of these names take changed parameters and inputs, and give a changed output."""
    right = dict(adapter.LAYERS)
    begin = adapter.Trainer.__init__
    kept = {}

    def begun(self, job, parameters, *arguments):
        for name, change in changes.items():
            if change.keeps:
                # The step gives its arguments away.
                kept.update(
                    {key: jnp.array(parameters[key]) for key in job.own({"name": name}).values()}
                )
        begin(self, job, parameters, *arguments)

    def wrapped(function):
        def called(node, own, value, *more):
            if node["name"] not in changes:
                return function(node, own, value, *more)
            change, prefix = changes[node["name"]], node["name"] + "/"
            changed = {
                role: change.parameter(HERE, role, array, lambda role=role: kept[prefix + role])
                for role, array in own.items()
            }
            return change.found(HERE, function(node, changed, change.given(HERE, value), *more))

        return called

    adapter.LAYERS.update({op: wrapped(function) for op, function in right.items()})
    adapter.Trainer.__init__ = begun
    try:
        yield
    finally:
        adapter.LAYERS.update(right)
        adapter.Trainer.__init__ = begin
