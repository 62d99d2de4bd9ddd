"""A dense layer whose weight starts uniform within +-`bound`, whatever its size (Wünsche 2018, section III-A)."""

from dataclasses import replace

from steptime.networks.layers import POSITIVE, parameter
from steptime.networks.layers.dense import LAYER as DENSE


def parameters(node):
    weight, *others = DENSE.parameters(node)
    return [parameter(node, "weight", weight["shape"], node["bound"]), *others]


LAYER = replace(
    DENSE,
    needs=("units", "bound"),
    values={"bound": POSITIVE},
    parameters=parameters,
    example=({"kind": "dense", "shape": [6]}, [{"dense_within": {"units": 4, "bound": 0.5}}]),
)
