"""PyTorch on several ranks: DistributedDataParallel over gloo, on GPUs over NCCL, around the adapter torch."""

import os

import torch as framework
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from shared.operations import repeated

from ... import ranks
from ...settings import torch as torch_settings
from .. import torch

MODES = ("eager",)
TASKS = ("step", "stragglers", "sums", "training", "follow")
REASONS = {"compiled": "steps on several devices are not compiled"}
_BACKENDS = {"cpu": "gloo", "gpu": "nccl"}
# PyTorch 1.4 knows neither.
_OPTIONS = {} if torch_settings.OLD else {"gradient_as_bucket_view": True, "static_graph": True}


def averaging(job, group=None):
    """Returns a trainer of the rank's share; gradients are averaged over all ranks, or those of `group(job)`."""
    job.inputs, job.labels = ranks.share(job)
    # No two ranks drop the same.
    job.seed += job.rank
    trainer = torch.build(job)
    # Not before PyTorch was told how many threads it has.
    meet(job)
    network = trainer.network
    made = group(job) if group else None
    trainer.network = DistributedDataParallel(network, process_group=made, **_OPTIONS)
    trainer.network.homes = network.homes
    trainer.scores = lambda inputs: _scores(trainer, network, inputs)
    trainer.settings["exchange"] = "DistributedDataParallel over " + _BACKENDS[job.device]
    trainer.exchange_seconds = lambda: _exchange_seconds(trainer.network)
    return trainer


build = ranks.joined(averaging)


def meet(job):
    """Joins the ranks, once, by a file: a store of its own would listen on every interface."""
    if distributed.is_initialized():
        return
    interface = ranks.interface()
    os.environ.update(GLOO_SOCKET_IFNAME=interface, NCCL_SOCKET_IFNAME=interface)
    distributed.init_process_group(
        _BACKENDS[job.device],
        init_method="file://{}/store".format(os.environ["STEPTIME_MEETING"]),
        rank=job.rank,
        world_size=job.ranks,
    )


def _scores(trainer, network, inputs):
    """Returns scores of the network itself: in its wrapper all ranks exchange statistics, and only one judges."""
    around, trainer.network = trainer.network, network
    try:
        return type(trainer).scores(trainer, inputs)
    finally:
        trainer.network = around


def _exchange_seconds(network):
    """Returns the time from the first gradient sent to the last received, in the mean of PyTorch's notes."""
    tells = getattr(network, "_get_ddp_logging_data", None)
    nanoseconds = tells().get("avg_backward_comm_time") if tells else None
    return nanoseconds / 1e9 if nanoseconds else None


class Sums(object):
    exchange = "all_reduce over gloo"

    def __init__(self, job):
        framework.set_num_threads(job.threads)
        meet(job)
        self.threads = framework.get_num_threads()

    def all_reduce(self, values):
        """Returns a sum in place, as for gradients."""
        summed = framework.from_numpy(values).clone()
        return repeated(lambda: distributed.all_reduce(summed), summed.numpy)
