"""Defects of networks of words and patches: attention, norms, GELU, and tables that layers share."""

import copy

import numpy as np
from defects.planting import CATALOGUE, other, wrong
from defects.stand_in import RIGHT

from steptime.networks.layers import attention


def seeing(offset):
    """Attention in which a step sees those up to so many behind it, and no mask where it is None."""

    def attend(node, own, x):
        if offset is None:
            return RIGHT["attention"]({key: node[key] for key in node if key != "causal"}, own, x)
        rightful, attention.seen = attention.seen, lambda steps: np.tri(steps, k=offset, dtype=bool)
        try:
            return RIGHT["attention"](node, own, x)
        finally:
            attention.seen = rightful

    return attend


def unscaled(node, own, x):
    """Attention without its division by the root of the units of a head: queries are as much longer."""
    queries = x.shape[-1] // 3
    scale = np.ones(x.shape[-1])
    scale[:queries] = np.sqrt(queries / node["heads"])
    y, backward = RIGHT["attention"](node, own, x * scale)
    return y, lambda dy: ([backward(dy)[0][0] * scale], {})


def with_epsilon(kind, epsilon):
    """A normalisation with another epsilon."""
    return lambda node, own, x: RIGHT[kind](dict(node, epsilon=epsilon), own, x)


def unbiased(node, own, x):
    """Layer normalisation by the variance over n - 1."""
    share = (x.shape[-1] - 1) / x.shape[-1]
    scale = np.sqrt(share)
    node = dict(node, epsilon=share * node["epsilon"])
    y, backward = RIGHT["layer_norm"](node, dict(own, weight=scale * own["weight"]), x)

    def back(dy):
        dx, gradients = backward(dy)
        return dx, dict(gradients, weight=scale * gradients["weight"])

    return y, back


def normed_before(network="bert-base"):
    """BERT's layers with each normalisation in front of what it stands behind."""
    layers = copy.deepcopy(CATALOGUE[network]["layers"])
    block = next(layer for layer in layers if "repeat" in layer)
    block["layers"] = [
        {"residual": {"layers": [norm, *residual["residual"]["layers"]]}}
        for residual, norm in zip(block["layers"][::2], block["layers"][1::2], strict=True)
    ]
    return layers


def untied(network="gpt-small"):
    """GPT with a matrix of its own for the scores of words."""
    last = {"dense": {"units": "vocabulary", "bias": False}}
    return [*CATALOGUE[network]["layers"][:-1], last]


def half_tied(node, own, x, table):
    """Scores by the table, but no gradient of theirs reaches it."""
    y, backward = RIGHT["unembedding"](node, own, x, table)
    return y, lambda dy: ([backward(dy)[0][0], 0.0], {})


PLANTED = {
    "mask off by one, with the next step": wrong("gpt2", attention=seeing(1)),
    "no division by the root of a head's units": wrong("vit-tiny", attention=unscaled),
    "pre-norm for post-norm": other("bert-base", layers=normed_before()),
    "an epsilon of a tenth": wrong("gpt-small", layer_norm=with_epsilon("layer_norm", 1e-6)),
    "another epsilon of RMSNorm": wrong(
        *("gpt-small-rms", "the gradient of positions1/weight"),
        rms_norm=with_epsilon("rms_norm", 1e-6),
    ),
    "GELU not by tanh": wrong("gpt2", "the update of layer_norm", gelu_tanh=RIGHT["gelu"]),
    "unbiased variance": wrong("gpt-small", layer_norm=unbiased),
    "untied weights": other("gpt-small", "7,296 in the framework", layers=untied()),
    "no gradient through one of two ties": wrong(
        "gpt-small", "the gradient of table1/weight", unembedding=half_tied
    ),
}
