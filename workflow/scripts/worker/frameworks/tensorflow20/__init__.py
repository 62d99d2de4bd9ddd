"""TensorFlow 2.0 to 2.4: the adapter of later ones, without what these do not have: XLA by its present name."""

import numpy as np
import tensorflow as tf

from .. import tensorflow

MODES = ("graph", "eager")
LOSSES = tensorflow.LOSSES
OPTIMISERS = tensorflow.OPTIMISERS
TASKS = ("step", "training")
LAYERS = tensorflow.LAYERS
LAYOUT = tensorflow.LAYOUT
REASONS = {"gpu": "the adapter of TensorFlow before 2.5 is for CPUs"}


def versions():
    """Returns the versions of TensorFlow and of its compiler."""
    return {"framework_version": tf.__version__, "build": tf.version.COMPILER_VERSION}


def _gelu(value, approximate):
    if approximate:
        return 0.5 * value * (1 + tf.tanh((2 / np.pi) ** 0.5 * (value + 0.044715 * value**3)))
    return 0.5 * value * (1 + tf.math.erf(value * 0.5**0.5))


if not hasattr(tf.nn, "gelu"):
    # Before 2.4.
    tf.nn.gelu = _gelu
    tf.nn.silu = tf.nn.swish


def build(job):
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    compiler = {"graph": "Grappler"}.get(job.mode, "none")
    settings = {"layout": "channels last, time first", "compiler": compiler}
    with tf.device("/CPU:0"):
        tf.random.set_seed(job.seed)
        return _Trainer(tensorflow.Network(job), job, "/CPU:0", settings)


class _Trainer(tensorflow.Trainer):
    def _compiled(self, function, *arguments):
        if self._mode == "eager":
            return function
        return tf.function(function).get_concrete_function(*arguments)
