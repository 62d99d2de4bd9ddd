"""Sums over ranks of TensorFlow 2, each alone (see `worker.tasks.sums`)."""

import tensorflow as tf

from ...parts import Operation
from . import ranks as tensorflow_ranks

MODES = tensorflow_ranks.MODES
EXCHANGES = tensorflow_ranks.EXCHANGES
TASKS = ("sums",)
REASONS = {
    "gpu": "sums of gradients are timed on CPUs only",
    "eager": "steps on several devices are graphs",
    "xla": "steps on several devices are not compiled by XLA",
}
versions = tensorflow_ranks.versions
_JOINED = []


def start(job):
    """Sets the threads, and joins the ranks."""
    _JOINED.append(tensorflow_ranks.meet(job))
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    return {"threads": threads, "settings": {"exchange": "all_reduce, RING"}}


def build(part):
    """A sum in a graph, of what the one before has left."""
    strategy, kept = _JOINED[0], [tf.constant(part.values)]

    def of_rank(values):
        # An operation of the rank's own device, which an argument of a graph has none of.
        return tensorflow_ranks.summed(tf.distribute.ReduceOp.SUM, tf.identity(values))

    step = tf.function(lambda values: strategy.run(of_rank, [values]))

    def run(times):
        for _ in range(times):
            kept[0] = step(kept[0])

    return Operation(run, lambda: kept[0].numpy())
