"""Sums over ranks of MXNet, each alone (see `worker.tasks.sums`)."""

import itertools
import os

import mxnet as mx

from ...parts import Operation
from . import ranks as mxnet_ranks

MODES = mxnet_ranks.MODES
EXCHANGES = mxnet_ranks.EXCHANGES
TASKS = ("sums",)
REASONS = {"gpu": "sums of gradients are timed on CPUs only"}
versions = mxnet_ranks.versions
_JOINED, _KEYS = [], itertools.count()


def start(job):
    """Joins the ranks."""
    _JOINED.append(mxnet_ranks.store_of(job))
    threads = os.environ["OMP_NUM_THREADS"]
    return {"threads": threads, "settings": {"exchange": "push and pull, kvstore dist_sync"}}


def build(part):
    """An array that is sent to the server and comes back summed, as gradients do."""
    # A key is of one array for ever.
    store, key = _JOINED[0], next(_KEYS)
    # Not `mx.nd.array`, which leaves OpenMP threads behind in the calling thread.
    values = mx.nd.from_numpy(part.values).copyto(mx.cpu())
    store.init(key, mx.nd.zeros(values.shape))

    def run(times):
        for _ in range(times):
            store.push(key, values)
            store.pull(key, out=values)
        values.wait_to_read()

    return Operation(run, values.asnumpy)
