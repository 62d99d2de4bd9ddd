"""Sums over ranks of Chainer, each alone (see `worker.tasks.sums`)."""

import os

from ...parts import Operation
from . import ranks as chainer_ranks

MODES = chainer_ranks.MODES
EXCHANGES = chainer_ranks.EXCHANGES
TASKS = ("sums",)
KERNELS = chainer_ranks.KERNELS
REASONS = chainer_ranks.REASONS
versions = chainer_ranks.versions
_JOINED = []


def start(job):
    """Joins the ranks."""
    _JOINED.append(chainer_ranks.meet(job).mpi_comm)
    threads = os.environ["OMP_NUM_THREADS"]
    return {"threads": threads, "settings": {"exchange": "Allreduce of mpi4py, over MPICH"}}


def build(part):
    """A sum in place, as of gradients."""
    from mpi4py import MPI

    values = part.values.copy()

    def run(times):
        for _ in range(times):
            _JOINED[0].Allreduce(MPI.IN_PLACE, values)

    return Operation(run, lambda: values)
