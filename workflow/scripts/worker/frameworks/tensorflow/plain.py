"""TensorFlow as its own tutorial has it: a model of Keras, its SGD, and `train_on_batch`. No switch is turned."""

import tensorflow as tf

from .. import keras3

MODES = ("plain",)
LAYERS = keras3.LAYERS
LAYOUT = keras3.LAYOUT
DEVICES = ("cpu",)
PRECISIONS = ("float32",)


def build(job):
    job.mode = "tensorflow"
    return keras3.build(job, _limit_threads)


def _limit_threads(job):
    """Sets as many threads as were asked for; TensorFlow chooses how many operations run at a time."""
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    return tf.config.threading.get_intra_op_parallelism_threads()
