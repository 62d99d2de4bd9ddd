"""Start values at which no unit in front of a ReLU is near to zero: all are on, for every sample.

At the usual start values, float32 noise turns a few signs there, and what that changes may hide a layer of lower
precision. At these, noise turns nothing but which value is the largest of a `max_pool`'s window.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.networks.layers import Arrays, Backward
from steptime.prove import golden

# The least value in front of a ReLU, as a part of the range of its channel.
ROOM = 0.1
# What moves all values of a channel.
ROLES = ("bias", "beta")


def movable(spec: dict[str, Any]) -> list[str]:
    """The biases and betas that move units in front of a ReLU, in the order of the layers."""
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])
    relus = (node["inputs"][0] for node in spec["nodes"] if node["op"] == "relu")
    return [name for name in (_moving(spec, readers, source) for source in relus) if name]


def forward(
    spec: dict[str, Any], weights: Arrays, inputs: np.ndarray
) -> tuple[Arrays, np.ndarray, dict[str, Backward]]:
    """What to add to biases and betas (channels), as float32, and from there logits and tape, as of `golden.forward`.

    `weights` are float32. How a layer carries gradients back does not hang on what is added to its outputs.
    """
    shifts: Arrays = {}
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])

    def moved(node, sources):
        name = _moving(spec, readers, node["inputs"][0]) if node["op"] == "relu" else None
        if name:
            shifts[name], sources = _moved_up(sources[0], weights[name])
        return sources

    logits, tape = golden.forward(spec, _Exact(weights), inputs, moved=moved)
    return shifts, logits, tape


class _Exact(dict):
    """Arrays by name, each as float64 when it is asked for: all at once take twice the memory."""

    def __getitem__(self, name):
        return super().__getitem__(name).astype(np.float64)


def turning(spec: dict[str, Any], moved: Arrays) -> set[str]:
    """The nodes after which noise may still turn something, so that their own gradients may leap."""
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])

    def turns(node):
        if node["op"] == "relu":
            return _moving(spec, readers, node["inputs"][0]) not in moved
        return node["op"] == "max_pool"

    return below(spec, turns)


def below(spec: dict[str, Any], turns: Callable[[dict[str, Any]], bool]) -> set[str]:
    """The nodes after which there are some of a kind."""
    found: set[str] = set()
    for node in reversed(spec["nodes"]):
        if turns(node) or node["name"] in found:
            found.update(node["inputs"])
    return found


def _moved_up(values, start):
    """What is added to the start value of each channel, and the values with what float32 keeps of it."""
    # Channels come first in images, and last in all else.
    channel = 1 if values.ndim == 4 else values.ndim - 1
    axes = tuple(axis for axis in range(values.ndim) if axis != channel)
    least, most = values.min(axes), values.max(axes)
    shift = (ROOM * (most - least) - least).astype(np.float32)
    kept = (start + shift).astype(np.float64) - start
    return shift, [values + np.expand_dims(kept, axes)]


def _moving(spec, readers, name):
    """The parameter that moves what a node gives, where nothing else reads that; or None."""
    node = next((node for node in spec["nodes"] if node["name"] == name), None)
    if node is None or readers[name] > 1:
        return None
    own = {parameter["name"] for parameter in spec["parameters"]}
    found = [f"{name}/{role}" for role in ROLES if f"{name}/{role}" in own]
    if found:
        return found[0]
    return _moving(spec, readers, node["inputs"][0]) if node["op"] == "add" else None
