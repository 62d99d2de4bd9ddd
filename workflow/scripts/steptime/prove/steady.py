"""Start values at which no unit in front of a ReLU is near to zero: all are on, for every sample.

At the usual start values, float32 noise turns a few signs there, and what that changes may hide a layer of lower
precision. At these, noise turns nothing, nor which value is the largest of a `max_pool`'s window: where two are next to
equal, the kernel of their channel is moved a little. So is a channel in front of a hard swish: none of its values is
near to where that function's slope leaps.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from steptime.networks.layers import Arrays, Backward
from steptime.networks.windows import pad, windows
from steptime.prove import golden

# Every value in front of a ReLU is at least ROOM times the range of its channel. A range counts as LEAST_RANGE times
# the range of all channels where it is smaller: in a mini-batch of two, a channel may have hardly any range.
ROOM, LEAST_RANGE = 0.1, 0.125
# Noise may make another value of a window the largest where the two largest are nearer than NOISES times what float32
# moves a value of their channel, or than NEAR times the range of the channel.
NOISES, NEAR = 8, 2.0**-18
# A channel with more windows than these always has some that are so near. A kernel is moved by the part SHIFT of its
# size, at most so many times.
MOST_WINDOWS, SHIFT, TRIES = 2**15, 2.0**-6, 32
# Where the slope of a hard swish leaps. A channel is moved by no more than ASIDE, to the best of so many places.
LEAPS, ASIDE, PLACES = (-3.0, 3.0), 2.0**-3, 16
# What lies between a convolution and a pooling, of the same channels.
BETWEEN = ("relu", "sigmoid", "tanh", "batch_norm", "local_response_norm")
# What moves all values of a channel.
ROLES = ("bias", "beta")


def movable(spec: dict[str, Any]) -> list[str]:
    """Returns the biases and betas that move units in front of a ReLU, in the order of the layers."""
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])
    relus = (node["inputs"][0] for node in spec["nodes"] if node["op"] == "relu")
    return [name for name in (_moving(spec, readers, source) for source in relus) if name]


def forward(
    spec: dict[str, Any], weights: Arrays, inputs: np.ndarray
) -> tuple[Arrays, set[str], np.ndarray, dict[str, Backward]]:
    """Says what to add to biases, betas and channels of kernels, as float32; the poolings that noise may still turn;
    and from there logits and tape, as of `golden.forward`.

    `weights` are float32. How a layer carries gradients back does not hang on what is added to its outputs.
    """
    shifts: Arrays = {}
    apart: Arrays = {}
    turned: set[str] = set()
    random, tries = np.random.RandomState(0), Counter[str]()
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])

    def lifted(node, sources):
        way = {"relu": _upwards, "hard_swish": _aside}.get(node["op"])
        name = _moving(spec, readers, node["inputs"][0]) if way else None
        if way and name:
            shifts[name], sources = _moved(sources[0], weights[name], way)
        return sources

    kernels = {
        node["name"]: _kernel(spec, node["inputs"][0])
        for node in spec["nodes"]
        if node["op"] == "max_pool"
        and node["kernel"] != 1
        and len(inputs) * math.prod(node["shape"][1:]) <= MOST_WINDOWS
    }
    noise = _noise(
        spec, weights, inputs, {name for name in kernels if kernels[name]}, lifted, shifts
    )

    def moved(node, sources):
        if node["op"] == "max_pool":
            kernel = kernels.get(node["name"])
            near = _near(node, sources[0], noise[node["name"]]) if kernel else ()
            tries[node["name"]] += 1
            if len(near) and tries[node["name"]] <= TRIES:
                shift = apart.setdefault(kernel, np.zeros(len(weights[kernel]), np.float32))
                most = SHIFT * np.abs(weights[kernel]).max()
                shift[near] = most * random.uniform(-1, 1, len(near))
                raise _Near
            if len(near) or not kernel:
                turned.add(node["name"])
        return lifted(node, sources)

    while True:
        own = {name: shifted(values, apart.get(name)) for name, values in weights.items()}
        with suppress(_Near):
            logits, tape = golden.forward(spec, _Exact(own), inputs, moved=moved)
            return shifts | apart, turned, logits, tape


def shifted(values: np.ndarray, shift: np.ndarray | None) -> np.ndarray:
    """Values with what is added to each of their first axis."""
    return values if shift is None else (values.T + shift).T


class _Near(Exception):
    """Windows have two largest values that noise may turn, and a kernel was moved for them."""


def _noise(spec, weights, inputs, pools, lifted, shifts):
    """Says how far float32 takes the values of a channel in front of each of these poolings (channels)."""

    def keeping(kept, moved):
        def kept_first(node, sources):
            if node["name"] in pools:
                kept[node["name"]] = sources[0]
            return moved(node, sources)

        return kept_first

    exact: Arrays = {}
    rough: Arrays = {}
    if pools:
        golden.forward(spec, _Exact(weights), inputs, taped=False, moved=keeping(exact, lifted))
        start = {name: values + shifts.get(name, 0) for name, values in weights.items()}
        rounding = partial(np.asarray, dtype=np.float32)
        usual = keeping(rough, lambda node, sources: sources)
        golden.forward(spec, start, inputs, rounding, taped=False, moved=usual)
    return {name: np.abs(exact[name] - rough[name]).max((0, 2, 3)) for name in pools}


def _near(node, values, noise):
    """Returns the channels of windows whose two largest values are nearly equal, and not the same."""
    seen = windows(pad(values, node, -np.inf), node)
    two = np.partition(seen.reshape(*seen.shape[:4], -1), -2)[..., -2:]
    gaps = two[..., 1] - two[..., 0]
    least = np.maximum(NOISES * noise, NEAR * np.ptp(values, (0, 2, 3)))
    return np.flatnonzero(((gaps > 0) & (gaps < least[:, None, None])).any((0, 2, 3)))


def _kernel(spec, name):
    """Returns the kernel of the convolution whose channels a node has; or None."""
    node = next((node for node in spec["nodes"] if node["name"] == name), None)
    if node and node["op"] in BETWEEN:
        return _kernel(spec, node["inputs"][0])
    return f"{name}/weight" if node and node["op"] == "conv" else None


class _Exact(dict):
    """Arrays by name, each as float64 when it is asked for: all at once take twice the memory."""

    def __getitem__(self, name):
        return super().__getitem__(name).astype(np.float64)


def turning(spec: dict[str, Any], moved: Arrays, pools: set[str]) -> set[str]:
    """Returns the nodes after which noise may still turn something, so that their own gradients may leap."""
    readers = Counter(name for node in spec["nodes"] for name in node["inputs"])

    def turns(node):
        if node["op"] == "relu":
            return _moving(spec, readers, node["inputs"][0]) not in moved
        return node["name"] in pools

    return below(spec, turns)


def below(spec: dict[str, Any], turns: Callable[[dict[str, Any]], bool]) -> set[str]:
    """Returns the nodes after which there are some of a kind."""
    found: set[str] = set()
    for node in reversed(spec["nodes"]):
        if turns(node) or node["name"] in found:
            found.update(node["inputs"])
    return found


def _moved(values, start, way):
    """Says what is added to the start value of each channel, and the values with what float32 keeps of it."""
    # Channels come first in images, and last in all else.
    channel = 1 if values.ndim == 4 else values.ndim - 1
    axes = tuple(axis for axis in range(values.ndim) if axis != channel)
    shift = way(values, axes).astype(np.float32)
    kept = (start + shift).astype(np.float64) - start
    return shift, [values + np.expand_dims(kept, axes)]


def _upwards(values, axes):
    """Says by what all values of each channel are well above zero."""
    least, most = values.min(axes), values.max(axes)
    return ROOM * np.maximum(most - least, LEAST_RANGE * np.ptp(values)) - least


def _aside(values, axes):
    """Says by what no value of each channel is near to one of LEAPS."""
    tried = np.linspace(0, ASIDE, PLACES)
    rooms = [
        np.min([np.abs(values + shift - leap).min(axes) for leap in LEAPS], 0) for shift in tried
    ]
    return tried[np.argmax(rooms, 0)]


def _moving(spec, readers, name):
    """Returns the parameter that moves what a node gives, where nothing else reads that; or None."""
    node = next((node for node in spec["nodes"] if node["name"] == name), None)
    if node is None or readers[name] > 1:
        return None
    own = {parameter["name"] for parameter in spec["parameters"]}
    found = [f"{name}/{role}" for role in ROLES if f"{name}/{role}" in own]
    if found:
        return found[0]
    return _moving(spec, readers, node["inputs"][0]) if node["op"] == "add" else None
