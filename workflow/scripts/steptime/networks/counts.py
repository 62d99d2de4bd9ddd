"""Counts a specification's parameters and layers, and the operations and bytes of a training step."""

import math
from collections import Counter
from typing import Any

from shared.precisions import PRECISIONS, USUAL
from steptime.networks.layers import LAYERS
from steptime.networks.losses import LOSSES

Spec = dict[str, Any]
DOUBLE = 8


def count_parameters(spec: Spec) -> int:
    return sum(math.prod(parameter["shape"]) for parameter in spec["parameters"])


def spare_parameters(spec: Spec) -> set[int]:
    """Returns the numbers of untrained parameters that a framework may have in addition: all layers' of some kinds."""
    of_kinds: Counter[str] = Counter()
    for node in spec["nodes"]:
        of_kinds[node["op"]] += LAYERS[node["op"]].spare_parameters(node)
    sums = {0}
    for count in of_kinds.values():
        sums |= {each + count for each in sums}
    return sums


def count_layers(spec: Spec) -> int:
    """Counts layers that multiply by weights, without shortcuts."""
    return sum(
        LAYERS[node["op"]].counted and not node.get("shortcut", False) for node in spec["nodes"]
    )


def normalises(spec: Spec) -> bool:
    """Tells whether a layer takes statistics of the mini-batch, which shares of it do not have."""
    return any(LAYERS[node["op"]].normalises_by for node in spec["nodes"])


def single_values(spec: Spec, batch: int) -> str:
    """Says why a mini-batch is too small for the network's statistics; '' where it is not."""
    for node in spec["nodes"]:
        if node["op"] == "batch_norm" and batch * math.prod(node["in_shape"][1:]) == 1:
            return (
                f"the layer '{node['name']}' takes statistics of the mini-batch, of which each "
                "channel has one value"
            )
    return ""


def bytes_of_reference(spec: Spec, batch: int) -> int:
    """Returns the bytes that a step of `prove.reference` takes, about: four arrays a parameter, and all outputs."""
    given = [batch * math.prod(node["shape"]) for node in spec["nodes"]]
    return DOUBLE * (4 * count_parameters(spec) + sum(given) + 3 * max(given))


def flops_per_step(spec: Spec, batch: int) -> int:
    """Counts floating-point operations of one training step: 2 for each multiply-add of the matrix products.

    Forward, gradient of the weights and gradient of the input cost the same number each (Goodfellow et al., Deep
    Learning, 2016, section 6.5; Kaplan et al. 2020, "6 N"); the network's own input has no gradient. Element-wise work,
    pooling, normalisation and the embedding's look-up are left out.
    """
    total = 0
    for node in spec["nodes"]:
        kind = LAYERS[node["op"]]
        products = kind.multiply_adds(node)
        first = node["inputs"] == ["input"]
        total += 2 * products + (kind.inner_multiply_adds(node) if first else products)
    if spec["loss"] in ("evidence_bound", "adversarial", "mean_output"):
        total -= _spared(spec)
    return 2 * total * batch


def _spared(spec: Spec) -> int:
    """Counts multiply-adds of gradients that are not computed, since they are of the network's input."""
    given, spared = {"input"}, 0
    for node in spec["nodes"]:
        kind, sources = LAYERS[node["op"]], set(node["inputs"])
        if sources <= given and node["inputs"] != ["input"]:
            spared += kind.multiply_adds(node) - kind.inner_multiply_adds(node)
        if node["op"] == "rbm" or (sources <= given and not kind.parameters(node)):
            given.add(node["name"])
    return spared


def bytes_per_step(spec: Spec, batch: int, precision: str = USUAL) -> int:
    """Bytes that one training step reads and writes when every layer touches each of its arrays once.

    Operations divided by these bytes are the operational intensity of Williams, Waterman and Patterson, "Roofline",
    Communications of the ACM 52(4), 2009: traffic between caches and memory, here the compulsory part of it alone: a
    model, no count. A layer with P parameters, an input of x and an output of y numbers (of the whole mini-batch) moves

        forward     reads P and x, writes y
        backward    reads P, x and the gradient of y, writes the gradients of P and of x
        update      reads P and its gradient, writes P

    so 6 P + 3 x + 2 y numbers, of 4 bytes in float32. Where the input is the network's own, its gradient is not
    computed: 5 P + 2 x + 2 y. A layer without weights does not read its input again. Other kinds say in their records
    what they move. What a cache cannot hold and must be read again, what a layer keeps beside its output (the gates of
    an LSTM), and gradients that are added where a network branches are left out: true traffic is higher, true intensity
    lower.
    """
    numbers = LOSSES[spec["loss"]].moves * batch * math.prod(spec["nodes"][-1]["shape"])
    for node in spec["nodes"]:
        kind = LAYERS[node["op"]]
        weights = sum(math.prod(entry["shape"]) for entry in kind.parameters(node))
        numbers += kind.numbers_moved(node, batch, weights)
    return PRECISIONS[precision].bytes * numbers
