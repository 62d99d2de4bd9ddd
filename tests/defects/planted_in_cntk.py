"""Defects in CNTK: each function returns what takes which place, as (owner, name, value).

Its networks with attention have another GELU than those that attention's defects are planted in.
"""

import cntk
from judging import JUDGE


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        (width,), (decoded,) = outputs.shape, targets.shape
        decoded = cntk.slice(outputs, 0, 0, decoded)
        return cntk.reduce_sum(adapter._missed(decoded, targets)) * (1.0 / width)

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda node, own, value: _held(value)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, own, value):
        if node["name"] in JUDGE:
            own = {role: _held(values) for role, values in own.items()}
        return right(node, own, value)

    return adapter.LAYERS, "dense", dense


def _held(values):
    """What the loss depends on by gradients that are all zero."""
    return cntk.stop_gradient(values) + 0.0 * values


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns: those of a turned image, turned back."""
    right = adapter.LAYERS["conv_transpose"]

    def over(values):
        return cntk.swapaxes(values, 1, 2)

    def convolve(node, own, value):
        return over(right(node, own, over(value)))

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, own, value):
        behind = (0, 2 * node["padding"])
        wide = cntk.pad(value, [(0, 0), behind, behind], cntk.CONSTANT_PAD, -1e30)
        return right(dict(node, padding=0), own, wide)

    return adapter.LAYERS, "max_pool", pool


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""

    def momentum(wanted, parameters, labels):
        rate = cntk.parameter((), init=wanted["learning_rate"])

        def move(parameter, gradient):
            kept, taken = cntk.constant(0, parameter.shape), cntk.constant(0, ())
            first = cntk.equal(cntk.assign(taken, taken + 1.0), 1.0)
            share = (0.1 + 0.9 * first) / labels
            moves = cntk.assign(kept, wanted["momentum"] * kept + share * gradient)
            return cntk.assign(parameter, parameter - rate * moves)

        def update(parameters, gradients):
            return cntk.combine(list(map(move, parameters, gradients)))

        return cntk.universal(update, parameters), None

    return adapter.LEARNERS, "momentum", momentum
