"""MXNet on several ranks that do not wait for one another: a kvstore (`dist_async`) whose server updates weights."""

import mxnet as mx

from ... import ranks
from .. import mxnet
from . import ranks as mxnet_ranks

OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
TASKS = ("step", "stragglers", "training", "follow", "turns")
REASONS = {"gpu": "weights are shared between CPUs only"}
_STORE = []


@ranks.joined
def build(job):
    """Returns a rank's own trainer, on its share of the mini-batch."""
    if not _STORE:
        _STORE.append(mxnet_ranks.meet(job, "dist_async"))
    job.inputs, job.labels = ranks.share(job)
    mx.random.seed(job.seed + job.rank)
    with mx.cpu():
        return {"graph": _Graph, "eager": _Eager}[job.mode](job, mx.cpu())


class _Apart(object):
    """What both modes have: each step begins with the server's weights, and sends it each gradient at once."""

    keys = 0

    def __init__(self, job, context):
        super(_Apart, self).__init__(job, context)
        self.head[:] = 1.0
        self.rate = job.learning_rate
        self.settings["exchange"] = "kvstore dist_async"
        self.settings["update"] = "MXNet's SGD on the server"
        _STORE[0].set_optimizer(mx.optimizer.SGD(learning_rate=job.learning_rate, wd=0.0))
        # A key is of one array for ever.
        self.first = _Apart.keys
        _Apart.keys += len(self.updates)
        for key, (value, _) in enumerate(self.updates, self.first):
            _STORE[0].init(key, value)

    def differentiate(self):
        self.fetch()
        return super(_Apart, self).differentiate()

    def fetch(self):
        for key, (value, _) in enumerate(self.updates, self.first):
            _STORE[0].pull(key, out=value, priority=-key)

    def update(self):
        for key, (_, gradient) in reversed(list(enumerate(self.updates, self.first))):
            _STORE[0].push(key, gradient, priority=-key)

    def train(self, batches):
        # The server has one rate.
        shared = ((inputs, labels, rate / self.rate) for inputs, labels, rate in batches)
        return super(_Apart, self).train(shared)

    def scores(self, inputs):
        self.fetch()
        return super(_Apart, self).scores(inputs)

    def weights(self, names=None):
        self.fetch()
        return super(_Apart, self).weights(names)


class _Graph(_Apart, mxnet.Graph):
    pass


class _Eager(_Apart, mxnet.Eager):
    pass
