"""Maps a graph of operators, as `worker/frameworks/torch/export.py` writes it, to our layers.

Each layer keeps the path of its module, and where its parameters come from. Operators without a layer kind are kept,
too, so that all of them are reported at once.
"""

from dataclasses import dataclass, replace
from typing import Any

from steptime.imported.found import Parameter, Partial
from steptime.imported.sequences import Sequences
from steptime.imported.shapes import Shapes
from steptime.imported.views import Misfit, Value, fresh, shown, sizes

Graph = dict[str, Any]
# What does nothing to a value but for what a view says.
NOTHING = {
    "contiguous", "clone", "alias", "detach", "to", "_to_copy", "type_as", "lift_fresh_copy", "_assert_tensor_metadata",
}  # fmt: skip
POINTWISE = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "silu": "silu", "relu6": "relu6",
    "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid", "elu": "elu", "softplus": "softplus",
}  # fmt: skip
# Operators that may come between an input of channels and steps and the convolution that makes it an image of one row.
BEFORE_CONV1D = NOTHING | POINTWISE.keys() | {
    "unsqueeze", "view", "reshape", "dropout", "pad", "constant_pad_nd", "batch_norm", "group_norm",
    "max_pool1d", "avg_pool1d",
}  # fmt: skip
# What to write in the module in place of an operator, or of what it has.
NEAREST = {
    "hardtanh": "relu6", "selu": "elu", "mish": "silu", "prelu": "leaky_relu",
    "softmax": "leave it out: the loss has it", "log_softmax": "leave it out: the loss has it",
    "attention": "scaled_dot_product_attention (nn.MultiheadAttention: need_weights=False)",
    "bmm": "scaled_dot_product_attention", "matmul": "scaled_dot_product_attention, or linear",
    "with align_corners=True": "align_corners=False", "upsample_bicubic2d": "upsample (bilinear)",
    "a sequence that is convolved": "an input of batch, channels and steps that is not transposed",
    "layer_norm": "layer_norm with weight and bias of the last axis", "instance_norm": "group_norm",
    "clamp": "relu6", "pad": "the padding of the layer behind it", "zeros_like": "nothing: states begin at zero",
    "with padding_idx": "embedding without it",
    "a constant factor": "weights that have the factor",
    "a constant that is added": "a bias that has it, or an nn.Embedding of positions",
    "its input is no image of ours": "an input of batch, channels, rows and columns",
    "ids that are not the input": "one embedding, of the input",
    "ids that are no positions": "torch.arange of the steps; where all are alike, a bias",
    "steps in another order": "batch_first=True, or a transpose in front of it and behind it",
    "with a mask that is not causal": "is_causal=True, or no mask",
}  # fmt: skip
# The operators of a written-out attention, besides its softmax.
PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum"}


@dataclass
class Refusal:
    """An operator that has no layer kind here, and why."""

    operator: str
    why: str
    path: str


