"""Defects in MXNet 1.0: each function returns what takes which place, as (owner, name, value).

What it shares with the adapter of later versions is broken there.
"""

from types import SimpleNamespace

import mxnet as mx
import planted_in_mxnet
from judging import JUDGE


def _of_symbols(adapter, kind, plant):
    """What `plant` makes of a layer of later versions, made of the one here."""
    right = adapter.LAYERS[kind]
    layers = {kind: lambda operators, *given: right(*given)}
    later = SimpleNamespace(LAYERS=layers, _wide=adapter.mxnet._wide)
    _, _, wrong = plant(later)
    return adapter.LAYERS, kind, lambda *given: wrong(mx.sym, *given)


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = mx.sym.broadcast_greater
    return mx.sym, "broadcast_greater", lambda row, column: right(row, column + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    return _of_symbols(adapter, "attention", planted_in_mxnet.unscaled)


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""
    return _of_symbols(adapter, "layer_norm", planted_in_mxnet.unbiased)


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    return _of_symbols(adapter, "unembedding", planted_in_mxnet.half_tied)


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(spec, outputs):
        width = spec["nodes"][-1]["shape"][-1]
        decoded = 2 * spec["input"]["shape"][0] - width
        given, wanted = adapter._columns(outputs, 0, decoded), adapter._targets(decoded)
        return mx.sym.mean(adapter.mxnet.entropy(mx.sym, given, wanted)) * (decoded / width)

    return adapter, "_distance", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return planted_in_mxnet.detached(adapter.mxnet)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, x):
        held = (lambda role: mx.sym.BlockGrad(own(role))) if node["name"] in JUDGE else own
        return right(node, held, x)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    return planted_in_mxnet.turned(adapter.mxnet)


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, x):
        edge = 2 * node["padding"]
        behind = {"pad_width": (0, 0, 0, 0, 0, edge, 0, edge), "constant_value": -1e30}
        x = adapter._kept(mx.sym.pad(x, mode="constant", **behind))
        return right(dict(node, padding=0), own, x)

    return adapter.LAYERS, "max_pool", pool


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    class Dampened(mx.optimizer.SGD):
        def update_multi_precision(self, index, weight, grad, state):
            if index in self._index_update_count:
                grad = grad * 0.1
            super().update_multi_precision(index, weight, grad, state)

    def momentum(wanted):
        return Dampened(learning_rate=wanted["learning_rate"], momentum=wanted["momentum"])

    return adapter.mxnet._MOVING, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient, as Adam's `wd`."""
    return planted_in_mxnet.decaying(adapter.mxnet)
