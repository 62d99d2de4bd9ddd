"""PaddlePaddle on several ranks: its DataParallel over gloo, on GPUs over NCCL, around the network of the adapter
paddle.
"""

import os

import paddle as framework
from paddle import DataParallel, distributed

from shared.operations import repeated

from ... import ranks
from .. import paddle

OPTIMISERS = ("sgd",)
TASKS = ("step", "stragglers", "sums", "training", "follow")
REASONS = {"async": "the adapter of PaddlePaddle shares gradients by `sync` only"}
_BACKENDS = {"cpu": "gloo", "gpu": "nccl"}


@ranks.joined
def build(job):
    """Returns a rank's own trainer, on its share of the mini-batch."""
    meet(job)
    job.inputs, job.labels = ranks.share(job)
    trainer = paddle.build(job)
    network = trainer.network
    trainer.network = DataParallel(network)
    trainer.network.homes = network.homes
    trainer.settings["exchange"] = "DataParallel over " + _BACKENDS[job.device]
    return trainer


def meet(job):
    """Joins the ranks, once."""
    if distributed.is_initialized():
        return
    ranks.require_own_network("PaddlePaddle")
    places = ranks.endpoints()
    os.environ.update(
        PADDLE_TRAINER_ID=str(job.rank),
        PADDLE_TRAINERS_NUM=str(job.ranks),
        PADDLE_TRAINER_ENDPOINTS=",".join(places),
        PADDLE_CURRENT_ENDPOINT=places[job.rank],
        # What it takes by itself is an older way, with forks.
        PADDLE_DISTRI_BACKEND=_BACKENDS[job.device],
        # Of the GPUs that it sees: a rank sees its own alone.
        FLAGS_selected_gpus="0",
        GLOO_SOCKET_IFNAME=ranks.interface(),
        NCCL_SOCKET_IFNAME=ranks.interface(),
    )
    distributed.init_parallel_env()


class Sums(object):
    exchange = "all_reduce over gloo"

    def __init__(self, job):
        meet(job)
        self.threads = os.environ["OMP_NUM_THREADS"]

    def all_reduce(self, values):
        """Returns a sum in place, as of gradients."""
        summed = framework.to_tensor(values)
        return repeated(lambda: distributed.all_reduce(summed), summed.numpy)
