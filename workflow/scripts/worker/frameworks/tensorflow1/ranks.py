"""TensorFlow 0.12 to 1.15 on several ranks: a parameter server, which averages gradients by SyncReplicasOptimizer."""

import tensorflow as tf

from ... import ranks
from .. import tensorflow1

OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "training", "follow")
REASONS = {"gpu": "gradients are shared between CPUs only"}
# To serve is to wait for ever.
SERVING = """
import sys
import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": sys.argv[1:2], "worker": sys.argv[3:]})
settings = tf.ConfigProto(intra_op_parallelism_threads=int(sys.argv[2]), inter_op_parallelism_threads=1)
tf.train.Server(cluster, job_name="ps", task_index=0, config=settings).join()
"""
SERVER = "/job:ps/task:0"
# In 0.12 the one of later versions has this name, and the plain one is an older design.
_Averaging = getattr(tf.train, "SyncReplicasOptimizerV2", tf.train.SyncReplicasOptimizer)
_JOINED = []


build = ranks.joined(lambda job: connect(job, _Trainer))


def connect(job, kind):
    """Returns a trainer of this kind on the rank's share, with its own session that can reach the server."""
    if not _JOINED:
        _JOINED.append(_meet(job))
    job.inputs, job.labels = ranks.share(job)
    graph, here = tf.Graph(), device_of(job.rank)
    _JOINED.append(graph)
    # Variables on a server are known by name to all, and to later trainers.
    with graph.as_default(), tf.container("trainer{}".format(len(_JOINED))), tf.device(here):
        # No two ranks drop the same.
        tf.set_random_seed(job.seed + job.rank)
        # Without filters, a session waits for all ranks.
        settings = _settings(job.threads, [SERVER, here])
        return kind(tf.Session(_JOINED[0].target, graph=graph, config=settings), job)


def device_of(rank):
    """Returns the device of a rank."""
    return "/job:worker/task:{}".format(rank)


def _settings(threads, filters):
    return tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1, device_filters=filters
    )


def _meet(job):
    """Returns a rank's server; the first rank also starts the parameter server, which uses its CPUs."""
    ranks.require_own_network("TensorFlow")
    keeper, workers = ranks.server(), ranks.endpoints()
    if job.rank == 0:
        ranks.start(SERVING, [keeper, str(job.threads)] + workers)
    return tf.train.Server(
        tf.train.ClusterSpec({"ps": [keeper], "worker": workers}),
        job_name="worker",
        task_index=job.rank,
        config=_settings(job.threads, []),
    )


class Served(tensorflow1.Trainer):
    """A trainer whose weights are on the server, and whose mini-batch is with the rank."""

    def __init__(self, session, job):
        self._here = device_of(job.rank)
        super(Served, self).__init__(session, job)

    def _variable(self, value, trainable=True):
        with tf.device(SERVER if trainable else self._here):
            return super(Served, self)._variable(value, trainable)

    def scores(self, inputs):
        with self._session.graph.as_default(), tf.device(self._here):
            return super(Served, self).scores(inputs)


class _Trainer(Served):
    settings = dict(Served.settings, exchange="parameter server, SyncReplicasOptimizer")

    def __init__(self, session, job):
        with tf.device(SERVER):
            done = tf.Variable(tf.zeros([], tf.int64), trainable=False)
        super(_Trainer, self).__init__(session, job)
        optimiser = _Averaging(
            tf.train.GradientDescentOptimizer(job.learning_rate),
            replicas_to_aggregate=job.ranks,
            total_num_replicas=job.ranks,
        )
        # What a step is fed with reaches its own gradients alone, and not the update by all of them.
        scaled = self._loss * (self._rate / job.learning_rate)
        self._fetched = [self._loss, optimiser.minimize(scaled, global_step=done)]
        # None may run ahead: as many as there are ranks would let each take its next step from the old weights.
        tokens = optimiser.get_init_tokens_op(0)
        self._scores = self._connect(judging=True)
        if job.rank:
            session.run(optimiser.local_step_init_op)
            return
        session.run([optimiser.chief_init_op, tokens])
        # Last of all: 0.12 adds nothing to a graph of which something runs, and this never ends.
        optimiser.get_chief_queue_runner().create_threads(session, daemon=True, start=True)
