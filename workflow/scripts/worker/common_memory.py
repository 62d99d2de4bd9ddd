"""Memory that all ranks of a cell have in common: weights that each rank updates at any time, without a lock.

No file system holds it, so nothing of it is left when its processes have ended, however they end. The first rank makes
it, and the others find it by a link in the folder in which ranks meet (see `worker.ranks`).
"""

import ctypes
import mmap
import os
import time

import numpy as np

from . import ranks

# Bytes of a cache line, so that two ranks that count do not write to the same one.
LINE = 64
WAIT_SECONDS = 0.001
_MADE = []


class Shared(object):
    """Holds `arrays`, each of so many float32 values, and counts how often each rank has updated them.

    They begin as zeros. Each rank makes as many of these, in the same order. Raises Unsupported where ranks are on
    several nodes.
    """

    def __init__(self, job, sizes):
        ranks.require_one_node()
        places = [-(-4 * size // LINE) * LINE for size in sizes]
        self._rank = job.rank
        whole = self._map(job, LINE * job.ranks + sum(places))
        # For each rank, its updates so far, and how many updates of others came between its reading and its writing.
        self._counts = np.frombuffer(whole, np.int64, LINE // 8 * job.ranks).reshape(job.ranks, -1)
        self.arrays = []
        start = LINE * job.ranks
        for size, place in zip(sizes, places):
            self.arrays.append(np.frombuffer(whole, np.float32, size, start))
            start += place

    def others(self):
        """Returns how many updates the other ranks have made."""
        return int(self._counts[:, 0].sum()) - int(self._counts[self._rank, 0])

    def count(self, before):
        """Counts an update of this rank, which read the weights when the others had made `before` updates."""
        self._counts[self._rank] += np.array([1, self.others() - before] + [0] * (LINE // 8 - 2))

    def staleness(self):
        """Returns how many updates of others come between the reading and the writing of one, in the mean."""
        steps, between = self._counts[:, :2].sum(0)
        return float(between) / float(steps) if steps else None

    def _map(self, job, size):
        link = os.path.join(os.environ["STEPTIME_MEETING"], "memory{}".format(len(_MADE)))
        _MADE.append(link)
        if job.rank == 0:
            number = ctypes.CDLL(None, use_errno=True).memfd_create(b"steptime", 0)
            if number < 0:
                raise OSError(ctypes.get_errno(), "memfd_create")
            # Open as long as this lives: until then, the others may come.
            self._file = os.fdopen(number, "r+b")
            os.ftruncate(number, size)
            os.symlink("/proc/{}/fd/{}".format(os.getpid(), number), link)
        else:
            while not os.path.islink(link):
                time.sleep(WAIT_SECONDS)
            self._file = open(link, "r+b")
        return mmap.mmap(self._file.fileno(), size)
