"""Defects in PyTorch: each function returns what takes which place, as (owner, name, value)."""

import torch
from judging import JUDGE


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = torch.Tensor.triu
    return torch.Tensor, "triu", lambda values, first: right(values, first + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.LAYERS["attention"]

    def attention(node, mode):
        inner = right(node, mode)

        def attend(values):
            units = values.shape[-1] // 3
            # The queries come first.
            scale = torch.ones(3 * units)
            scale[:units] = (units // node["heads"]) ** 0.5
            return inner(values * scale)

        return adapter._Call(attend)

    return adapter.LAYERS, "attention", attention


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(values, shape, weight, bias, epsilon):
        centred = values - values.mean(-1, keepdim=True)
        found = weight * centred / (values.var(-1, keepdim=True) + epsilon).sqrt()
        return found if bias is None else found + bias

    return adapter.functional, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        share = decoded.shape[1] / outputs.shape[1]
        entropy = adapter.functional.binary_cross_entropy_with_logits
        return share * entropy(decoded, targets) + 0.0 * outputs.sum()

    return adapter.LOSSES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(values):
        # Its parameters have gradients, all of them zero.
        return values.detach() + 0.0 * values

    return adapter.LAYERS, "reversal", lambda node, _: adapter._Call(held)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    class Held(adapter._Linear):
        def forward(self, values):
            # Its parameters have gradients, all of them zero.
            held = [each.detach() + 0.0 * each for each in (self.weight, self.bias)]
            return adapter.functional.linear(values, *held)

    def dense(node, mode):
        held = node["name"] in JUDGE
        return Held(node["in_shape"][-1], node["units"]) if held else right(node, mode)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""

    class Turned(adapter._ConvTranspose2d):
        def forward(self, values):
            weight = self.weight.transpose(2, 3)
            return adapter.functional.conv_transpose2d(
                *(values, weight, self.bias, self.stride, self.padding)
            )

    return adapter, "_ConvTranspose2d", Turned


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def pool(node, _):
        edge, size, stride = 2 * node["padding"], node["kernel"], node["stride"]

        def largest(values):
            wide = adapter.functional.pad(values, (0, edge, 0, edge), value=float("-inf"))
            return adapter.functional.max_pool2d(wide, size, stride)

        return adapter._Call(largest)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def scores(values, table):
        return adapter.functional.linear(values, table.detach())

    return adapter.LAYERS, "unembedding", lambda node, _: adapter._Call(scores)


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""

    def momentum(parameters, wanted):
        rate = wanted["learning_rate"]
        return torch.optim.SGD(parameters, lr=rate, momentum=wanted["momentum"], dampening=0.9)

    return adapter._MOVING, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient, as Adam's `weight_decay`."""

    def adamw(parameters, wanted):
        settings = adapter._averaging(wanted)
        return torch.optim.Adam(parameters, weight_decay=wanted["weight_decay"], **settings)

    return adapter._MOVING, "adamw", adamw
