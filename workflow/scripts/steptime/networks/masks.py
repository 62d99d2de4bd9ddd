"""Makes the small networks by which a proof sees what a network's dropout layers drop: one for each kind of layer.

They have no hidden layers, and one class more than there are labels. Its gradient tells what the mask did to the
others' (`worker.masks`).
"""

import math
from typing import Any

from shared.masks import TWICE
from shared.narrow import SEED
from steptime.networks.layers import LAYERS
from steptime.networks.specification import specify

# At this rate, a power of two, a step leaves the scores as good as equal.
RATE = 2.0**-20
# What is seen of samples that are dropped.
DROPPED = 64
# By the number of axes of a sample.
SOURCES: dict[int, dict[str, Any]] = {
    1: {"kind": "dense", "shape": [512]},
    2: {"kind": "one_hot", "shape": [16, 32]},
    3: {"kind": "image", "shape": [4, 12, 12]},
}


def of_network(spec: dict[str, Any], batch: int) -> dict[str, dict[str, Any]]:
    """Specifications for a mini-batch by name, one for each rate and shape of what is dropped."""
    rated = [node for node in spec["nodes"] if node.get("rate")]
    dropouts = {(node["rate"], len(node["in_shape"]), node["op"]) for node in rated}
    return {
        f"{rate}-{rank}{'' if kind == 'dropout' else kind}": _network(kind, rate, rank, batch)
        for rate, rank, kind in sorted(dropouts)
    }


def _network(kind: str, rate: float, rank: int, batch: int) -> dict[str, Any]:
    labels = batch * (SOURCES[rank]["shape"][0] if rank == 2 else 1)
    layers = [
        *[{kind: {"rate": rate}}] * (1 + (rate <= TWICE)),
        *(["flatten"] if rank == 3 else []),
        {"dense": {"units": labels + 1}},
    ]
    entry = {"input": SOURCES[rank], "sizes": {}, "narrow": {}, "layers": layers}
    spec = specify("masks", {"masks": entry | {"learning_rate": RATE}})
    # Of whole samples, so many steps drop enough of them.
    drops_samples = LAYERS[kind].drops_samples
    steps = math.ceil(DROPPED / (rate * batch)) if drops_samples else 2
    return dict(spec, seed=SEED, steps=steps, drops_samples=drops_samples)
