"""Sets up TensorFlow before a network is built."""

import tensorflow as tf

from .. import rounding
from ..contract import Unsupported


def limit_threads(job):
    """Sets TensorFlow's threads, and returns how many threads an operation then has."""
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    # Products of attention and recurrence are too small for all threads (docs/adapters/tensorflow.md). The first
    # network of a process decides, since TensorFlow accepts no other number later.
    small = {"attention", "rnn", "gru", "lstm"} & {node["op"] for node in job.spec["nodes"]}
    if not tf.config.threading.get_inter_op_parallelism_threads():
        tf.config.threading.set_inter_op_parallelism_threads(job.threads if small else 1)
    return tf.config.threading.get_intra_op_parallelism_threads()


def configure_gpu(precision, asked):
    """Takes memory as it is needed, rounds products as `asked`, and keeps operations on the GPU; returns settings.

    Raises Unsupported where TensorFlow lists no GPU, since it would compute on the CPU without saying so, and
    NotEquivalent where products have another precision.
    """
    settings = prepare_gpu(asked)
    require(precision)
    return settings


def configure_bfloat16():
    """Returns settings of products on CPUs; raises NotEquivalent where these keep other bits."""

    def product(left, right):
        both = tf.cast(left, tf.bfloat16), tf.cast(right, tf.bfloat16)
        return tf.cast(tf.matmul(*both), tf.float32).numpy()

    return rounding.in_bfloat16(product)


def prepare_gpu(asked):
    """Sets up a GPU before there is any operation, and so without a product that shows the precision (`require`)."""
    cards = tf.config.list_physical_devices("GPU")
    if not cards:
        raise Unsupported("TensorFlow {} finds no GPU".format(tf.__version__))
    for card in cards:
        tf.config.experimental.set_memory_growth(card, True)
    tf.config.set_soft_device_placement(False)
    tf.config.experimental.enable_tensor_float_32_execution(asked["tensor_float_32"])
    tf32 = "on" if asked["tensor_float_32"] else "off"
    return {"memory_growth": "on", "soft_placement": "off", "tensor_float_32": tf32}


def require(precision):
    """Raises NotEquivalent where a product on the GPU has another precision."""
    with tf.device("/GPU:0"):
        rounding.require(precision, lambda left, right: tf.matmul(tf.constant(left), right).numpy())
