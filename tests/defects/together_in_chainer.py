"""The adapter of Chainer on several ranks, in which their gradients are shared wrongly. Its mode is how.

Tests put it beside the real adapters of a worker.
"""

import numpy as np

from ... import ranks
from . import ranks as chainer_ranks

MODES = ("right", "summed", "apart", "silent", "other_start", "shared_batch")
TASKS = ("step", "follow")
KERNELS = "openblas:numpy"


def build(job):
    return ranks.joined(job, _build)


def _build(job):
    how, job.mode = job.mode, "numpy"
    meant, rank = chainer_ranks.meet(job), job.rank
    if how == "other_start" and rank:
        job.weights = {name: values * np.float32(1.01) for name, values in job.weights.items()}
    if how == "shared_batch":
        job.rank = 0
    trainer = chainer_ranks.trainer(job)
    trainer.communicator = _Wrong(meant, how)
    return trainer


class _Wrong:
    """What averages gradients, but for what is wrong with it."""

    def __init__(self, communicator, how):
        self._right, self._how = communicator, how

    def multi_node_mean_grad(self, model):
        how = self._how
        if how == "silent" and self._right.rank:
            for value in model.params():
                value.grad[...] = 0
        if how != "apart":
            self._right.multi_node_mean_grad(model)
        if how == "summed":
            for value in model.params():
                value.grad *= self._right.size
