"""TensorFlow's parts of planted defects (see `planted`)."""

import sys
from contextlib import contextmanager

import tensorflow as tf

HERE = sys.modules[__name__]


def cut(values, bits):
    """Rounded to nearest by a whole number that has the bits of the float."""
    drop = 24 - bits
    whole = tf.bitcast(tf.convert_to_tensor(values), tf.int32) + (1 << (drop - 1))
    return tf.bitcast(tf.bitwise.bitwise_and(whole, -(1 << drop)), tf.float32)


def stopped(values):
    return tf.stop_gradient(values)


def front(values):
    return tf.concat([values[:-1], tf.stop_gradient(values[-1:])], 0)


def in_two(adapter, right):
    def lstm(node, own, value):
        output = cell = tf.zeros([value.shape[1], node["units"]])
        outputs = []
        for number, given in enumerate(tf.unstack(value)):
            if number == value.shape[0] // 2:
                output, cell = stopped(output), stopped(cell)
            gates = (
                tf.matmul(given, own["input"]) + tf.matmul(output, own["recurrent"]) + own["bias"]
            )
            i, f, g, o = tf.split(gates, 4, 1)
            cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
            output = tf.sigmoid(o) * tf.tanh(cell)
            outputs.append(output)
        return tf.stack(outputs)

    return lstm


@contextmanager
def changing(adapter, changes):
    """Operations of these names take changed parameters and inputs, and give a changed output."""
    right = dict(adapter.LAYERS)
    kept = {}

    def wrapped(operation):
        def called(node, own, value, *more):
            if node["name"] not in changes:
                return operation(node, own, value, *more)
            change = changes[node["name"]]
            if change.keeps and not kept:
                with tf.init_scope():
                    kept.update({role: variable.numpy() for role, variable in own.items()})
            changed = {
                role: change.parameter(
                    HERE, role, variable, lambda role=role: tf.constant(kept[role])
                )
                for role, variable in own.items()
            }
            return change.found(HERE, operation(node, changed, change.given(HERE, value), *more))

        return called

    adapter.LAYERS.update({op: wrapped(operation) for op, operation in right.items()})
    try:
        yield
    finally:
        adapter.LAYERS.update(right)
