"""Defects of networks of words and patches: attention, norms, GELU, and tables that layers share."""

import copy

import numpy as np
from defects.planting import CATALOGUE, changed, replacing
from defects.stand_in import RIGHT, adapter

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
    return {kind: lambda node, own, x: RIGHT[kind](dict(node, epsilon=epsilon), own, x)}


def unbiased(node, own, x):
    """Layer normalisation by the variance over n - 1."""
    share = (x.shape[-1] - 1) / x.shape[-1]
    scale = np.sqrt(share)
    node = dict(node, epsilon=share * node["epsilon"])
    y, backward = RIGHT["layer_norm"](node, dict(own, weight=scale * own["weight"]), x)

    def wrong(dy):
        dx, gradients = backward(dy)
        return dx, dict(gradients, weight=scale * gradients["weight"])

    return y, wrong


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


# {defect: (network, adapter, words of the refusal)}
PLANTED = {
    "no causal mask": (
        "gpt-small",
        adapter(replacing(attention=seeing(None))),
        "the first loss is",
    ),
    "mask off by one, with the next step": (
        "gpt2",
        adapter(replacing(attention=seeing(1))),
        "the first loss is",
    ),
    "no division by the root of a head's units": (
        "vit-tiny",
        adapter(replacing(attention=unscaled)),
        "the first loss is",
    ),
    "pre-norm for post-norm": (
        "bert-base",
        adapter(mutate=changed("bert-base", layers=normed_before())),
        "the first loss is",
    ),
    "an epsilon of a tenth": (
        "gpt-small",
        adapter(replacing(**with_epsilon("layer_norm", 1e-6))),
        "the first loss is",
    ),
    "an epsilon of Keras's layer": (
        "vit-tiny",
        adapter(replacing(**with_epsilon("layer_norm", 1e-3))),
        "the first loss is",
    ),
    "another epsilon of RMSNorm": (
        "gpt-small-rms",
        adapter(replacing(**with_epsilon("rms_norm", 1e-6))),
        "the gradient of positions1/weight",
    ),
    "GELU by tanh": ("vit-tiny", adapter(replacing(gelu=RIGHT["gelu_tanh"])), "the first loss is"),
    "GELU not by tanh": (
        "gpt2",
        adapter(replacing(gelu_tanh=RIGHT["gelu"])),
        "the update of layer_norm",
    ),
    "unbiased variance": (
        "gpt-small",
        adapter(replacing(layer_norm=unbiased)),
        "the first loss is",
    ),
    "untied weights": (
        "gpt-small",
        adapter(mutate=changed("gpt-small", layers=untied())),
        "7,296 in the framework",
    ),
    "no gradient through one of two ties": (
        "gpt-small",
        adapter(replacing(unembedding=half_tied)),
        "the gradient of table1/weight",
    ),
}
