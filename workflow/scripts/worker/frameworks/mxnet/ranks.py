"""MXNet on several ranks: a kvstore (`dist_sync`) sums the gradients of the adapter mxnet on a server."""

import itertools
import os

import mxnet as mx

from shared.operations import repeated

from ... import ranks
from .. import mxnet

OPTIMISERS = ("sgd",)
TASKS = ("step", "stragglers", "sums", "training", "follow")
# A key that no parameter has.
_MEETING = 2**30
_STORE = []


@ranks.joined
def build(job):
    """Returns a rank's own trainer, on its share of the mini-batch."""
    store_of(job)
    job.inputs, job.labels = ranks.share(job)
    mx.random.seed(job.seed + job.rank)
    with mxnet.context_of(job) as context:
        return {"graph": _Graph, "eager": _Eager}[job.mode](job, context)


def store_of(job):
    """Returns the kvstore in which all ranks sum; makes it once."""
    if not _STORE:
        _STORE.append(meet(job, "dist_sync"))
    return _STORE[0]


def meet(job, kind):
    """Returns a kvstore of this kind for all ranks. The first starts a scheduler and a server, which use its CPUs."""
    places = [place.split(":") for place in ranks.endpoints()]
    os.environ.update(
        DMLC_PS_ROOT_URI=places[0][0],
        DMLC_PS_ROOT_PORT=places[0][1],
        DMLC_NODE_HOST=places[job.rank][0],
        DMLC_INTERFACE=ranks.interface(),
        DMLC_NUM_SERVER="1",
        DMLC_NUM_WORKER=str(job.ranks),
        MXNET_KVSTORE_REDUCTION_NTHREADS=str(job.threads),
    )
    for role in ("scheduler", "server") if job.rank == 0 else ():
        # To import it is to serve.
        ranks.start("import mxnet", DMLC_ROLE=role)
    os.environ["DMLC_ROLE"] = "worker"
    with ranks.meeting():
        store, answer = mx.kv.create(kind), mx.nd.empty(1)
        # Once the server had no way to a worker, and both waited for ever.
        store.init(_MEETING, mx.nd.zeros(1))
        store.pull(_MEETING, answer)
        answer.wait_to_read()
    return store


class _Together(object):
    """What both modes have: gradients go to the server as soon as they are computed, and come back summed."""

    keys = 0

    def __init__(self, job, context):
        super(_Together, self).__init__(job, context)
        # The sum over the ranks is the mean then.
        self.head /= job.ranks
        self.ranks = job.ranks
        self.settings["exchange"] = "kvstore dist_sync"
        # A key is of one array for ever.
        self.first = _Together.keys
        _Together.keys += len(self.updates)
        for key, (_, gradient) in enumerate(self.updates, self.first):
            _STORE[0].init(key, mx.nd.zeros(gradient.shape))

    def update(self):
        numbered = list(enumerate(self.updates, self.first))
        for key, (_, gradient) in reversed(numbered):
            _STORE[0].push(key, gradient, priority=-key)
        for key, (_, gradient) in numbered:
            _STORE[0].pull(key, out=gradient, priority=-key)
        super(_Together, self).update()

    def train(self, batches):
        shared = ((inputs, labels, rate / self.ranks) for inputs, labels, rate in batches)
        return super(_Together, self).train(shared)


class _Graph(_Together, mxnet.Graph):
    pass


class _Eager(_Together, mxnet.Eager):
    pass


class Sums(object):
    exchange = "push and pull, kvstore dist_sync"

    def __init__(self, job):
        self._store, self._keys = store_of(job), itertools.count()
        self.threads = os.environ["OMP_NUM_THREADS"]

    def all_reduce(self, values):
        """Returns an operation that sends an array to the server, which sends back the sum, as for gradients."""
        # A key is of one array for ever.
        store, key = self._store, next(self._keys)
        # Not `mx.nd.array`, which leaves OpenMP threads behind in the calling thread.
        summed = mx.nd.from_numpy(values).copyto(mx.cpu())
        store.init(key, mx.nd.zeros(summed.shape))

        def step():
            store.push(key, summed)
            store.pull(key, out=summed)

        return repeated(step, summed.asnumpy, summed.wait_to_read)
