"""Sums over ranks of PaddlePaddle, each alone (see `worker.tasks.sums`)."""

import os

import paddle
from paddle import distributed

from ...parts import Operation
from . import ranks as paddle_ranks

MODES = paddle_ranks.MODES
EXCHANGES = paddle_ranks.EXCHANGES
TASKS = ("sums",)
KERNELS = paddle_ranks.KERNELS
REASONS = {
    "gpu": "sums of gradients are timed on CPUs only",
    "async": "the adapter of PaddlePaddle shares gradients by `sync` only",
}
versions = paddle_ranks.versions


def start(job):
    """Joins the ranks."""
    paddle_ranks.meet(job)
    threads = os.environ["OMP_NUM_THREADS"]
    return {"threads": threads, "settings": {"exchange": "all_reduce over gloo"}}


def build(part):
    """A sum in place, as of gradients."""
    values = paddle.to_tensor(part.values)

    def run(times):
        for _ in range(times):
            distributed.all_reduce(values)

    return Operation(run, values.numpy)
