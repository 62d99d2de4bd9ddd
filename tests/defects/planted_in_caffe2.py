"""Defects in Caffe2: each function returns what takes which place, as (owner, name, value)."""

import numpy as np
from judging import JUDGE

from worker.frameworks.caffe2 import layers as caffe2_layers
from worker.frameworks.caffe2 import updates as caffe2_updates


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = adapter.LAYERS["attention"]

    def attention(model, node, value):
        (steps, _), name = node["shape"], node["name"] + "/later"
        later = caffe2_layers.constant(name, np.triu(np.full((steps, steps), -1e30), 2))
        kept = caffe2_layers.unseen
        caffe2_layers.unseen = lambda model, scores, name: model.net.Add([scores, later], name)
        value = right(model, node, value)
        caffe2_layers.unseen = kept
        return value

    return adapter.LAYERS, "attention", attention


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    return caffe2_layers, "scaled", lambda model, value, name, factor: value


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(model, node, value):
        name, size = node["name"], node["shape"][-1]
        share = (size - 1) / size
        weight = caffe2_layers.own(node, "weight")
        weight = caffe2_layers.scaled(model, weight, name + "/less", share**0.5)
        bias = caffe2_layers.own(node, "bias")
        if not node["bias"]:
            bias = caffe2_layers.constant(name + "/zero", np.zeros(size))
        rule = {"axis": len(node["shape"]), "epsilon": node["epsilon"] * share}
        outputs = [name, name + "/means", name + "/deviations"]
        blobs = [value, weight, bias]
        return model.net.LayerNorm(blobs, outputs, elementwise_affine=True, **rule)[0]

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(net, scores, shape, label_shape):
        decoded = label_shape[1]
        given = net.Slice(scores, "decoded", starts=[0, 0], ends=[-1, decoded])
        entropy = net.SigmoidCrossEntropyWithLogits([given, "labels"], "missed")
        return net.AveragedLoss(net.Scale(entropy, "share", scale=decoded / shape[0]), "loss")

    return adapter._DISTANCES, "evidence_bound", missed


def _held(model, value, name):
    """What the loss depends on by gradients that are all zero."""
    held = model.net.StopGradient(value, name + "/held")
    return model.net.Add([held, model.net.Scale(value, name + "/nothing", scale=0.0)], name)


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda model, node, value: _held(model, value, node["name"])


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(model, node, value):
        name = node["name"]
        if name not in JUDGE:
            return right(model, node, value)
        own = [_held(model, name + ending, name + "/fixed" + ending) for ending in ("_w", "_b")]
        return model.net.FC([value, *own], name, axis=len(node["in_shape"]))

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns: those of a turned image, turned back."""
    right = adapter.LAYERS["conv_transpose"]

    def conv(model, node, value):
        made = right(model, node, model.net.Transpose(value, axes=[0, 1, 3, 2]))
        return model.net.Transpose(made, axes=[0, 1, 3, 2])

    return adapter.LAYERS, "conv_transpose", conv


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(model, node, value):
        edge = 2 * node["padding"]
        behind = {"pad_t": 0, "pad_l": 0, "pad_b": edge, "pad_r": edge, "value": -1e30}
        wide = model.net.PadImage(value, node["name"] + "/wide", mode="constant", **behind)
        return right(model, dict(node, padding=0), wide)

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(model, node, value, table):
        return right(model, node, value, model.net.StopGradient(table, node["name"] + "/table"))

    return adapter.LAYERS, "unembedding", scores


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, the first one but whole."""

    def momentum(net, blob, gradient, wanted):
        moves, share = blob + "_moves", caffe2_layers.constant(blob + "_share", [1.0])
        kept = caffe2_layers.constant("momentum", [wanted["momentum"]])
        net.WeightedSum([moves, kept, gradient, share], moves)
        net.WeightedSum([blob, "one", moves, "minus_rate"], blob)
        net.Copy(caffe2_layers.constant("tenth", [0.1]), share)
        return [moves]

    return caffe2_updates.RULES, "momentum", momentum


def decaying(adapter):
    """AdamW with its decay in the gradient."""
    right = caffe2_updates.RULES["adam"]

    def adamw(net, blob, gradient, wanted):
        net.WeightedSum([gradient, "one", blob, "decay"], gradient)
        wanted = {name: value for name, value in wanted.items() if name != "weight_decay"}
        return right(net, blob, gradient, wanted)

    return caffe2_updates.RULES, "adamw", adamw
