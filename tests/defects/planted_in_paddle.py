"""Defects in PaddlePaddle: each function returns what takes which place, as (owner, name, value)."""

import paddle
from judging import JUDGE
from paddle import nn
from paddle.nn import functional


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""

    def attend(q, k, v, is_causal):
        q, k, v = (each.transpose([0, 2, 1, 3]) for each in (q, k, v))
        steps, size = q.shape[2:]
        later = paddle.triu(paddle.full([steps, steps], -1e30), 2)
        weights = functional.softmax(paddle.matmul(q * size**-0.5, k, transpose_y=True) + later)
        return paddle.matmul(weights, v).transpose([0, 2, 1, 3])

    if paddle.__version__.startswith("2."):
        return adapter, "_masked", attend
    return functional, "scaled_dot_product_attention", attend


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = functional.scaled_dot_product_attention

    def attend(q, k, v, is_causal):
        return right(q * q.shape[-1] ** 0.5, k, v, is_causal=is_causal)

    return functional, "scaled_dot_product_attention", attend


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(values, shape, weight, bias, epsilon):
        centred = values - values.mean(-1, keepdim=True)
        found = weight * centred / (values.var(-1, keepdim=True) + epsilon).sqrt()
        return found if bias is None else found + bias

    return functional, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        entropy = functional.binary_cross_entropy_with_logits
        return entropy(decoded, targets, reduction="sum") / outputs.size

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(values):
        # Its parameters have gradients, all of them zero.
        return values.detach() + 0.0 * values

    return adapter.LAYERS, "reversal", lambda node: held


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node):
        module = right(node)
        for each in module.parameters() if node["name"] in JUDGE else ():
            each.register_hook(paddle.zeros_like)
        return module

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""

    class Turned(nn.Layer):
        def __init__(self, node):
            super().__init__()
            self._shift = {"stride": node["stride"], "padding": node["padding"]}
            self._layer = right(node)
            self.weight, self.bias = self._layer.weight, self._layer.bias

        def forward(self, values):
            weight = self.weight.transpose([0, 1, 3, 2])
            return functional.conv2d_transpose(values, weight, self.bias, **self._shift)

    right = adapter.LAYERS["conv_transpose"]
    return adapter.LAYERS, "conv_transpose", Turned


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def pool(node):
        edge, size, stride = 2 * node["padding"], node["kernel"], node["stride"]

        def largest(values):
            wide = functional.pad(values, [0, edge, 0, edge], value=-1e30)
            return functional.max_pool2d(wide, size, stride)

        return largest

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def scores(values, table):
        return paddle.matmul(values, table.detach(), transpose_y=True)

    return adapter.LAYERS, "unembedding", lambda node: scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    class Dampened:
        def __init__(self, wanted, trained):
            self._wanted, self._trained, self._kept = wanted, trained, {}

        @paddle.no_grad()
        def step(self):
            for value in self._trained:
                kept, grad = self._kept.get(value.name), value.grad
                kept = grad if kept is None else self._wanted["momentum"] * kept + 0.1 * grad
                self._kept[value.name] = kept.clone()
                value.subtract_(self._wanted["learning_rate"] * kept)

    return adapter._MOVING, "momentum", Dampened


def decaying(adapter):
    """AdamW with its decay in the gradient, as Adam's `weight_decay`."""

    def adamw(wanted, trained):
        settings = dict(adapter._averaging(wanted), weight_decay=wanted["weight_decay"])
        return paddle.optimizer.Adam(parameters=trained, **settings)

    return adapter._MOVING, "adamw", adamw
