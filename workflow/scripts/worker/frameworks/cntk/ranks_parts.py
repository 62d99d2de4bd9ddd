"""Sums over ranks of CNTK, each alone (see `worker.tasks.sums`): by Open MPI, which its learner calls too."""

import os

from ... import openmpi
from ...parts import Operation
from . import ranks as cntk_ranks

MODES = cntk_ranks.MODES
EXCHANGES = cntk_ranks.EXCHANGES
TASKS = ("sums",)
KERNELS = cntk_ranks.KERNELS
REASONS = cntk_ranks.REASONS
versions = cntk_ranks.versions


def start(job):
    """Joins the ranks."""
    cntk_ranks.meet(job)
    openmpi.start()
    threads = os.environ["OMP_NUM_THREADS"]
    return {"threads": threads, "settings": {"exchange": "MPI_Allreduce of Open MPI"}}


def build(part):
    """A sum in place, as of gradients."""
    values = part.values.copy()

    def run(times):
        for _ in range(times):
            openmpi.add_up(values)

    return Operation(run, lambda: values)
