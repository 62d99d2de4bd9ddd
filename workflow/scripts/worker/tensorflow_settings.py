"""How TensorFlow is set before a network is built on a GPU.

Plain Python that 3.6 can import: TensorFlow.
"""

import tensorflow as tf

from . import rounding
from .contract import Unsupported


def configure_gpu():
    """Takes memory as it is needed, keeps products in float32, and computes nothing on the CPU unasked.

    Raises Unsupported where TensorFlow lists no GPU: it would compute on the CPU without a word.
    """
    cards = tf.config.list_physical_devices("GPU")
    if not cards:
        raise Unsupported("TensorFlow {} finds no GPU".format(tf.__version__))
    for card in cards:
        tf.config.experimental.set_memory_growth(card, True)
    tf.config.set_soft_device_placement(False)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    with tf.device("/GPU:0"):
        rounding.require_float32(lambda left, right: tf.matmul(tf.constant(left), right).numpy())
    return {"memory_growth": "on", "soft_placement": "off", "tensor_float_32": "off"}
