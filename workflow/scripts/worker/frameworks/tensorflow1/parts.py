"""Matrix products and convolutions of TensorFlow 0.12 to 1.15, each run by a session (see `worker.parts`)."""

import tensorflow as tf
from tensorflow.python.training import training_ops

from shared.operations import repeated

from ...contract import Unsupported
from . import LAYERS

TASKS = ("products", "convolutions")

_CONFIG = []


def start(job):
    """Sets the threads of the sessions and returns settings."""
    _CONFIG[:] = [
        tf.ConfigProto(intra_op_parallelism_threads=job["threads"], inter_op_parallelism_threads=1)
    ]
    return {"threads": job["threads"], "settings": {"called": "one operator in a session"}}


def build(part):
    """Returns an operation in its own graph and session."""
    with tf.Graph().as_default() as graph:
        session = tf.Session(graph=graph, config=_CONFIG[0])
        starts = {}

        def variable(values):
            # By way of a placeholder: a graph may not hold 2 GiB of constants.
            start = tf.placeholder(values.dtype, values.shape)
            starts[start] = values
            return tf.Variable(start)

        result, step = (_convolution if part.kind == "convolution" else _product)(part, variable)
        session.run(tf.global_variables_initializer(), starts)

    # Nothing of an operation is fetched: a session returns when it is done.
    return repeated(lambda: session.run(step), lambda: session.run(result))


def _product(part, variable):
    left, right = variable(part.left), variable(part.right)
    product = tf.matmul(left, right, *part.turned)
    if not part.calls:
        return product, product.op
    if part.calls == 1:
        raise Unsupported("TensorFlow has no product that adds to what is there")
    weights = variable(part.weights)
    update = training_ops.apply_gradient_descent(weights, tf.constant(part.rate), product)
    return weights, update.op


def _convolution(part, variable):
    if part.way != "own choice":
        raise Unsupported(
            "TensorFlow before 2.0 convolves by Eigen alone, which lets nobody choose"
        )
    images = variable(part.inputs.transpose(0, 2, 3, 1))
    weights = variable(part.weights.transpose(2, 3, 1, 0))
    found = LAYERS["conv"](part.node, {"weight": weights}, images)
    return tf.transpose(found, [0, 3, 1, 2]), found.op
