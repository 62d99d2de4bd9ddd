"""The smallest network of a layer kind, on which its record and the lines of adapters are proven."""

from typing import Any

from steptime.networks.layers import LAYERS
from steptime.networks.specification import specify

FEATURES = {"kind": "dense", "shape": [6]}
END = {"dense": {"units": 5}}
LEARNING_RATE = 0.05


def tiny(kind: str) -> dict[str, Any]:
    """The specification of the record's example; without one, of the layer between two dense ones."""
    source, layers = LAYERS[kind].example or (FEATURES, [END, kind])
    entry = {"input": source, "sizes": {}, "narrow": {}, "layers": [*layers, END]}
    return specify(kind, {kind: entry | {"learning_rate": LEARNING_RATE}})
