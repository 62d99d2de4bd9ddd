"""The product of two inputs of the same shape, value by value, as in gates."""

from dataclasses import replace

from steptime.networks.layers.add import LAYER as ADD


def forward(node, own, first, second):
    return first * second, lambda dy: ([dy * second, dy * first], {})


GATE = [{"dense": {"units": 5, "name": "one"}}, {"sigmoid": {"name": "gate"}}]

LAYER = replace(
    ADD,
    forward=forward,
    example=({"kind": "dense", "shape": [6]}, [*GATE, {"multiply": {"inputs": ["one", "gate"]}}]),
)
