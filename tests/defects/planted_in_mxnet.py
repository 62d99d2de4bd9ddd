"""Defects in MXNet: each function returns what takes which place, as (owner, name, value)."""

import mxnet as mx
import numpy as np
from judging import JUDGE


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = adapter._fixed

    def fixed(node):
        arrays = right(node)
        if node["op"] == "attention" and arrays:
            steps = node["shape"][0]
            later = np.triu(np.full((1, steps, steps), -1e30, np.float32), 2)
            arrays = {node["name"] + "/mask": adapter.array_of(later)}
        return arrays

    return adapter, "_fixed", fixed


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attend(operators, node, own, x):
        size = node["shape"][-1] // node["heads"]
        # The queries of a head come first.
        x = operators.reshape(x, shape=(0, 0, node["heads"], 3, size))
        queries = size**0.5 * operators.slice_axis(x, axis=3, begin=0, end=1)
        x = operators.concat(queries, operators.slice_axis(x, axis=3, begin=1, end=3), dim=3)
        return right(operators, node, own, operators.reshape(x, shape=(0, 0, -1)))

    return adapter.LAYERS, "attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(operators, node, own, x):
        centred = operators.broadcast_sub(x, operators.mean(x, axis=-1, keepdims=True))
        squares = operators.sum(operators.square(centred), axis=-1, keepdims=True)
        scale = operators.rsqrt(squares / (node["shape"][-1] - 1) + node["epsilon"])
        weight = adapter._wide(operators, node, own("weight"))
        normal = operators.broadcast_mul(operators.broadcast_mul(centred, scale), weight)
        if not node["bias"]:
            return normal
        return operators.broadcast_add(normal, adapter._wide(operators, node, own("bias")))

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(operators, layers, spec, variable):
        outputs = adapter.logits(operators, layers, spec, variable)
        (given,) = spec["nodes"][-1]["shape"]
        decoded = 2 * spec["input"]["shape"][0] - given
        decoded = operators.slice_axis(outputs, axis=1, begin=0, end=decoded)
        entropies = adapter.entropy(operators, decoded, variable("labels"))
        return operators.mean(operators.sum(entropies, axis=1)) / given

    return adapter, "_evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda operators, node, own, x: operators.BlockGrad(x)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(operators, node, own, x):
        held = (lambda role: operators.BlockGrad(own(role))) if node["name"] in JUDGE else own
        return right(operators, node, held, x)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    right = adapter.LAYERS["conv_transpose"]

    def convolve(operators, node, own, x):
        def other(role):
            return operators.swapaxes(own(role), 2, 3) if role == "weight" else own(role)

        return right(operators, node, other, x)

    return adapter.LAYERS, "conv_transpose", convolve


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(operators, node, own, x):
        edge = 2 * node["padding"]
        behind = {"pad_width": (0, 0, 0, 0, 0, edge, 0, edge), "constant_value": -1e30}
        x = operators.pad(x, mode="constant", **behind)
        return right(operators, dict(node, padding=0), own, x)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(operators, node, own, x, table):
        return right(operators, node, own, x, operators.BlockGrad(table))

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    class Dampened(mx.optimizer.SGD):
        def update_multi_precision(self, index, weight, grad, state):
            # Of several parameters at a time.
            if index[0] in self._index_update_count:
                grad = [values * 0.1 for values in grad]
            super().update_multi_precision(index, weight, grad, state)

    def momentum(wanted):
        return Dampened(learning_rate=wanted["learning_rate"], momentum=wanted["momentum"])

    return adapter._MOVING, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient, as Adam's `wd`."""

    def adamw(wanted):
        made = adapter._Adam(dict(wanted, weight_decay=0.0))
        made.wd = wanted["weight_decay"]
        return made

    return adapter._MOVING, "adamw", adamw
