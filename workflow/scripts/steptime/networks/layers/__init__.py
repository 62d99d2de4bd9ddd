"""Layer kinds: one record for each, with all about it, in the module of its name in this folder."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steptime.networks.arrays import Array, np
from steptime.networks.records import Records

Node = dict[str, Any]
Shape = list[int]
Arrays = dict[str, Array]
Backward = Callable[[Array], tuple[list, Arrays]]
# The input and the layers of a small network.
Example = tuple[dict[str, Any], list[Any]]
# What the parameters of a layer begin with that reads from the last step to the first.
BACK = "back_"
# The option of a layer whose windows have other numbers of rows than of columns.
SIDES = "sides"

# Biases start in +-0.02, not at 0, so that a proof sees one in the wrong place.
BIAS_BOUND = 0.02
# What layers are given: word ids, what a `table` holds, or numbers of one to three axes.
FORMS = {
    "words": "word ids",
    "table": "a table",
    "row": "a row of features",
    "sequence": "a sequence (steps, features)",
    "image": "an image (channels, height, width)",
}


def same_shape(node: Node, source: Shape) -> Shape:
    """Returns the shape of a layer that changes each value on its own."""
    return list(source)


def parameter(node: Node, role: str, shape: Shape, bound: float, centre: float = 0.0) -> Node:
    """Returns a trainable parameter of a node, which starts uniform in centre +- bound.

    Weights start with variance 1/fan-in (LeCun et al. 1998, "Efficient BackProp"). No start value is a special one such
    as 0, so that the proof notices a parameter in the wrong place.
    """
    return {"name": f"{node['name']}/{role}", "shape": shape, "bound": bound, "centre": centre}


def moved_once(node: Node, batch: int, weights: int) -> int:
    """Counts the numbers that move when a step touches each array once (see `networks.bytes_per_step`)."""
    back = node["inputs"] != ["input"]
    source, result = batch * math.prod(node["in_shape"]), batch * math.prod(node["shape"])
    return (5 + back) * weights + (1 + back + bool(weights)) * source + 2 * result


def moved_by_fused(node: Node, batch: int, weights: int) -> int:
    """Counts the numbers that move for a layer that can be fused with its neighbours: only its weights."""
    return 5 * weights


def moved_by_copy(node: Node, batch: int, weights: int) -> int:
    """Counts the numbers that move for a copy, and for a copy of the gradient on the way back."""
    return 4 * batch * math.prod(node["shape"])


def kept(node: Node, rate: float, shape: tuple[int, ...]) -> Array:
    """Returns dropout's factors: 0 with probability `rate`, and 1 / (1 - rate) otherwise."""
    return (node["random"].random_sample(shape) >= rate) / (1 - rate)


def over_places(node: Node, values: Array) -> Array:
    """Sums (batch, ..., features) over all axes but the last. Where a node has `summed`, it adds up samples' parts."""
    parts = values.reshape(len(values), -1, values.shape[-1])
    if "summed" in node:
        return node["summed"](parts.sum(1), parts.shape[1])
    return parts.sum((0, 1))


def check_groups(node: Node, channels: int, which: str = "") -> None:
    """Raises ValueError where a node's groups do not divide its channels."""
    if channels % node["groups"]:
        raise ValueError(
            f"{channels} channels{which} are not so many in each of {node['groups']} groups: write a "
            "number of groups that divides them"
        )


@dataclass(frozen=True)
class Values:
    """The values that a layer's key may have, in words and as a test."""

    words: str
    hold: Callable[[Any], bool]
    is_float: bool = False


def numbers(words: str, hold: Callable[[Any], bool], *types: type) -> Values:
    """Returns the numbers of these types for which `hold` is true; `true` is not a number."""
    return Values(words, lambda value: type(value) in types and hold(value), float in types)


