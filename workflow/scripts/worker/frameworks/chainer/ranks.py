"""Chainer on several ranks: ChainerMN's communicator `naive` averages the gradients of the adapter chainer over MPI."""

import os

import chainermn
from chainer import Link

from shared.operations import repeated

from ... import mpi, ranks
from .. import chainer

MODES = ("ideep", "numpy")
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "sums", "training", "follow")
REASONS = {
    "gpu": "gradients are shared between CPUs only",
    "async": "ChainerMN has no way of sharing gradients without waiting",
}
_JOINED = []


@ranks.joined
def build(job):
    """Returns this rank's own, on its share of the mini-batch."""
    communicator = meet(job)
    job.inputs, job.labels = ranks.share(job)
    return _Trainer(job, chainer.prepare(job), communicator)


def meet(job):
    """ChainerMN's communicator of all ranks, made when it is first asked for."""
    if not _JOINED:
        _JOINED.append(mpi.join(job))
        _JOINED.append(chainermn.create_communicator("naive"))
    return _JOINED[-1]


class _Trainer(chainer.Trainer):
    def __init__(self, job, arrays, communicator):
        super(_Trainer, self).__init__(job, arrays)
        self.communicator, self.model = communicator, Link()
        with self.model.init_scope():
            for number, value in enumerate(self.trained.values()):
                setattr(self.model, "array{:04}".format(number), value)
        self.settings["exchange"] = "multi_node_mean_grad of the communicator naive, over MPICH"

    def update(self):
        self.communicator.multi_node_mean_grad(self.model)
        super(_Trainer, self).update()


class Sums(object):
    exchange = "Allreduce of mpi4py, over MPICH"

    def __init__(self, job):
        self._communicator = meet(job).mpi_comm
        self.threads = os.environ["OMP_NUM_THREADS"]

    def all_reduce(self, values):
        """Returns a sum in place, as of gradients."""
        from mpi4py import MPI

        summed = values.copy()
        return repeated(lambda: self._communicator.Allreduce(MPI.IN_PLACE, summed), lambda: summed)
