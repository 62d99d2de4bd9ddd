"""Defects in fastai: each function returns what takes which place, as (owner, name, value).

Its layers are those of PyTorch's adapter, and are broken there; its losses and optimisers are its own.
"""

import functools

import planted_in_torch
from fastai.optimizer import SGD, Adam, Optimizer, momentum_step


def _below(name):
    return lambda adapter: getattr(planted_in_torch, name)(adapter.torch)


mask_off_by_one = _below("mask_off_by_one")
unscaled = _below("unscaled")
unbiased = _below("unbiased")
detached = _below("detached")
detached_judge = _below("detached_judge")
turned = _below("turned")
padded_behind = _below("padded_behind")
half_tied = _below("half_tied")


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""
    _, name, missed = planted_in_torch.without_divergence(adapter.torch)
    return adapter._DISTANCES, name, lambda: missed


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    def average(p, mom, grad_avg=None, **_):
        if grad_avg is None:
            return {"grad_avg": p.grad.data.clone()}
        return {"grad_avg": grad_avg.mul_(mom).add_(p.grad.data, alpha=0.1)}

    average.defaults = {"mom": 0.9}

    def momentum(parameters, lr, mom=0.0):
        if not mom:
            return SGD(parameters, lr)
        return Optimizer(parameters, [average, momentum_step], lr=lr, mom=mom)

    return adapter, "SGD", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient."""
    return adapter, "Adam", functools.partial(Adam, decouple_wd=False)
