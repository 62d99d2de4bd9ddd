"""Sums over ranks of PyTorch, each alone (see `worker.tasks.sums`)."""

import torch
from torch import distributed

from ...parts import Operation
from . import ranks as torch_ranks

MODES = torch_ranks.MODES
EXCHANGES = torch_ranks.EXCHANGES
TASKS = ("sums",)
REASONS = {
    "compiled": "steps on several devices are not compiled",
    "gpu": "sums of gradients are timed on CPUs only",
}
versions = torch_ranks.versions


def start(job):
    """Sets the threads, and joins the ranks."""
    torch.set_num_threads(job.threads)
    torch_ranks.meet(job)
    return {"threads": torch.get_num_threads(), "settings": {"exchange": "all_reduce over gloo"}}


def build(part):
    """A sum in place, as of gradients."""
    values = torch.from_numpy(part.values).clone()

    def run(times):
        for _ in range(times):
            distributed.all_reduce(values)

    return Operation(run, values.numpy)
