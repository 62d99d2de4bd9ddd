"""TensorFlow 2 on several ranks that do not wait for one another: ParameterServerStrategy, coordinated by rank 0."""

import time

import tensorflow as tf

from ... import ranks
from ...common_memory import WAIT_SECONDS, Shared
from ...contract import Unsupported
from .. import tensorflow

MODES = ("graph",)
OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
PRECISIONS = ("float32", "tf32")
TASKS = ("step", "stragglers", "follow", "turns")
REASONS = {
    "gpu": "weights are shared between CPUs only",
    "eager": "steps on several devices are graphs",
    "xla": "steps on several devices are not compiled by XLA",
    "training": "the workers of TensorFlow's `async` have their shares in their graphs, and are fed no images",
}
# To serve is to wait for ever.
SERVING = """
import sys
from worker.frameworks.tensorflow import asynchronous
kind, keeper, threads = sys.argv[1:4]
asynchronous.serve(kind, 0, keeper, sys.argv[4:], int(threads)).join()
"""
_JOINED = []


def build(job):
    """Returns a trainer of the specification in which all ranks take part."""
    if not hasattr(tf.distribute, "ParameterServerStrategy"):
        raise Unsupported(
            "TensorFlow {} has no ParameterServerStrategy but an experimental one".format(
                tf.__version__
            )
        )
    ranks.require_own_network("TensorFlow")
    if job.rank:
        return _Follower(job)
    return _Leader(job, _Trainer) if job.ranks > 1 else _Trainer(job)


def serve(kind, number, keeper, workers, threads):
    """Returns a server of the cluster, "ps" or "worker", which computes what the coordinator sends."""
    return tf.distribute.Server(
        {"ps": [keeper], "worker": workers},
        job_name=kind,
        task_index=number,
        protocol="grpc",
        config=tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads + 1
        ),
    )


def _coordinate(job):
    """Starts the parameter server and rank 0's worker, which use its CPUs, and returns what hands out steps."""
    keeper, workers = ranks.server(), ranks.endpoints()
    for kind in ("ps", "worker"):
        ranks.start(SERVING, [kind, keeper, str(job.threads)] + workers)
    cluster = tf.train.ClusterSpec({"ps": [keeper], "worker": workers})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    return tf.distribute.coordinator.ClusterCoordinator(strategy)


class _Leader(ranks.Leader):
    """Rank 0's trainer. The others' processes compute what the coordinator hands out; their Python only waits."""

    def turn(self, rank, steps):
        return self._own.turn(rank, steps)

    def weights(self, names=None):
        return self._own.weights(names)


class _Follower(object):
    """A rank without Python to run: it waits until the coordinator has no steps left."""

    def __init__(self, job):
        if not _JOINED:
            place = ranks.server(), ranks.endpoints()
            _JOINED.append(serve("worker", job.rank, *place, threads=job.threads))
        self._shared, self._rank, self._calls = _shared(job), job.rank, 0

    def run(self, steps):
        self._calls += 1
        while self._shared.others() < self._calls:
            time.sleep(WAIT_SECONDS)
        return float(self._shared.arrays[0][self._rank])

    def staleness(self):
        return float(self._shared.arrays[0][-1])


class _Trainer(object):
    def __init__(self, job):
        if not _JOINED:
            _JOINED.append(_coordinate(job))
        self._shared, self._coordinator = _shared(job), _JOINED[0]
        shares = [ranks.share(job, rank) for rank in range(job.ranks)]
        tf.random.set_seed(job.seed)
        with self._coordinator.strategy.scope():
            self._network = tensorflow.Network(job)
            # The updates of all ranks, and how many of others these had not seen.
            self._made, self._missed = [tf.Variable(0, dtype=tf.int64) for _ in range(2)]
        self._variables = list(self._network.variables.values())
        self._rate, self._loss = job.learning_rate, tensorflow.LOSSES[job.spec["loss"]]
        self._steps = [self._step(inputs, labels) for inputs, labels in shares]
        self.parameters = sum(variable.shape.num_elements() for variable in self._variables)
        self.threads = job.threads
        self.settings = {
            "layout": "channels last, time first",
            "compiler": "Grappler",
            "exchange": "ParameterServerStrategy",
        }

    def run(self, steps):
        for _ in range(steps):
            # Any worker that is free takes the next one.
            last = [self._coordinator.schedule(step) for step in self._steps]
        self._coordinator.join()
        losses = [float(each.fetch()) for each in last]
        self._shared.arrays[0][: len(losses)] = losses
        self._shared.count(0)
        return losses[0]

    def turn(self, rank, steps):
        """Takes steps of a rank's share, one after the other."""
        for _ in range(steps):
            last = self._coordinator.schedule(self._steps[rank])
            self._coordinator.join()
        return float(last.fetch())

    def staleness(self):
        """Returns how many updates of others lie between the reading and the writing of one, in the mean of all."""
        made = int(self._made.numpy())
        return int(self._missed.numpy()) / made if made else None

    def weights(self, names=None):
        # The others tell of it, who cannot ask the server.
        self._shared.arrays[0][-1] = self.staleness() or 0
        return self._network.weights(names)

    def _step(self, inputs, labels):
        """Returns the step of a share, which is in the graph that each worker gets once."""

        @tf.function
        def step():
            before = self._made.read_value()
            with tf.control_dependencies([before]), tf.GradientTape() as tape:
                outputs = self._network.logits(tf.constant(inputs))
                loss = self._loss(outputs, tf.constant(labels.reshape(-1)))
            gradients = tape.gradient(loss, self._variables)
            updates = [
                self._update(variable, gradient)
                for variable, gradient in zip(self._variables, gradients)
            ]
            with tf.control_dependencies(updates):
                self._missed.assign_add(self._made.read_value() - before)
                self._made.assign_add(1)
            return loss

        return step

    def _update(self, variable, gradient):
        if isinstance(gradient, tf.IndexedSlices):
            return variable.scatter_sub(
                tf.IndexedSlices(self._rate * gradient.values, gradient.indices)
            )
        return variable.assign_sub(self._rate * gradient)


def _shared(job):
    """Returns memory for the losses of ranks' shares and the staleness; its counter says how many calls are done."""
    return Shared(job, [job.ranks + 1])
