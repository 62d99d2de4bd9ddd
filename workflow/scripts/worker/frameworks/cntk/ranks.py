"""CNTK on several ranks: its data-parallel learner sums the gradients of the adapter cntk over MPI."""

import os

from cntk import distributed

from shared.operations import repeated

from ... import openmpi, ranks
from .. import cntk

# Names that CNTK asks of MPI are found there first, and not in the stand-in that lies beside it.
LOADS = "openmpi"
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "sums", "training", "follow")
REASONS = {
    "gpu": "gradients are shared between CPUs only",
    "async": "CNTK 2's block momentum exchanges after blocks of many mini-batches, which is another way of training",
}
FLOAT32_BITS = 32


@ranks.joined
def build(job):
    """Returns this rank's own, on its share of the mini-batch."""
    meet(job)
    job.inputs, job.labels = ranks.share(job)
    # No two ranks drop the same.
    job.seed += job.rank
    return cntk.build(job, _Trainer)


def meet(job):
    """Joins the ranks, once."""
    if not _JOINED:
        openmpi.join(job)
        _JOINED.append(True)


_JOINED = []


class _Trainer(cntk.Trainer):
    def __init__(self, job):
        super(_Trainer, self).__init__(job)
        self.settings = dict(
            self.settings, exchange="data_parallel_distributed_learner, over Open MPI"
        )

    def shared(self, learner):
        return distributed.data_parallel_distributed_learner(
            learner, num_quantization_bits=FLOAT32_BITS
        )


class Sums(object):
    exchange = "MPI_Allreduce of Open MPI"

    def __init__(self, job):
        meet(job)
        openmpi.start()
        self.threads = os.environ["OMP_NUM_THREADS"]

    def all_reduce(self, values):
        """Returns a sum in place, as of gradients."""
        summed = values.copy()
        return repeated(lambda: openmpi.add_up(summed), lambda: summed)
