"""Defects in SINGA: each function returns what takes which place, as (owner, name, value)."""

from types import SimpleNamespace

import numpy as np
from judging import JUDGE
from singa import autograd
from singa import singa_wrap as core

from worker.frameworks.singa import images as singa_images
from worker.frameworks.singa import losses as singa_losses
from worker.frameworks.singa import repair as singa_repair


class _Changed(autograd.Operator):
    """Something else forward, and something else back, each by a function of a tensor of C++."""

    def __init__(self, forth, back):
        super().__init__()
        self.forward, self.backward = forth, back


def _times(values, there, back):
    """Each number times one, and its gradient times another."""
    made = _Changed(lambda x: core.MultFloat(x, there), lambda dy: core.MultFloat(dy, back))
    return made(values)[0]


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    class Missed(singa_losses.EvidenceBound):
        def each(self, x):
            return singa_losses.BinaryCrossEntropy.each(self, self._parts(x)[0])

        def slope(self, x):
            decoded, *code = self._parts(x)
            slope = singa_losses.BinaryCrossEntropy.slope(self, decoded)
            return singa_repair.joined([slope] + [core.MultFloat(each, 0.0) for each in code])

    return singa_losses.DISTANCES, "evidence_bound", Missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda trainer, node: lambda x: _times(x, 1.0, 0.0)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(trainer, node):
        if node["name"] not in JUDGE:
            return right(trainer, node)
        held = _owning(trainer, lambda each: _times(each, 1.0, 0.0))
        return lambda x: right(held, node)(x)

    return adapter.LAYERS, "dense", dense


def _owning(trainer, change, *changed):
    """What has the parameters of a trainer, but those of some roles, or all, changed anew in each step."""

    def own(node, *roles):
        return [
            change(each) if role in (changed or roles) else each
            for role in roles
            for each in trainer.own(node, role)
        ]

    return SimpleNamespace(own=own)


def _copied(values):
    """A tensor of C++ of these numbers."""
    made = singa_repair.empty(*values.shape)
    singa_repair.view(made)[:] = np.ascontiguousarray(values).reshape(-1)
    return made


def _array(x):
    return singa_repair.view(x).reshape(x.shape())


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def over(x):
        return _copied(_array(x).swapaxes(2, 3))

    def convolve(trainer, node):
        other = _owning(trainer, lambda each: _Changed(over, over)(each)[0], "weight")
        return lambda x: right(other, node)(x)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(trainer, node):
        behind = (0, 2 * node["padding"])
        _, height, width = node["in_shape"]

        def wide(x):
            edges = [(0, 0), (0, 0), behind, behind]
            return _copied(np.pad(_array(x), edges, "constant", constant_values=-1e30))

        def narrow(dy):
            return _copied(_array(dy)[:, :, :height, :width])

        inner = right(trainer, dict(node, padding=0))
        return lambda x: inner(_Changed(wide, narrow)(x)[0])

    return adapter.LAYERS, "max_pool", pool


def unbiased_groups(adapter):
    """Group normalisation by the variance over n - 1."""
    right = adapter.LAYERS["group_norm"]

    def norm(trainer, node):
        size = np.prod(node["shape"]) // node["groups"]
        less = float((size - 1) / size) ** 0.5
        other = _owning(trainer, lambda each: _times(each, less, less), "gamma")
        return lambda x: right(other, node)(x)

    return adapter.LAYERS, "group_norm", norm


def another_epsilon(adapter):
    """Groups that are normalised with the epsilon of Keras's layer."""
    return singa_images.specification, "BATCH_NORM_EPSILON", 1e-3


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""
    right = adapter._Trainer.momentous

    def momentous(trainer, value, gradient):
        share = 0.1 if id(value) in trainer.kept else 1.0
        less = SimpleNamespace(data=core.MultFloat(gradient.data, share))
        return right(trainer, value, less)

    return adapter._Trainer, "momentous", momentous
