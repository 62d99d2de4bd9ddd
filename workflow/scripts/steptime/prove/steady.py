"""Start values at which no unit in front of a ReLU is near to zero: all are on, for every sample.

At the usual start values, float32 noise turns a few signs there, and what that changes may hide a layer of lower
precision. At these, noise turns nothing but which value is the largest of a `max_pool`'s window.
"""

from collections import Counter
from typing import Any

import numpy as np

from steptime.prove import golden

Arrays = dict[str, np.ndarray]
# The least value in front of a ReLU, as a part of the range of its channel.
ROOM = 0.1
# What moves all values of a channel.
ROLES = ("bias", "beta")


def shifts(spec: dict[str, Any], weights: Arrays, inputs: np.ndarray) -> Arrays:
    """What to add to biases and betas (channels), as float32; nothing where the network has no ReLU."""
    moved: Arrays = {}
    if not any(node["op"] == "relu" for node in spec["nodes"]):
        return moved
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])
    tokens = spec["input"]["kind"] == "tokens"
    values = {"input": inputs if tokens else np.asarray(inputs, np.float64)}
    left = Counter(readers)
    for node in spec["nodes"]:
        sources = [values[name] for name in node["inputs"]]
        if node["op"] == "relu":
            name = _moving(spec, readers, node["inputs"][0])
            if name:
                moved[name], sources = _moved_up(sources[0])
        for name in node["inputs"]:
            left[name] -= 1
            if not left[name]:
                del values[name]
        prefix = node["name"] + "/"
        own = {name[len(prefix) :]: weights[name] for name in weights if name.startswith(prefix)}
        values[node["name"]] = golden.forward_of(node["op"])(node, own, *sources)[0]
    return moved


def turning(spec: dict[str, Any], moved: Arrays) -> set[str]:
    """The nodes after which noise may still turn something, so that their own gradients may leap."""
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])
    found: set[str] = set()
    for node in reversed(spec["nodes"]):
        turns = node["op"] == "max_pool"
        if node["op"] == "relu":
            turns = _moving(spec, readers, node["inputs"][0]) not in moved
        if turns or node["name"] in found:
            found.update(node["inputs"])
    return found


def _moved_up(values):
    """What is added to each channel, and the values with it."""
    # Channels come first in images, and last in all else.
    channel = 1 if values.ndim == 4 else values.ndim - 1
    axes = tuple(axis for axis in range(values.ndim) if axis != channel)
    least, most = values.min(axes), values.max(axes)
    shift = (ROOM * (most - least) - least).astype(np.float32)
    return shift, [values + np.expand_dims(shift, axes)]


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
