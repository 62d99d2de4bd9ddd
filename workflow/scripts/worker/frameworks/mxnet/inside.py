"""MXNet on several contexts of one process: a kvstore in memory sums the gradients of the adapter mxnet."""

import copy

import mxnet as mx
import numpy as np

from ... import ranks
from ...contract import Unsupported
from .. import mxnet


def build(job):
    """A trainer of the specification in which all contexts take part."""
    return _Together(job, contexts_of(job))


def contexts_of(job):
    """As many contexts as the job has devices. Raises Unsupported where there are fewer GPUs."""
    # It says what a GPU lacks.
    mxnet.context_of(job)
    if job.device == "cpu":
        return [mx.cpu(number) for number in range(job.ranks)]
    if mx.context.num_gpus() < job.ranks:
        missing = "this build of MXNet sees {} GPUs, and {} are asked for"
        raise Unsupported(missing.format(mx.context.num_gpus(), job.ranks))
    return [mx.gpu(number) for number in range(job.ranks)]


class _Together(object):
    """A trainer of the adapter mxnet on each context, with its share of the mini-batch.

    Operators of one context wait for none of another. Gradients are summed as soon as they are there.
    """

    def __init__(self, job, contexts):
        self._steps, self._parts = 0, [_part(job, *each) for each in enumerate(contexts)]
        first = self._parts[0]
        kind = "local" if job.device == "cpu" else "device"
        self._store = mx.kv.create(kind)
        # The gradients of a parameter in all contexts.
        self._gradients = [
            [gradient for _, gradient in updates]
            for updates in zip(*(part.updates for part in self._parts))
        ]
        for key, gradients in enumerate(self._gradients):
            self._store.init(key, mx.nd.zeros(gradients[0].shape, ctx=gradients[0].context))
        self.parameters, self.frozen_parameters = first.parameters, first.frozen_parameters
        self.threads = first.threads
        self.settings = dict(
            first.settings, contexts=str(len(contexts)), exchange="kvstore {}".format(kind)
        )

    def run(self, steps):
        self._steps += steps
        for _ in range(steps):
            losses = self._each(lambda part: part.differentiate())
            for key, gradients in reversed(list(enumerate(self._gradients))):
                self._store.pushpull(key, gradients, out=gradients, priority=-key)
            self._each(lambda part: part.update())
        last = np.mean([float(loss.asscalar()) for loss in losses])
        # The losses are there before the last update is done.
        mx.nd.waitall()
        return float(last)

    def weights(self, names=None):
        found, *others = [part.weights(names) for part in self._parts]
        own, others = ranks.sums(found), map(ranks.sums, others)
        ranks.require_alike("context", self._steps, own, others)
        return found

    def _each(self, do):
        found = []
        for part in self._parts:
            with part.context:
                found.append(do(part))
        return found


def _part(job, number, context):
    """A trainer on one context."""
    own = copy.copy(job)
    own.rank, own.weights = number, dict(job.weights)
    own.inputs, own.labels = ranks.share(own)
    mx.random.seed(job.seed + number, ctx=context)
    with context:
        made = {"graph": mxnet.Graph, "eager": mxnet.Eager}[job.mode](own, context)
    # The sum over the contexts is the mean then.
    made.head /= job.ranks
    return made