class Mapper(Sequences, Shapes):
    """Turns nodes of a graph into layers, in order."""

    def __init__(self, graph: Graph, vocabulary: int) -> None:
        super().__init__()
        self.graph, self.vocabulary = graph, vocabulary
        self.refusals: list[Refusal] = []
        self.values: dict[str, Any] = {}
        self.output = ""
        # The shape of a sample, as our network takes it.
        self.input_shape: list[int] = []
        weights = {node["name"]: node.get("parameter", "") for node in graph["nodes"]}
        for node in graph["nodes"]:
            if node["op"] in ("linear", "embedding"):
                for name in map(weights.__getitem__, _names(node["args"])):
                    self.uses[name] = self.uses.get(name, 0) + 1

    def map(self) -> None:
        """Maps every node; keeps refusals, but not those that follow from others."""
        known = {node["name"]: node for node in self.graph["nodes"]}
        for node in self.graph["nodes"]:
            self.path = node["path"]
            name, op = node["name"], node["op"]
            if op == "parameter":
                self.values[name] = Parameter(node["parameter"], node["shape"])
            elif op == "input":
                self.values[name] = self.entered(node)
            elif op == "constant":
                self.values[name] = node
            elif op == "output":
                self.finish(node)
            elif any(self.values.get(each) is None and each in known for each in _names(node)):
                # Something before it was refused already.
                self.values[name] = self.stand_in(node)
            else:
                self.values[name] = self.one(node)
        self.drop_unused()
        self.refusals = gathered(self.refusals)

    def entered(self, node: Graph) -> Value:
        """Returns the input; for a conv1d, an image of one row, made of (channels, steps) or of steps alone."""
        value = fresh("input", node["shape"])
        if len(node["shape"]) in (2, 3) and self.is_convolved(node["name"]):
            batch, *channels, steps = value.axes
            value = replace(value, axes=(batch, *(channels or [()]), (), steps))
        self.input_shape = [sizes(atoms) for atoms in value.axes[1:]]
        return value

    def is_convolved(self, name: str) -> bool:
        """Tells whether a conv1d reads a value, directly or after operators that keep its axes in place."""
        seen = {name}
        for node in self.graph["nodes"]:
            if seen.isdisjoint(_names(node.get("args", []))[:1]):
                continue
            if node["op"] == "conv1d":
                return True
            if node["op"].rstrip("_") in BEFORE_CONV1D:
                seen.add(node["name"])
        return False

    def one(self, node: Graph) -> Any:
        """Returns the output of a node; a stand-in where it is refused."""
        op = node["op"]
        plain = op.rstrip("_") if op.endswith("_") else op
        function = getattr(self, "op_" + plain, None)
        args = [self.given(each) for each in node["args"]]
        kwargs = {key: self.given(each) for key, each in node["kwargs"].items()}
        try:
            if plain in NOTHING:
                result = args[0]
            elif plain in POINTWISE and len(args) == 1:
                result = self.pointwise(args[0], POINTWISE[plain], {})
            elif function is None:
                raise Misfit("")
            else:
                self.shape = node["shape"]
                result = function(*args, **kwargs)
        except Misfit as error:
            self.refusals.append(Refusal(plain, str(error), node["path"]))
            return self.stand_in(node)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            self.refusals.append(Refusal(plain, "", node["path"]))
            return self.stand_in(node)
        if op.endswith("_") and node["args"]:
            self.values[node["args"][0]["node"]] = result
        return result

    def stand_in(self, node: Graph) -> Any:
        """Returns a stand-in for a refused node's output, so that the nodes after it are looked at as well."""
        return fresh("refused", node["shape"]) if node["shape"] else None

    def given(self, value: Any) -> Any:
        if isinstance(value, dict) and "node" in value:
            return self.values[value["node"]]
        if isinstance(value, list):
            return [self.given(each) for each in value]
        return value

    def finish(self, node: Graph) -> None:
        first = self.given(node["args"])
        while isinstance(first, list):
            first = first[0]
        if isinstance(first, Partial):
            self.refusals.append(Refusal("output", "a constant factor", ""))
        if not isinstance(first, Value):
            return
        try:
            value = self.canonical(first, any_order=True)
            if (
                value.layer != "refused"
                and len(value.dims) == len(value.axes)
                and shown(value.dims) != shown(value.axes)
            ):
                raise Misfit("its output has its axes in another order")
            self.output = value.layer
        except Misfit as error:
            self.refusals.append(Refusal("output", str(error), ""))

    def drop_unused(self) -> None:
        """Removes layers whose output nothing takes, such as a linear that became a part of an attention."""
        used = {self.output}
        for layer in reversed(self.layers):
            if layer.name in used:
                used.update(layer.inputs)
        self.layers = [layer for layer in self.layers if layer.name in used]


def gathered(refusals: list[Refusal]) -> list[Refusal]:
    """Returns refusals in order; those of an attention that is written out in a module become one."""
    products = {each.path for each in refusals if each.operator in PRODUCTS}
    softmax = {each.path for each in refusals if each.operator == "softmax"}
    own = {path: path for path in products & softmax}
    # As a module of its own.
    own |= {path: parent for path in softmax if (parent := path.rpartition(".")[0]) in products}
    own |= {parent: parent for parent in own.values()}
    kept: dict[Any, Refusal] = {}
    for number, each in enumerate(refusals):
        if each.path not in own:
            kept[number] = each
            continue
        path = own[each.path]
        operators = {other.operator for other in refusals if own.get(other.path) == path}
        parts = {"index": "relative positions", "roll": "windows"}
        why = " and ".join(part for operator, part in parts.items() if operator in operators)
        kept.setdefault(path, Refusal("attention", f"with {why}" if why else "written out", path))
    return [*kept.values()]


def sentences(name: str, refusals: list[Refusal]) -> list[str]:
    """Returns all refusals of a module, one sentence for each operator and reason."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.operator, refusal.why), []).append(refusal)
    said = []
    for (operator, why), own in groups.items():
        times = f"{len(own)} times" if len(own) > 1 else "once"
        first = f" ({'first: ' if len(own) > 1 else ''}{own[0].path})" if own[0].path else ""
        lacking = f"{why}: no layer kind has that" if why else "no layer kind does that"
        join = ", " if why else ": "
        nearest = NEAREST.get(why, NEAREST.get(operator))
        instead = f" Nearest: {nearest}." if nearest else ""
        said.append(f"{name} uses {operator} {times}{first}{join}{lacking}.{instead}")
    return said


def _names(value: Any) -> list[str]:
    """Returns the nodes that arguments name."""
    if isinstance(value, dict):
        if set(value) == {"node"}:
            return [value["node"]]
        return [name for key in ("args", "kwargs") for name in _names(value.get(key))] or [
            name
            for each in value.values()
            if isinstance(each, (dict, list))
            for name in _names(each)
        ]
    return [name for each in value for name in _names(each)] if isinstance(value, list) else []
