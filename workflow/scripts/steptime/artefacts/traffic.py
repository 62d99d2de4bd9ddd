"""How many bytes a training step moves through memory at the least, from the specification: a model, no count."""

import math
from typing import Any

FLOAT = 4
# Shape-preserving layers that a good implementation computes where their input is made or read.
FUSED = ("relu", "sigmoid", "batch_norm", "flatten")


def bytes_per_step(spec: dict[str, Any], batch: int) -> int:
    """Bytes that one training step in float32 reads and writes when every layer touches each of its arrays once.

    Operations divided by these bytes are the operational intensity of Williams, Waterman and Patterson, "Roofline",
    Communications of the ACM 52(4), 2009: traffic between caches and memory, here the compulsory part of it alone. A
    layer with P parameters, an input of x and an output of y numbers (of the whole mini-batch) moves

        forward     reads P and x, writes y
        backward    reads P, x and the gradient of y, writes the gradients of P and of x
        update      reads P and its gradient, writes P

    so 6 P + 3 x + 2 y numbers of 4 bytes. Where the input is the network's own, its gradient is not computed: 5 P +
    2 x + 2 y. A layer without weights does not read its input again; FUSED ones move nothing, `add` reads its second
    operand, the loss reads the logits and writes their gradient. An embedding touches the rows of its tokens only. What
    a cache cannot hold and must be read again, what a layer keeps beside its output (the gates of an LSTM), and
    gradients that are added where a network branches are left out: true traffic is higher, true intensity lower.
    """
    weights = {node["name"]: 0 for node in spec["nodes"]}
    for parameter in spec["parameters"]:
        weights[parameter["name"].split("/")[0]] += math.prod(parameter["shape"])
    numbers = 2 * batch * math.prod(spec["nodes"][-1]["shape"])
    for node in spec["nodes"]:
        first = node["inputs"] == ["input"]
        count, source, result = (
            weights[node["name"]],
            batch * math.prod(node["in_shape"]),
            batch * math.prod(node["shape"]),
        )
        if node["op"] == "embedding":
            rows = min(node["vocabulary"], source) * node["units"]
            # Rows: read, their gradient written and read, read and written. Tokens: read in both directions.
            numbers += 5 * rows + 2 * source + 2 * result
        elif node["op"] == "add":
            numbers += source
        elif count and node["op"] not in FUSED:
            numbers += (5 if first else 6) * count + (2 if first else 3) * source + 2 * result
        elif node["op"] in FUSED:
            numbers += 5 * count
        else:
            numbers += (1 if first else 2) * source + 2 * result
    return FLOAT * numbers
