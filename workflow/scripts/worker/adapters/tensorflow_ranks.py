"""TensorFlow 2 on several ranks: MultiWorkerMirroredStrategy averages the gradients of the adapter tensorflow.

What was chosen here: docs/adapters/tensorflow.md.
"""

import json
import os

import tensorflow as tf

from .. import ranks
from . import tensorflow

MODES = ("graph",)
LAYERS = tensorflow.LAYERS
OPTIMISERS = tensorflow.OPTIMISERS
EXCHANGES = ("sync",)
# `follow` is what all ranks but the first one do.
TASKS = ("step", "stragglers", "training", "follow")
LAYOUT = tensorflow.LAYOUT
REASONS = {
    "gpu": "gradients are shared between CPUs only",
    "eager": "steps on several devices are graphs",
    "xla": "steps on several devices are not compiled by XLA",
}
_RING = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING
)
_STRATEGY = []


def versions():
    """Versions of TensorFlow and of what it was built with."""
    return tensorflow.versions()


def build(job):
    """A trainer of the specification in which all ranks take part."""
    return ranks.joined(job, _build)


def _build(job):
    meet(job)
    job.inputs, job.labels = ranks.share(job, LAYOUT)
    tf.random.set_seed(job.seed + job.rank)
    settings = {
        "layout": "channels last, time first",
        "compiler": "Grappler",
        "exchange": "MultiWorkerMirroredStrategy, RING",
    }
    return _Trainer(tensorflow.Network(job), job, "/CPU:0", settings)


def meet(job):
    """The strategy that all ranks have, made once: it reads TF_CONFIG, waits for the others, and comes before any other
    operation.
    """
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if not _STRATEGY:
        _STRATEGY.append(_meet(job))
    return _STRATEGY[0]


def summed(operation, values):
    """What the ranks' values come to, within a step of the strategy."""
    return tf.distribute.get_replica_context().all_reduce(operation, values, _RING)


def _meet(job):
    ranks.require_own_network("TensorFlow")
    cluster = {"worker": ranks.endpoints()}
    task = {"type": "worker", "index": job.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=_RING)


class _Trainer(tensorflow.Trainer):
    def _compiled(self, function, *arguments):
        def step(*values):
            return _STRATEGY[0].run(function, values)

        return super(_Trainer, self)._compiled(step, *arguments)

    def _train(self, inputs, labels, rate):
        with tf.GradientTape() as tape:
            scores = self._network.logits(inputs)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        gradients = [tf.convert_to_tensor(each) for each in tape.gradient(loss, self._variables)]
        gradients = summed(tf.distribute.ReduceOp.MEAN, gradients)
        update = tensorflow.UPDATES[self._optimiser["name"]]
        for variable, gradient, averages in zip(self._variables, gradients, self._averages):
            update(self._optimiser, variable, gradient, averages, rate)
        return loss
