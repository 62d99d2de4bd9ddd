"""TensorFlow 2 on several ranks: MultiWorkerMirroredStrategy averages the gradients of the adapter tensorflow."""

import json
import os

import tensorflow as tf

from shared.operations import repeated

from ... import ranks
from ...settings import tensorflow as tensorflow_settings
from .. import tensorflow

MODES = ("graph",)
PRECISIONS = ("float32", "tf32")
TASKS = ("step", "stragglers", "sums", "training", "follow")
REASONS = {
    "eager": "steps on several devices are graphs",
    "xla": "steps on several devices are not compiled by XLA",
}
_COLLECTIVES = {"cpu": "RING", "gpu": "NCCL"}
# When the ranks have met, the strategy and the options of its collective operations.
_MET = []


@ranks.joined
def build(job):
    """Returns a rank's own trainer, on its share of the mini-batch."""
    on_gpu = job.device == "gpu"
    settings = (
        tensorflow_settings.prepare_gpu(tensorflow.PRECISIONS[job.precision]) if on_gpu else {}
    )
    meet(job)
    if on_gpu:
        tensorflow_settings.require(job.precision)
    job.inputs, job.labels = ranks.share(job)
    tf.random.set_seed(job.seed + job.rank)
    settings.update(
        layout="channels last, time first",
        compiler="Grappler",
        exchange="MultiWorkerMirroredStrategy, " + _COLLECTIVES[job.device],
    )
    place = "/GPU:0" if on_gpu else "/CPU:0"
    with tf.device(place):
        return _Trainer(tensorflow.Network(job), job, place, settings)


def meet(job):
    """Returns the strategy of all ranks, made once and first: it reads TF_CONFIG and waits for the others."""
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if not _MET:
        _MET.extend(_meet(job))
    return _MET[0]


def summed(operation, values):
    """Returns the sum, or another operation, of the ranks' values, within a step of the strategy."""
    return tf.distribute.get_replica_context().all_reduce(operation, values, _MET[1])


def _meet(job):
    ranks.require_own_network("TensorFlow")
    cluster = {"worker": ranks.endpoints()}
    task = {"type": "worker", "index": job.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=getattr(kinds, _COLLECTIVES[job.device])
    )
    os.environ["NCCL_SOCKET_IFNAME"] = ranks.interface()
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options), options


class _Trainer(tensorflow.Trainer):
    def __init__(self, network, job, place, settings):
        super(_Trainer, self).__init__(network, job, place, settings)
        # What waits for devices knows no other workers. A GPU's loss should come behind all that was queued before.
        self._waits = False

    def _compiled(self, function, *arguments):
        def step(*values):
            return _MET[0].run(function, values)

        return super(_Trainer, self)._compiled(step, *arguments)

    def shared(self, gradients):
        gradients = [tf.convert_to_tensor(each) for each in gradients]
        return summed(tf.distribute.ReduceOp.MEAN, gradients)


class Sums(object):
    exchange = "all_reduce, RING"

    def __init__(self, job):
        self._strategy = meet(job)
        self.threads = tf.config.threading.get_intra_op_parallelism_threads()

    def all_reduce(self, values):
        """Returns a sum in a graph, whose argument is the last result."""
        kept = [tf.constant(values)]

        def of_rank(values):
            # An operation of the rank's own device, which an argument of a graph has none of.
            return summed(tf.distribute.ReduceOp.SUM, tf.identity(values))

        step = tf.function(lambda values: self._strategy.run(of_rank, [values]))

        def add_up():
            kept[0] = step(kept[0])

        return repeated(add_up, lambda: kept[0].numpy())
