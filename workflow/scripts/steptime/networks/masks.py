"""Makes the small networks by which a proof sees what a network's dropout drops: one for each kind of layer.

They have no hidden layers, and one class more than there are labels. The gradient of that class shows what the mask did
to the others' (`worker.masks`).
"""

import math
from typing import Any

from shared.masks import COPIES, TWICE
from shared.narrow import SEED
from shared.specification import rate_of
from steptime.networks.layers import LAYERS
from steptime.networks.specification import specify

# At this rate, a power of two, a step leaves the scores as good as equal.
RATE = 2.0**-20
# What is seen of samples that are dropped, or of shares.
DROPPED = 64
# By the number of axes of a sample.
SOURCES: dict[int, dict[str, Any]] = {
    1: {"kind": "dense", "shape": [512]},
    2: {"kind": "one_hot", "shape": [16, 32]},
    3: {"kind": "image", "shape": [4, 12, 12]},
}
# The sizes of an attention, and its options for which a framework may have another way.
HEADS, STEPS, ROTARY = 2, 16, 10000.0
WAYS = ("causal", "kv_heads", "rotary")


def of_network(spec: dict[str, Any], batch: int) -> dict[str, dict[str, Any]]:
    """Returns specifications for a mini-batch by name, one for each rate and shape of what is dropped."""
    found = {}
    for node in spec["nodes"]:
        rate, kind, rank = rate_of(node), node["op"], len(node["in_shape"])
        if rate and LAYERS[kind].drops == "shares":
            ways = [key for key in WAYS if node.get(key)]
            found["-".join([str(rate), "shares", *ways])] = _of_shares(kind, rate, ways, batch)
        elif rate:
            name = f"{rate}-{rank}{'' if kind == 'dropout' else kind}"
            found[name] = _of_values(kind, rate, rank, batch)
    return dict(sorted(found.items()))


def count(node: dict[str, Any]) -> int:
    """Counts the values or shares of a sample that a node may drop; 1 where it drops the whole sample."""
    drops, steps = LAYERS[node["op"]].drops, node["shape"][0]
    if drops == "shares":
        pairs = steps * (steps + 1) // 2 if node.get("causal") else steps**2
        return node["heads"] * pairs
    return 1 if drops == "samples" else math.prod(node["shape"])


def _of_values(kind: str, rate: float, rank: int, batch: int) -> dict[str, Any]:
    """Returns the network of a layer that drops values or samples, twice where it leaves enough of them."""
    labels = batch * (SOURCES[rank]["shape"][0] if rank == 2 else 1)
    layers = [
        *[{kind: {"rate": rate}}] * (1 + (rate <= TWICE)),
        *(["flatten"] if rank == 3 else []),
        {"dense": {"units": labels + 1}},
    ]
    # With whole samples, as many steps as drop enough of them.
    steps = math.ceil(DROPPED / (rate * batch)) if LAYERS[kind].drops == "samples" else 2
    return _network(SOURCES[rank], layers, steps)


def _of_shares(kind: str, rate: float, ways: list[str], batch: int) -> dict[str, Any]:
    """Returns the network of two attentions side by side, whose heads have each step's value `COPIES` times."""
    pairs = 1 if "kv_heads" in ways else HEADS
    own = {"causal": True, "kv_heads": pairs, "rotary": ROTARY}
    options = {key: own[key] for key in ways} | {"heads": HEADS, "dropout": rate}
    source = {"kind": "dense", "shape": [STEPS, (HEADS + 2 * pairs) * COPIES * STEPS]}
    layers: list[Any] = []
    for name in ("one", "two"):
        layers.append({kind: options | {"inputs": ["input"]}})
        layers.append({"dense": {"units": batch * STEPS + 1, "name": name}})
    layers.append({"add": {"inputs": ["one", "two"]}})
    dropped = rate * batch * HEADS * STEPS * (STEPS + 1) / 2
    return _network(source, layers, max(2, math.ceil(DROPPED / dropped)))


def _network(source: dict[str, Any], layers: list[Any], steps: int) -> dict[str, Any]:
    entry = {"input": source, "sizes": {}, "narrow": {}, "layers": layers}
    spec = specify("masks", {"masks": entry | {"learning_rate": RATE}})
    drops = LAYERS[spec["nodes"][0]["op"]].drops
    return dict(spec, seed=SEED, steps=steps, drops=drops)
