"""PyTorch on several ranks that do not wait for one another: Hogwild (Niu et al. 2011), in memory that all share."""

import torch as framework

from ... import ranks
from ...common_memory import Shared
from .. import torch

MODES = ("eager",)
OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "training", "follow", "turns")
REASONS = {
    "compiled": "steps on several devices are not compiled",
    "gpu": "weights are shared between CPUs only",
    "adadelta": "ranks that do not wait for one another have no averages in common: `async` is with plain SGD",
    "rmsprop": "ranks that do not wait for one another have no averages in common: `async` is with plain SGD",
}


build = ranks.joined(lambda job: _Trainer(job))


class _Trainer(object):
    """A trainer as on one device, whose weights are in the memory of all ranks."""

    def __init__(self, job):
        job.inputs, job.labels = ranks.share(job)
        # No two ranks drop the same.
        job.seed += job.rank
        own = self._own = torch.build(job)
        trained = [value for value in own.network.parameters() if value.requires_grad]
        self._shared = Shared(job, [value.numel() for value in trained])
        for value, memory in zip(trained, self._shared.arrays):
            # As it lay before: some are transposed.
            home = framework.from_numpy(memory).as_strided(value.size(), value.stride())
            if job.rank == 0:
                home.copy_(value.detach())
            value.data = home
        self.parameters, self.threads = own.parameters, own.threads
        self.frozen_parameters = own.frozen_parameters
        self.weights, self.scores = own.weights, own.scores
        self.settings = dict(own.settings, exchange="Hogwild in shared memory")
        self.staleness = self._shared.staleness

    def run(self, steps):
        for _ in range(steps):
            before = self._shared.others()
            loss = self._own.run(1)
            self._shared.count(before)
        return loss

    def train(self, batches):
        return self._own.train(self._counted(batches))

    def _counted(self, batches):
        # The next one is asked for when this one's update is made.
        for each in batches:
            before = self._shared.others()
            yield each
            self._shared.count(before)
