"""TensorFlow 0.12 to 1.15 on several ranks that do not wait for one another: a parameter server keeps the weights."""

import tensorflow as tf

from ... import ranks
from . import ranks as tensorflow1_ranks

OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "training", "follow", "turns")
REASONS = {"gpu": "weights are shared between CPUs only"}
SERVER = tensorflow1_ranks.SERVER


build = ranks.joined(lambda job: tensorflow1_ranks.connect(job, _Trainer))


class _Trainer(tensorflow1_ranks.Served):
    settings = dict(tensorflow1_ranks.Served.settings, exchange="parameter server, asynchronous")

    def __init__(self, session, job):
        with tf.device(SERVER):
            # The updates of all ranks, and how many of others these had not seen.
            self._made, self._missed = [
                tf.Variable(tf.zeros([], tf.int64), trainable=False) for _ in range(2)
            ]
        super(_Trainer, self).__init__(session, job)
        self._fetched = [self._loss, self._counted(self._fetched[1])]

    def _counted(self, update):
        """Returns an update of all weights that the server counts."""
        with tf.device(SERVER):
            # It is read with the weights, when a step begins; a sum, since what is only read is no copy.
            one = tf.constant(1, tf.int64)
            with_own = self._made.value() + one
            with tf.control_dependencies([update, with_own]):
                others = tf.assign_add(self._made, one, use_locking=True) - with_own
                return tf.group(tf.assign_add(self._missed, others, use_locking=True))

    def staleness(self):
        """Returns how many updates of others lie between the reading and the writing of one, in the mean of all."""
        missed, made = self._session.run([self._missed, self._made])
        return float(missed) / float(made) if made else None
