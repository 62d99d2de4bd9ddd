"""TensorFlow 2's forward passes: a `tf.function` with constants for variables (`graph`), XLA's, or operations."""

import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

from shared import evaluation, specification

from .. import tensorflow as training

TASKS = ("forward",)
# The casts to bfloat16 are those of a training step.
PRECISIONS = ("float32", "tf32")


def build(job):
    """Returns the network of the adapter tensorflow, without training."""
    place, settings = training.prepare(job)
    with tf.device(place):
        return _Predictor(_Network(job), job, place, settings)


class _Network(training.Network):
    """A network whose batch normalisation takes the statistics that a training has left."""

    def __init__(self, job):
        super().__init__(job)
        self._plan = [
            (_batch_norm, node, dict(own, **evaluation.statistics(node)))
            if node["op"] == "batch_norm"
            else (operation, node, own)
            for operation, node, own in self._plan
        ]


def _batch_norm(node, own, value):
    fixed = {"mean": own["mean"], "variance": own["variance"]}
    return tf.raw_ops.FusedBatchNormV3(
        x=value,
        scale=own["gamma"],
        offset=own["beta"],
        epsilon=node.get("epsilon", specification.BATCH_NORM_EPSILON),
        is_training=False,
        **fixed,
    ).y


class _Predictor(object):
    def __init__(self, network, job, place, settings):
        self._layout, self._place, self._waits = job.layout, place, job.device == "gpu"
        self._inputs, self.settings = tf.constant(job.inputs), settings
        self._pass = self._compiled(lambda values: network.logits(values, True), job.mode)
        self.threads = tf.config.threading.get_intra_op_parallelism_threads()
        self.parameters = sum(each.shape.num_elements() for each in network.variables.values())

    def _compiled(self, function, mode):
        if mode == "eager":
            return function
        traced = tf.function(function, jit_compile=mode == "xla" or None)
        traced = traced.get_concrete_function(self._inputs)
        if mode == "xla":
            return traced
        # Grappler folds what is constant, as TensorFlow's own servers have it.
        frozen = convert_to_constants.convert_variables_to_constants_v2(traced)
        self.settings["variables"] = "constants"
        return lambda values: frozen(values)[0]

    def infer(self, passes):
        with tf.device(self._place):
            for _ in range(passes):
                self._found = self._pass(self._inputs)
        # On a CPU a pass returns when it is done; on a GPU, when it is queued.
        if self._waits:
            tf.test.experimental.sync_devices()

    def give(self, inputs):
        with tf.device(self._place):
            self._inputs = tf.constant(self._layout.inputs(inputs))

    def outputs(self):
        return self._found.numpy()