SIZE = numbers("a whole number of at least 1", lambda value: value >= 1, int)
ODD = numbers("an odd whole number of at least 1", lambda value: value > 0 and value % 2, int)
COUNT = numbers("a whole number of at least 0", lambda value: value >= 0, int)
SHARE = numbers("a number of at least 0 that is below 1", lambda value: 0 <= value < 1, int, float)
POSITIVE = numbers("a number above 0", lambda value: 0 < value < math.inf, int, float)
SWITCH = Values("true or false", lambda value: isinstance(value, bool))


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer. Shapes and counts are of one sample; `node` is a node of `networks.specification`."""

    # (node, {role: array}, input arrays, batch first) -> the output, and a function from the gradient of the output to
    # (gradients of the inputs, {role: gradient}). In float64, from the mathematics of the layer.
    forward: Callable[..., tuple[Array, Backward]]
    # Keys that a layer must have, those with a default, and marks that it may have.
    needs: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    # Keys that it may have and that adapters declare (`OPTIONS`), each with the smallest network that shows it.
    options: dict[str, Example] = field(default_factory=dict)
    # Keys that may be [of rows, of columns], which is the option `SIDES`.
    sided: tuple[str, ...] = ()
    # The values of those of `needs` and `options` that are no sizes.
    values: dict[str, Values] = field(default_factory=dict)
    # How many inputs it takes; None for two or more.
    inputs: int | None = 1
    # The forms (`FORMS`) that they may have, and that of the second where it has one of its own.
    takes: tuple[str, ...] = ("row", "sequence", "image")
    beside: str = ""
    # (node, shapes of the inputs) -> shape of the output; raises ValueError where they do not fit.
    shape: Callable[..., Shape] = same_shape
    # (node) -> its trainable parameters, each made by `parameter`.
    parameters: Callable[[Node], list[Node]] = lambda node: []
    # Numbers that a framework may carry besides and not train.
    spare_parameters: Callable[[Node], int] = lambda node: 0
    # Whether it multiplies by weights: a paper's number of layers counts those.
    counted: bool = False
    # Multiply-adds forward, and those of them whose input has a gradient even where it is the network's first layer.
    multiply_adds: Callable[[Node], int] = lambda node: 0
    inner_multiply_adds: Callable[[Node], int] = lambda node: 0
    # (node, mini-batch, number of its weights) -> numbers that a step reads and writes in memory.
    numbers_moved: Callable[[Node, int, int], int] = moved_once
    # What it normalises by, in words: its output is blind to the length of a weight in front of it.
    normalises_by: str = ""
    # What it drops at random, if it has a rate: single "values", whole "samples", or an attention's "shares".
    drops: str = "values"
    # (input, layers) of the smallest network that shows the kind, without the dense layer at its end. By default, the
    # layer is between two dense ones.
    example: Example | None = None

    def options_of(self, node: Node) -> list[str]:
        """Returns the options that a node has."""
        sides = [SIDES] if any(isinstance(node.get(key), list) for key in self.sided) else []
        return sides + [key for key in self.options if key in node]

    def values_of(self, key: str) -> Values:
        """Returns the values that a key may have; a default shows which."""
        if key in self.flags:
            return SWITCH
        usual = self.defaults.get(key)
        told = self.values.get(key, SIZE)
        return next((each for each in (SWITCH, SIZE, COUNT, POSITIVE) if each.hold(usual)), told)


# What examples begin with.
ROW = {"kind": "dense", "shape": [6]}
DENSE = {"dense": {"units": 5}}
# Sixteen times as large.
LARGE = [
    {"dense": {"units": 5, "name": "one"}},
    {"add": {"inputs": ["one", "one"], "name": "two"}},
    {"add": {"inputs": ["two", "two"], "name": "four"}},
    {"add": {"inputs": ["four", "four"], "name": "eight"}},
    {"add": {"inputs": ["eight", "eight"]}},
]
IMAGES = {"kind": "image", "shape": [3, 8, 8]}
CONV = {"conv": {"channels": 4, "kernel": 3, "padding": 1}}
WORDS = {"kind": "tokens", "shape": [4], "vocabulary": 11}
EMBEDDING = {"embedding": {"vocabulary": 11, "units": 6}}


def recurrent(name: str, gates: int, forward: Callable[..., tuple[Array, Backward]]) -> LayerKind:
    """Returns a recurrent kind over (steps, features), with so many gates a unit.

    Parameters are input (in, gates units), recurrent (units, gates units), bias (gates units). cuDNN's form has a
    second bias for each gate, which stays zero. With `bidirectional`, a second layer reads from the last step to the
    first, with its own parameters (`back_input` and so on); its outputs follow the first layer's (Schuster and Paliwal
    1997).
    """

    def ways(node: Node) -> list[str]:
        return ["", BACK] if node.get("bidirectional") else [""]

    def parameters(node: Node) -> list[Node]:
        features, units = node["in_shape"][-1], node["units"]
        shapes = {
            "input": ([features, gates * units], math.sqrt(3 / features)),
            "recurrent": ([units, gates * units], math.sqrt(3 / units)),
            "bias": ([gates * units], BIAS_BOUND),
        }
        return [
            parameter(node, way + role, extents, bound)
            for way in ways(node)
            for role, (extents, bound) in shapes.items()
        ]

    def multiply_adds(node: Node) -> int:
        steps, features = node["in_shape"]
        return len(ways(node)) * steps * (features + node["units"]) * gates * node["units"]

    def inner_multiply_adds(node: Node) -> int:
        """Counts those of the recurrent product, whose input is the layer's own output."""
        return len(ways(node)) * node["shape"][0] * gates * node["units"] ** 2

    def shape(node: Node, source: Shape) -> Shape:
        steps, _ = source
        return [steps, len(ways(node)) * node["units"]]

    return LayerKind(
        both_ways(forward),
        takes=("sequence",),
        needs=("units",),
        options={
            "bidirectional": (WORDS, [EMBEDDING, {name: {"units": 5, "bidirectional": True}}])
        },
        values={"bidirectional": SWITCH},
        shape=shape,
        parameters=parameters,
        spare_parameters=lambda node: len(ways(node)) * gates * node["units"],
        counted=True,
        multiply_adds=multiply_adds,
        inner_multiply_adds=inner_multiply_adds,
        example=(WORDS, [EMBEDDING, {name: {"units": 5}}]),
    )


def both_ways(forward: Callable[..., tuple[Array, Backward]]) -> Callable[..., Any]:
    """Extends a layer's `forward` to nodes that are `bidirectional`."""

    def forward_of_both(node: Node, own: Arrays, x: Array) -> tuple[Array, Backward]:
        there, of_there = forward(node, own, x)
        if not node.get("bidirectional"):
            return there, of_there
        own_back = {
            role.removeprefix(BACK): values for role, values in own.items() if role.startswith(BACK)
        }
        back, of_back = forward(node, own_back, x[:, ::-1])

        def backward(dy: Array) -> tuple[list, Arrays]:
            d_there, d_back = np.split(dy, 2, -1)
            (dx,), gradients = of_there(d_there)
            (dx_back,), gradients_back = of_back(d_back[:, ::-1])
            of_roles = {BACK + role: values for role, values in gradients_back.items()}
            return [dx + dx_back[:, ::-1]], gradients | of_roles

        return np.concatenate([there, back[:, ::-1]], -1), backward

    return forward_of_both


LAYERS = Records(__name__, __path__, "LAYER")
