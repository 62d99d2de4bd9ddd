"""The smallest network of a layer kind, on which its record and the lines of adapters are proven."""

from typing import Any

from steptime.networks.layers import DENSE, LAYERS, ROW
from steptime.networks.specification import specify

LEARNING_RATE = 0.05


def tiny(kind: str) -> dict[str, Any]:
    """The specification of the record's example; without one, of the layer between two dense ones."""
    source, layers = LAYERS[kind].example or (ROW, [DENSE, kind])
    entry = {"input": source, "sizes": {}, "narrow": {}, "layers": [*layers, DENSE]}
    return specify(kind, {kind: entry | {"learning_rate": LEARNING_RATE}})
