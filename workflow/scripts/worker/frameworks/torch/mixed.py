"""PyTorch on several ranks in groups: DistributedDataParallel over gloo inside a group, Hogwild between groups."""

import torch as framework
from torch import distributed

from shared import grouping

from ... import ranks
from ...common_memory import Shared
from . import ranks as torch_ranks

MODES = ("eager",)
OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "training", "follow", "turns")
REASONS = {
    "compiled": "steps on several devices are not compiled",
    "gpu": "weights are shared between CPUs only",
    "adadelta": "groups that do not wait for one another have no averages in common: `mixed` is with plain SGD",
    "rmsprop": "groups that do not wait for one another have no averages in common: `mixed` is with plain SGD",
}
# PyTorch's groups of ranks: a process makes them once.
_GROUPS = []


build = ranks.joined(lambda job: _Trainer(job))


class _Trainer(object):
    """A trainer of a group's ranks, whose weights are in memory that both ranks see.

    In each step the first rank of the group copies the weights from those that all groups have in common, while the
    other waits. When gradients are averaged, the first one updates the common weights, without a lock.
    """

    def __init__(self, job):
        own = self._own = torch_ranks.averaging(job, _group)
        groups = grouping.groups(job.ranks, job.exchange)
        (self._number,) = [number for number, each in enumerate(groups) if job.rank in each]
        self._trained = [value for value in own.network.parameters() if value.requires_grad]
        sizes = [value.numel() for value in self._trained]
        self._shared = Shared(job, sizes * (1 + len(groups)))
        self._common, *of_groups = [self._homes(part) for part in range(1 + len(groups))]
        self._seen = of_groups[self._number]
        if job.rank == 0:
            self._copy(self._trained, self._common)
        self._lie(self._seen)
        self._first, self._before = job.rank == groups[self._number][0], 0
        self._descend = own._update
        own._update = self._update if self._first else own._forget_gradients
        self.parameters, self.threads = own.parameters, own.threads
        self.frozen_parameters = own.frozen_parameters
        self.settings = dict(
            own.settings,
            exchange="DistributedDataParallel over gloo in groups of {}, Hogwild in shared memory between them".format(
                len(groups[0])
            ),
        )
        self.staleness, self.exchange_seconds = self._shared.staleness, own.exchange_seconds

    def run(self, steps):
        for _ in range(steps):
            self._begin()
            loss = self._own.run(1)
        return loss

    def train(self, batches):
        return self._own.train(self._begun(batches))

    def scores(self, inputs):
        self._copy(self._common, self._seen)
        return self._own.scores(inputs)

    def weights(self, names=None):
        # When no rank takes a step: both of a group write the same.
        self._copy(self._common, self._seen)
        return self._own.weights(names)

    def _begun(self, batches):
        for each in batches:
            self._begin()
            yield each

    def _begin(self):
        if self._first:
            self._before = self._shared.others()
            self._copy(self._common, self._seen)
        # Neither reads before all is there. None writes before both have read: gradients are averaged then.
        distributed.barrier(group=_GROUPS[self._number])

    def _update(self):
        self._lie(self._common)
        self._descend()
        self._lie(self._seen)
        self._shared.count(self._before)

    def _homes(self, part):
        """Returns where weights are in memory that all ranks share: the common ones, or a group's."""
        count = len(self._trained)
        arrays = self._shared.arrays[part * count : (part + 1) * count]
        # As they lay before: some are transposed.
        return [
            framework.from_numpy(memory).as_strided(value.size(), value.stride())
            for value, memory in zip(self._trained, arrays)
        ]

    def _lie(self, homes):
        for value, home in zip(self._trained, homes):
            value.data = home

    @staticmethod
    def _copy(source, target):
        with framework.no_grad():
            for each, home in zip(source, target):
                home.copy_(each)


def _group(job):
    """Returns PyTorch's group of a job's rank; every rank makes all groups."""
    groups = grouping.groups(job.ranks, job.exchange)
    if not _GROUPS:
        _GROUPS.extend(distributed.new_group(list(each)) for each in groups)
    return [made for made, each in zip(_GROUPS, groups) if job.rank in each][0]
