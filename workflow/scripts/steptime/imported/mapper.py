"""From a graph of operators, as `worker/frameworks/torch/export.py` writes it, to layers of ours.

Each layer keeps the path of its module, and where each of its parameters comes from. What has no layer kind is kept,
too: all of it is told at once.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from steptime.imported import views
from steptime.imported.views import Misfit, Value, bare, fresh, shown
from steptime.networks.layers import LAYERS

Graph = dict[str, Any]
# Of a parameter of ours: [name of the module's, how it is taken] whose parts stand side by side.
Source = list[tuple[str, str]]

# What does nothing to a value but for what a view says.
NOTHING = {
    "contiguous", "clone", "alias", "detach", "to", "_to_copy", "type_as", "lift_fresh_copy", "_assert_tensor_metadata",
}  # fmt: skip
POINTWISE = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "silu": "silu", "relu6": "relu6",
    "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid", "elu": "elu", "softplus": "softplus",
}  # fmt: skip
# What to write in the module in place of an operator, or of what it has.
NEAREST = {
    "hardtanh": "relu6", "selu": "elu", "mish": "silu", "prelu": "leaky_relu",
    "softmax": "leave it out: the loss has it", "log_softmax": "leave it out: the loss has it",
    "attention": "scaled_dot_product_attention (nn.MultiheadAttention: need_weights=False)",
    "conv1d": "conv2d, of images with one row", "bmm": "scaled_dot_product_attention",
    "matmul": "scaled_dot_product_attention, or linear", "upsample_bilinear2d": "upsample (nearest)",
    "layer_norm": "layer_norm with weight and bias of the last axis", "instance_norm": "group_norm",
    "with padding_idx": "embedding without it", "with bidirectional=True": "one way",
    "a constant factor": "weights that have the factor",
    "a constant that is added": "a bias that has it",
}  # fmt: skip
# GELU by tanh as people write it: what a step and a number make, by operator.
GELU = {
    ("mul", "cube", 0.044715): "share", ("mul", "sum", (2 / math.pi) ** 0.5): "bend", ("add", "bent", 1.0): "gate",
}  # fmt: skip
# Of an attention that is written out, beside its softmax.
PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum"}


@dataclass
class Layer:
    """A layer of ours, with where its parameters come from."""

    name: str
    kind: str
    options: dict[str, Any]
    inputs: list[str]
    path: str
    sources: dict[str, Source] = field(default_factory=dict)


@dataclass
class Parameter:
    """A parameter of the module, as a tensor shows it."""

    name: str
    shape: list[int]
    turned: bool = False
    # Looked up by constant ids, as positions are.
    rows: bool = False


@dataclass
class Partial:
    """A part of what becomes one layer, or an attention's: of which value, and with what."""

    step: str
    of: Value
    number: float = 0.0


@dataclass
class Refusal:
    """An operator that has no layer kind here, and why."""

    operator: str
    why: str
    path: str


class Mapper:
    """Turns nodes of a graph into layers, in order."""

    def __init__(self, graph: Graph, vocabulary: int) -> None:
        self.graph, self.vocabulary = graph, vocabulary
        self.layers: list[Layer] = []
        self.counts: dict[str, int] = {}
        self.refusals: list[Refusal] = []
        self.values: dict[str, Any] = {}
        self.output = ""
        self.path = ""
        self.uses: dict[str, int] = {}
        weights = {node["name"]: node.get("parameter", "") for node in graph["nodes"]}
        for node in graph["nodes"]:
            if node["op"] in ("linear", "embedding"):
                for name in map(weights.__getitem__, _names(node["args"])):
                    self.uses[name] = self.uses.get(name, 0) + 1
        self.tables: dict[str, str] = {}

    def map(self) -> None:
        """Maps every node; refusals are kept, and what follows from them is not told."""
        known = {node["name"]: node for node in self.graph["nodes"]}
        for node in self.graph["nodes"]:
            self.path = node["path"]
            name, op = node["name"], node["op"]
            if op == "parameter":
                self.values[name] = Parameter(node["parameter"], node["shape"])
            elif op == "input":
                self.values[name] = fresh("input", node["shape"])
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

    def one(self, node: Graph) -> Any:
        """What a node gives, or None where it is refused."""
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
        """What stands for the output of what is refused, so that all that follows is looked at as well."""
        return fresh("refused", node["shape"]) if node["shape"] else None

    def given(self, value: Any) -> Any:
        if isinstance(value, dict) and "node" in value:
            return self.values[value["node"]]
        if isinstance(value, list):
            return [self.given(each) for each in value]
        return value

    def add(
        self, kind: str, inputs: list[str], options: dict[str, Any] | None = None, **sources: Source
    ) -> str:
        """Adds a layer; its name. Behind what is refused, nothing is added."""
        if "refused" in inputs:
            return "refused"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        name = f"{kind}{self.counts[kind]}"
        self.layers.append(Layer(name, kind, options or {}, inputs, self.path, sources))
        return name

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
                and value.dims != value.axes
            ):
                raise Misfit("its output has its axes in another order")
            self.output = value.layer
        except Misfit as error:
            self.refusals.append(Refusal("output", str(error), ""))

    def drop_unused(self) -> None:
        """Leaves out layers whose output nobody takes, such as a linear that became a part of an attention."""
        used = {self.output}
        for layer in reversed(self.layers):
            if layer.name in used:
                used.update(layer.inputs)
        self.layers = [layer for layer in self.layers if layer.name in used]

    # What a value is made into where a layer wants it as it is.

    def settled(self, value: Value) -> Value:
        """The value without fixed atoms: the part or the step that is shown becomes a layer's output."""
        _wants(not isinstance(value, Partial), "a form that no layer has")
        _wants(not value.turned and value.repeated == 1, "heads that no attention takes")
        while value.fixed:
            atom, index = next(iter(value.fixed.items()))
            fixed = {key: at for key, at in value.fixed.items() if key is not atom}
            *_, last = value.axes
            if bare(last)[:1] == (atom,) and value.form in ("row", "sequence"):
                rest = tuple(each for each in last if each is not atom)
                size = views.sizes(rest)
                name = self.add("part", [value.layer], {"start": index * size, "size": size})
                value = replace(value, layer=name, axes=(*value.axes[:-1], rest), fixed=fixed)
            elif value.form == "image" and bare(value.axes[1])[:1] == (atom,):
                rest = tuple(each for each in value.axes[1] if each is not atom)
                size = views.sizes(rest)
                name = self.add(
                    "channel_part", [value.layer], {"start": index * size, "size": size}
                )
                axes = (value.axes[0], rest, *value.axes[2:])
                value = replace(value, layer=name, axes=axes, fixed=fixed)
            elif (
                value.form == "sequence"
                and bare(value.axes[1]) == (atom,)
                and index in (0, atom.size - 1)
            ):
                kind = "first_step" if index == 0 else "last_step"
                name = self.add(kind, [value.layer])
                value = replace(value, layer=name, axes=(value.axes[0], last), fixed=fixed)
            elif value.layer == "refused":
                value = replace(value, fixed={})
            else:
                raise Misfit("one index of an axis that no layer picks")
        return value

    def arranged(self, value: Value, fits: Any) -> Value:
        """The value after the fewest copies with which its axes and dims fit. Raises Misfit where none do."""
        value = self.settled(value)
        for kinds, axes in views.arrangements(value):
            if fits(axes, value.dims):
                for kind in kinds:
                    value = replace(value, layer=self.add(kind, [value.layer]))
                return replace(value, axes=axes)
        raise Misfit("its input is seen in a way that no layer gives")

    def canonical(
        self, value: Value, any_order: bool = False, forms: tuple[int, ...] = (2, 3, 4)
    ) -> Value:
        """The value shown as its axes are, but for mini-batch and steps in one dimension where `any_order`."""
        if value.layer == "refused":
            return value

        def fits(axes: tuple, dims: tuple) -> bool:
            bare_axes, bare_dims = shown(axes), shown(dims)
            if len(axes) in forms and bare_axes == bare_dims:
                return True
            merged = len(axes) == 3 and any_order
            return merged and [bare(axes[0] + axes[1]), bare(axes[2])] == bare_dims

        return self.arranged(value, fits)

    def by_features(self, value: Value) -> Value:
        """The value as a row or a sequence, the last axis of which is the last dimension that is shown."""
        if value.layer == "refused":
            return value

        def fits(axes: tuple, dims: tuple) -> bool:
            return len(axes) in (2, 3) and bare(axes[-1]) == bare(dims[-1]) and bool(bare(dims[-1]))

        return self.arranged(value, fits)

    def as_image(self, value: Value) -> Value:
        """The value as an image, channels first. Raises Misfit."""
        if value.layer == "refused":
            return value
        value = self.settled(value)
        if len(value.axes) == 4 and shown(value.axes) == shown(value.dims):
            return value
        raise Misfit("its input is no image of ours")

    def following(self, value: Value, layer: str, features: int | None = None) -> Value:
        """What a layer gives that keeps all axes, but for the number of features."""
        if features is None:
            return replace(value, layer=layer)
        last = (views.Atom(features),)
        return replace(
            value, layer=layer, axes=(*value.axes[:-1], last), dims=(*value.dims[:-1], last)
        )

    def pointwise(self, value: Any, kind: str, options: dict[str, Any]) -> Any:
        if kind == "tanh" and _is(value, "bend"):
            return Partial("bent", value.of)
        value = self.settled(value)
        return replace(value, layer=self.add(kind, [value.layer], options))

    # Operators, by their names in PyTorch.

    def op_linear(self, x, weight, bias=None):
        _wants(isinstance(weight, Parameter), "a product of two values")
        units, features = weight.shape
        own = {"weight": [(weight.name, "same" if weight.turned else "transposed")]}
        if bias is not None:
            own["bias"] = [(bias.name, "same")]
        options = {"units": units} | ({} if bias is not None else {"bias": False})
        if (
            x.form == "image"
            and bare(x.dims[-1]) == bare(x.axes[1])
            and len(x.dims) == 4
            and not x.fixed
        ):
            return self.pixelwise(x, units, own, bias)
        x = self.by_features(x)
        if weight.name in self.tables:
            _wants(bias is None, "a bias beside a table that is shared")
            return self.following(
                x, self.add("unembedding", [x.layer, self.tables[weight.name]]), units
            )
        return self.following(x, self.add("dense", [x.layer], options, **own), units)

    def pixelwise(self, x, units, own, bias):
        """A product for each pixel, whose channels are last: a convolution of one pixel."""
        name, how = own["weight"][0]
        _wants(how == "transposed", "a product with a transposed parameter for each pixel")
        own = {**own, "weight": [(name, "pixel")]}
        options = {"channels": units, "kernel": 1} | ({} if bias is not None else {"bias": False})
        channels = (views.Atom(units),)
        batch, _, height, width = x.axes
        name = self.add("conv", [x.layer], options, **own)
        return replace(
            x, layer=name, axes=(batch, channels, height, width), dims=(*x.dims[:-1], channels)
        )

    def op_addmm(self, bias, x, weight):
        return self.op_linear(x, _turned(weight), bias)

    def op_mm(self, x, weight):
        return self.op_linear(x, _turned(weight))

    def op_matmul(self, x, weight):
        _wants(isinstance(weight, Parameter), "a product of two values")
        return self.op_linear(x, _turned(weight))

    def op_conv2d(self, x, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1):
        out, _, *kernel = weight.shape
        if isinstance(padding, str):
            even = any(
                (size - 1) * apart % 2 for size, apart in zip(kernel, _both(dilation), strict=True)
            )
            _wants(padding == "valid" or {*stride} == {1} and not even, f"padding='{padding}'")
            padding = [
                (size - 1) * apart // 2 * (padding == "same")
                for size, apart in zip(kernel, _both(dilation), strict=True)
            ]
        own = {"weight": [(weight.name, "same")]} | (
            {"bias": [(bias.name, "same")]} if bias is not None else {}
        )
        options: dict[str, Any] = {"channels": out, "kernel": _sides(kernel)}
        options |= {"stride": _sides(stride)} if {*stride} != {1} else {}
        options |= {"padding": _sides(padding)} if any(padding) else {}
        options |= {"dilation": _sides(dilation)} if {*dilation} != {1} else {}
        options |= {} if bias is not None else {"bias": False}
        if (
            x.form == "row"
            and {*kernel} == {1}
            and groups == 1
            and len(shown(x.dims)) == len(x.axes)
        ):
            own["weight"] = [(weight.name, "of one pixel")]
            options = {"units": out} | ({} if bias is not None else {"bias": False})
            last = (views.Atom(out),)
            name = self.add("dense", [x.layer], options, **own)
            return replace(x, layer=name, axes=(x.axes[0], last), dims=(x.dims[0], last, (), ()))
        x = self.as_image(x)
        kind = "grouped_conv" if groups > 1 else "conv"
        options |= {"groups": groups} if groups > 1 else {}
        return self.image(x, self.add(kind, [x.layer], options, **own))

    def op_conv_transpose2d(
        self, x, weight, bias=None, stride=(1,), padding=(0,), more=(0,), groups=1, dilation=(1,)
    ):
        _, out, *kernel = weight.shape
        _wants(
            len({*kernel}) == len({*stride}) == len({*padding}) == 1, "a window that is no square"
        )
        _wants(
            {*more} == {0} and groups == 1 and {*dilation} == {1},
            "with output padding, groups or dilation",
        )
        own = {"weight": [(weight.name, "same")]} | (
            {"bias": [(bias.name, "same")]} if bias is not None else {}
        )
        options = {"channels": out, "kernel": kernel[0], "stride": stride[0], "padding": padding[0]}
        options |= {} if bias is not None else {"bias": False}
        x = self.as_image(x)
        return self.image(x, self.add("conv_transpose", [x.layer], options, **own))

    def image(self, x, name):
        """The output of a layer that makes an image of the shape that the node has."""
        value = fresh(name, self.shape)
        return replace(value, axes=(x.axes[0], *value.axes[1:]), dims=(x.dims[0], *value.dims[1:]))

    def op_batch_norm(
        self, x, weight, bias, mean, variance, training, momentum, epsilon, cudnn=None
    ):
        _wants(training, "statistics that do not come from the mini-batch")
        _wants(weight is not None, "no weight and bias")
        x = self.as_image(x)
        options = _epsilon(epsilon)
        options |= {} if math.isclose(momentum, 0.1) else {"momentum": momentum}
        name = self.add(
            "batch_norm",
            [x.layer],
            options,
            gamma=[(weight.name, "same")],
            beta=[(bias.name, "same")],
        )
        return replace(x, layer=name)

    def op_group_norm(self, x, groups, weight=None, bias=None, epsilon=1e-5, cudnn=None):
        _wants(weight is not None, "no weight and bias")
        x = self.as_image(x)
        options = {"groups": groups} | _epsilon(epsilon)
        name = self.add(
            "group_norm",
            [x.layer],
            options,
            gamma=[(weight.name, "same")],
            beta=[(bias.name, "same")],
        )
        return replace(x, layer=name)

    def op_layer_norm(self, x, shape, weight=None, bias=None, epsilon=1e-5, cudnn=None):
        _wants(weight is not None and len(shape) == 1, "no weight, or more than the last axis")
        own = {"weight": [(weight.name, "same")]} | (
            {"bias": [(bias.name, "same")]} if bias is not None else {}
        )
        options = {"epsilon": epsilon} | ({} if bias is not None else {"bias": False})
        return self.normalised(x, "layer_norm", options, own)

    def op_rms_norm(self, x, shape, weight=None, epsilon=None):
        _wants(weight is not None and len(shape) == 1, "no weight, or more than the last axis")
        epsilon = 2.220446049250313e-16 if epsilon is None else epsilon
        return self.normalised(
            x, "rms_norm", {"epsilon": epsilon}, {"weight": [(weight.name, "same")]}
        )

    def normalised(self, x, kind, options, own):
        """A norm of features, or of an image's channels where those are last."""
        if not (
            x.form == "image"
            and kind == "layer_norm"
            and bare(x.dims[-1]) == bare(x.axes[1])
            and not x.fixed
        ):
            x = self.by_features(x)
        return replace(x, layer=self.add(kind, [x.layer], options, **own))

    def op_dropout(self, x, rate, train=True):
        return self.pointwise(x, "dropout", {"rate": rate}) if rate and train else x

    op_feature_dropout = None

    def op_new_empty(self, x, *others, **more):
        return {"shape": self.shape}

    def op_bernoulli(self, x, kept=None):
        """What is drawn for whole samples, and the share of those that are kept."""
        _wants(kept and x["shape"] and math.prod(x["shape"][1:]) == 1, "for other than samples")
        return "drawn", kept

    def op_div(self, x, other):
        _wants(isinstance(x, tuple) and x[0] == "drawn" and x[1] == other, "")
        return "kept", other

    def op_gelu(self, x, approximate="none"):
        return self.pointwise(x, "gelu" if approximate == "none" else "gelu_tanh", {})

    def op_leaky_relu(self, x, slope=0.01):
        return self.pointwise(x, "leaky_relu", {"slope": slope})

    def op_elu(self, x, alpha=1.0, scale=1.0, input_scale=1.0):
        _wants(alpha == scale == input_scale == 1.0, "with an alpha other than 1")
        return self.pointwise(x, "elu", {})

    def op_softplus(self, x, beta=1.0, threshold=20.0):
        _wants(beta == 1.0, "with a beta other than 1")
        return self.pointwise(x, "softplus", {})

    def op_hardtanh(self, x, low=-1.0, high=1.0):
        _wants((low, high) == (0.0, 6.0), f"between {low:g} and {high:g}")
        return self.pointwise(x, "relu6", {})

    def op_max_pool2d(self, x, kernel, stride=(), padding=(0,), dilation=(1,), up=False):
        _wants({*dilation} == {1}, "with dilation")
        return self.pooled(x, "max_pool", kernel, stride, padding, up)

    def op_avg_pool2d(
        self, x, kernel, stride=(), padding=(0,), up=False, counts=True, divisor=None
    ):
        _wants(
            divisor is None and (counts or not any(padding)),
            "an average that does not count its padding",
        )
        return self.pooled(x, "avg_pool", kernel, stride, padding, up)

    def pooled(self, x, kind, kernel, stride, padding, up):
        x, stride = self.as_image(x), stride or kernel
        sides = zip(x.shape[2:], _both(kernel), _both(stride), _both(padding), strict=True)
        rests = {(extent + 2 * edge - size) % step for extent, size, step, edge in sides}
        options = {"kernel": _sides(kernel), "stride": _sides(stride)} | (
            {"padding": _sides(padding)} if any(padding) else {}
        )
        if up and rests != {0}:
            _wants("up" in LAYERS[kind].options, "with ceil_mode=True")
            options["up"] = True
        return self.image(x, self.add(kind, [x.layer], options))

    def op_adaptive_avg_pool2d(self, x, size):
        height, width = (extent or own for extent, own in zip(size, x.shape[2:], strict=True))
        if (height, width) == (1, 1):
            return self.op_mean(x, [2, 3], True)
        x = self.as_image(x)
        if [height, width] == x.shape[2:]:
            return x
        _wants(height == width, "rows and columns of other numbers")
        return self.image(x, self.add("adaptive_avg_pool", [x.layer], {"size": height}))

    def op_adaptive_avg_pool1d(self, x, size):
        _wants([*size] == [1], "more than one step")
        return self.op_mean(x, [2], True)

    def op_pow(self, x, power):
        _wants(power in (2, 3) and isinstance(x, Value), "")
        return Partial("square" if power == 2 else "cube", x)

    def op_rsqrt(self, x):
        _wants(_is(x, "mean square"), "")
        return Partial("scale", x.of, x.number)

    def op_neg(self, x):
        _wants(_is(x, "half 1"), "")
        return Partial("negative half", x.of)

    def op_mean(self, x, dims, keep=False, dtype=None):
        if _is(x, "square"):
            _wants([dim % len(x.of.dims) for dim in dims] == [len(x.of.dims) - 1] and keep, "")
            return Partial("mean square", x.of)
        x = self.settled(x)
        dims = [dim % len(x.dims) for dim in dims]
        gone = {atom for dim in dims for atom in bare(x.dims[dim])}
        shown_still = [
            () if at in dims else atoms for at, atoms in enumerate(x.dims) if keep or at not in dims
        ]
        if x.form == "image" and gone == {*bare(x.axes[2]), *bare(x.axes[3])}:
            name, axes = self.add("global_average_pool", [x.layer]), x.axes[:2]
        elif x.form == "sequence" and gone == {*bare(x.axes[1])}:
            name, axes = self.add("mean_steps", [x.layer]), (x.axes[0], x.axes[2])
        elif x.form == "sequence" and gone == {*bare(x.axes[2])}:
            turned = self.add("transpose", [x.layer])
            name, axes = self.add("mean_steps", [turned]), x.axes[:2]
        else:
            _wants(x.layer == "refused", "a mean over other axes than pixels or steps")
            return fresh("refused", self.shape)
        return Value(name, axes, tuple(shown_still))

    def op_embedding(self, weight, ids, padding=-1, scale=False, sparse=False):
        rows, units = weight.shape
        if isinstance(ids, dict):
            values = ids.get("values")
            flat = values[0] if values and isinstance(values[0], list) else values
            _wants(flat == list(range(len(flat or []))), "ids that are no positions")
            return replace(weight, rows=True)
        _wants(padding == -1, "with padding_idx")
        _wants(ids.form == "row" and ids.layer == "input", "ids that are not the input")
        if self.uses.get(weight.name, 0) > 1:
            table = self.add(
                "table", ["input"], {"rows": rows, "units": units}, weight=[(weight.name, "same")]
            )
            self.tables[weight.name] = table
            name = self.add("lookup", ["input", table])
        else:
            options = {"vocabulary": rows, "units": units}
            name = self.add("embedding", ["input"], options, weight=[(weight.name, "same")])
        features = (views.Atom(units),)
        return Value(name, (*ids.axes, features), (*ids.dims, features))

    def op_add(self, x, other, alpha=1):
        _wants(alpha == 1, "a sum of which one part counts otherwise")
        if _is(x, "mean square") and isinstance(other, float):
            return replace(x, number=other)
        if step := _of_gelu("add", x, other):
            return step
        if _is(other, "share") and other.of == x:
            return Partial("sum", x)
        if _is(x, "cosine") and _is(other, "sine"):
            _wants(
                (x.of, x.number) == (other.of, other.number), "turns that do not belong together"
            )
            return replace(x.of, turned=x.number)
        if isinstance(x, Parameter):
            x, other = other, x
        if isinstance(other, (int, float)):
            _wants(other == 0, "a constant that is added")
            return x
        if isinstance(other, dict):
            _wants(other.get("zero"), "a constant that is added")
            return x
        if isinstance(other, Parameter):
            return self.positioned(x, other)
        return self.paired(x, other, "add")

    def positioned(self, x, weight):
        """A parameter that is added to each step."""
        rows, units = [1, *weight.shape][-2:]
        x = self.canonical(x, forms=(3,))
        _wants(weight.rows or rows == x.shape[1] and math.prod(weight.shape) == rows * units, "")
        own = {"weight": [(weight.name, "matrix")]}
        return replace(x, layer=self.add("positions", [x.layer], {"rows": rows}, **own))

    def op_mul(self, x, other):
        if isinstance(x, Parameter | tuple | dict):
            x, other = other, x
        if _is(x, "scaled") and isinstance(other, Parameter):
            own = {"weight": [(other.name, "same")]}
            return self.normalised(x.of, "rms_norm", {"epsilon": x.number}, own)
        if _is(other, "scale") and other.of == x:
            return Partial("scaled", x, other.number)
        if isinstance(other, dict) and other.get("turns"):
            return self.turning(x, other)
        if step := _of_gelu("mul", x, other):
            return step
        if _is(x, "half") and _is(other, "gate") and x.of == other.of:
            return self.pointwise(x.of, "gelu_tanh", {})
        if isinstance(x, Value) and other == 0.5:
            return Partial("half", x)
        if isinstance(other, tuple):
            _wants(other[0] == "kept", "samples that are dropped and not made up for")
            return self.pointwise(x, "stochastic_depth", {"rate": round(1 - other[1], 12)})
        if isinstance(other, (int, float)):
            _wants(other == 1, "a constant factor")
            return x
        if isinstance(other, Parameter):
            x = self.settled(x)
            image = x.form == "image"
            axis = x.axes[1] if image else x.axes[-1]
            shape = [1] * (len(x.dims) - len(other.shape)) + other.shape
            long = [at for at, extent in enumerate(shape) if extent > 1]
            _wants(
                len(long) == 1 and bare(x.dims[long[0]]) == bare(axis),
                "a factor that is not one per feature",
            )
            return replace(
                x, layer=self.add("layer_scale", [x.layer], weight=[(other.name, "vector")])
            )
        if "refused" in (x.layer, other.layer):
            return fresh("refused", self.shape)
        if x.form != other.form:
            x, other = (other, x) if x.form == "row" else (x, other)
            x, other = self.as_image(x), self.settled(other)
            _wants(
                other.form == "row" and len(other.dims) == 4 and bare(other.dims[1]),
                "factors of other shapes",
            )
            return replace(x, layer=self.add("scale_channels", [x.layer, other.layer]))
        return self.paired(x, other, "multiply")

    def turning(self, x, table):
        """A part of the heads that rotary positions turn."""
        is_sine = table["turns"] == "sine"
        _wants(_is(x, "turned half") if is_sine else isinstance(x, Value), "a table of angles")
        own = x.of if is_sine else x
        _wants(own.shape[-2:] == table["shape"][-2:], "a table of other heads")
        return Partial(table["turns"], own, table["base"])

    def paired(self, x, other, kind):
        """Two values of one shape that are seen alike."""
        if "refused" in (x.layer, other.layer):
            return fresh("refused", self.shape)
        _wants(x.shape == other.shape, "two values of other shapes")
        x, other = self.settled(x), self.settled(other)
        if _pattern(x) != _pattern(other):
            x, other = self.canonical(x), self.canonical(other)
            _wants(len(x.axes) == len(other.axes), "two values that are seen otherwise")
        return replace(x, layer=self.add(kind, [x.layer, other.layer]))

    def op_cat(self, parts, dim=0):
        if len(parts) == 2 and _is(parts[0], "negative half") and _is(parts[1], "half 0"):
            _wants(parts[0].of == parts[1].of, "halves of two values")
            return Partial("turned half", parts[0].of)
        if isinstance(parts[0], Parameter) and len(parts) == 2:
            x = self.canonical(parts[1], forms=(3,))
            _wants(dim == 1, "a parameter put beside a value")
            steps = (views.Atom(self.shape[1]),)
            name = self.add("class_token", [x.layer], weight=[(parts[0].name, "vector")])
            axes = (x.axes[0], steps, x.axes[2])
            return Value(name, axes, axes)
        if len(parts) == 1:
            return parts[0]
        if any(part.layer == "refused" for part in parts):
            return fresh("refused", self.shape)
        parts = [self.canonical(part, forms=(2, 4)) for part in parts]
        _wants(
            dim % len(self.shape) == 1,
            "values one behind the other along another axis than channels",
        )
        return self.image(parts[0], self.add("concat", [part.layer for part in parts]))

    def op_scaled_dot_product_attention(
        self, q, k, v, mask=None, rate=0.0, causal=False, scale=None, **others
    ):
        if isinstance(mask, dict):
            causal = causal or mask.get("causal", False)
            opened = mask.get("open") or mask.get("zero") and not mask.get("values")
            mask = None if mask.get("causal") or opened else mask
        _wants(mask is None, "with a mask")
        _wants(not rate, f"with a dropout of {rate} of attention's shares (0 goes)")
        *_, heads, _, size = q.shape
        pairs = k.shape[-3]
        alike = len(q.shape) == 4 and k.shape == v.shape == [q.shape[0], pairs, *q.shape[2:]]
        _wants(alike and heads % pairs == 0, "queries and keys of other shapes")
        _wants(q.turned == k.turned and not v.turned, "queries and keys that are not turned alike")
        _wants(scale is None or math.isclose(scale, size**-0.5), "another scale")
        if "refused" in (q.layer, k.layer, v.layer):
            return fresh("refused", self.shape)
        joined, batch, stepped = self.joined(q, k, v)
        options: dict[str, Any] = {"heads": heads} | ({"causal": True} if causal else {})
        options |= {"kv_heads": pairs} if pairs < heads else {}
        options |= {"rotary": q.turned} if q.turned else {}
        name = self.add("attention", [joined], options)
        head, own = views.Atom(heads), views.Atom(size)
        return Value(name, (batch, stepped, (head, own)), (batch, (head,), stepped, (own,)))

    def joined(self, q, k, v):
        """The layer that gives queries, keys and values side by side."""
        if q.layer == k.layer == v.layer:
            for place, value in enumerate((q, k, v)):
                (atom,) = value.fixed
                *_, last = value.axes
                alike = bare(last) == bare((atom, *value.dims[1], *value.dims[3]))
                _wants(
                    alike and value.fixed[atom] == place and atom.size == 3,
                    "heads in another order",
                )
                _wants(bare(value.axes[1]) == bare(value.dims[2]), "steps in another order")
            return q.layer, q.axes[0], q.axes[1]
        made = [
            next(layer for layer in self.layers if layer.name == each.layer) for each in (q, k, v)
        ]
        _wants(
            {layer.kind for layer in made} == {"dense"},
            "queries, keys or values that no linear gives",
        )
        _wants(len({layer.inputs[0] for layer in made}) == 1, "queries and keys of other values")
        _wants(
            len({"bias" in layer.sources for layer in made}) == 1,
            "a bias of some of queries, keys and values",
        )
        for value in (q, k, v):
            alike = bare(value.axes[-1]) == bare(value.dims[1] + value.dims[3]) and not value.fixed
            _wants(alike and bare(value.axes[1]) == bare(value.dims[2]), "heads in another order")
        own = {
            role: [each for layer in made for each in layer.sources[role]]
            for role in made[0].sources
        }
        options = {**made[0].options, "units": sum(layer.options["units"] for layer in made)}
        return self.add("dense", made[0].inputs, options, **own), q.axes[0], q.axes[1]

    def op_lstm(self, x, states, weights, bias, layers, rate, train, both, batch_first):
        return self.recurrent("lstm", x, states, weights, bias, layers, rate, both, batch_first)

    def op_gru(self, x, state, weights, bias, layers, rate, train, both, batch_first):
        return self.recurrent("gru", x, [state], weights, bias, layers, rate, both, batch_first)

    def op_rnn_tanh(self, x, state, weights, bias, layers, rate, train, both, batch_first):
        return self.recurrent("rnn", x, [state], weights, bias, layers, rate, both, batch_first)

    def recurrent(self, kind, x, states, weights, bias, layers, rate, both, batch_first):
        _wants(not both, "with bidirectional=True")
        _wants(bias, "with bias=False")
        _wants(len(weights) == 4 * layers, "with proj_size")
        _wants(
            all(isinstance(state, dict) and state.get("zero") for state in states),
            "a first state that is not 0",
        )
        x = self.settled(x)

        def fits(axes: tuple, dims: tuple) -> bool:
            order = axes if batch_first else (axes[1], axes[0], *axes[2:])
            return len(axes) == 3 and shown(order) == shown(dims)

        x = x if x.layer == "refused" else self.arranged(x, fits)
        units, ends = weights[1].shape[1], []
        for layer in range(layers):
            given, again, *biases = (weight.name for weight in weights[4 * layer : 4 * layer + 4])
            own = {"input": [(given, "transposed")], "recurrent": [(again, "transposed")]}
            own["bias"] = [(biases[0], "same"), (biases[1], "second")]
            x = self.following(x, self.add(kind, [x.layer], {"units": units}, **own), units)
            ends.append(x)
            if rate and layer < layers - 1:
                x = self.pointwise(x, "dropout", {"rate": rate})
        return [x, *[("ends", ends)] * 2]

    def op_getitem(self, values, index):
        return values[index]

    def op_select(self, x, dim, index):
        if isinstance(x, tuple):
            _wants(dim == 0, "")
            value = x[1][index]
            return Value(self.add("last_step", [value.layer]), value.axes[::2], value.axes[::2])
        return views.select(x, dim % len(x.dims), index % x.shape[dim])

    def op_slice(self, x, dim=0, start=None, end=None, step=1):
        if isinstance(x, tuple):
            return x
        if isinstance(x, Parameter):
            return Parameter(x.name, x.shape, rows=True) if self.shape[:-1] != x.shape[:-1] else x
        if self.shape == x.shape:
            return x
        _wants(step in (1, None), "every other value")
        extent, size = x.shape[dim], self.shape[dim]
        start = (start or 0) % extent
        # A view of heads, which rotary positions cut into halves.
        if len(x.dims) == 4 and x.form == "sequence" and dim % 4 == 3 and 2 * size == extent:
            return Partial(f"half {start // size}", x)
        if x.form == "image" and size > 1:
            return self.channels(x, dim, start, size)
        if size == 1:
            value = views.select(x, dim % len(x.dims), start)
            return replace(value, dims=(*value.dims[:dim], (), *value.dims[dim:]))
        x = self.by_features(x)
        _wants(dim % len(x.dims) == len(x.dims) - 1, "a part of an axis that is not the features")
        return self.following(x, self.add("part", [x.layer], {"start": start, "size": size}), size)

    def channels(self, x, dim, start, size):
        """Some channels of an image."""
        x = self.as_image(x)
        _wants(dim % len(x.dims) == 1, "a part of an axis that is not the channels")
        name = self.add("channel_part", [x.layer], {"start": start, "size": size})
        last = (views.Atom(size),)
        return replace(
            x, layer=name, axes=(x.axes[0], last, *x.axes[2:]), dims=(x.dims[0], last, *x.dims[2:])
        )

    def op_pad(self, x, pads, mode="constant", value=None):
        _wants(mode == "constant" and not value, f"with {mode} values of {value}")
        _wants(len(pads) == 4 and min(pads) >= 0, "of other axes than rows and columns")
        x = self.as_image(x)
        left, right, top, bottom = pads
        options = {"rows": [top, bottom], "columns": [left, right]}
        return self.image(x, self.add("pad", [x.layer], options))

    def op_constant_pad_nd(self, x, pads, value=0):
        return self.op_pad(x, pads, value=value)

    def op_chunk(self, x, count, dim=0):
        return self.op_split(x, math.ceil(x.shape[dim] / count), dim)

    def op_split(self, x, size, dim=0):
        dim %= len(x.dims)
        extent = x.shape[dim]
        if isinstance(size, int) and extent % size == 0:
            cut = views.split(x, dim, extent // size)
            return [views.select(cut, dim, at) for at in range(extent // size)]
        wide = [size] * (extent // size) + [extent % size] if isinstance(size, int) else size
        if len({*wide}) == 1:
            return self.op_split(x, wide[0], dim)
        if x.form == "image":
            ends = [sum(wide[:at]) for at in range(len(wide))]
            return [self.channels(x, dim, *each) for each in zip(ends, wide, strict=True)]
        x = self.by_features(x)
        _wants(dim == len(x.dims) - 1, "a part of an axis that is not the features")
        starts = [sum(wide[:at]) for at in range(len(wide))]
        pairs = zip(starts, wide, strict=True)
        return [
            self.following(x, self.add("part", [x.layer], {"start": start, "size": own}), own)
            for start, own in pairs
        ]

    op_split_with_sizes = op_split

    def op_unbind(self, x, dim=0):
        return [views.select(x, dim % len(x.dims), at) for at in range(x.shape[dim])]

    def op_view(self, x, *sizes):
        if isinstance(x, Parameter):
            return replace(x, shape=self.shape)
        if isinstance(x, tuple):
            raise Misfit("a view of the last states")
        if x.layer == "refused":
            return fresh("refused", self.shape)
        if x.repeated > 1:
            _wants(self.shape[1] == x.shape[1] * x.repeated and self.shape[2:] == x.shape[2:], "")
            return x
        return self.shuffled(views.reshape(x, self.shape))

    def shuffled(self, value):
        """The value behind a layer that shuffles its channels, where a view and a transpose have done so."""
        if value.form != "image" or len(value.dims) != 4 or value.fixed:
            return value
        own, seen = bare(value.axes[1]), bare(value.dims[1])
        if len(own) != 2 or seen != own[::-1]:
            return value
        name = self.add("channel_shuffle", [value.layer], {"groups": own[0].size})
        return replace(value, layer=name, axes=(value.axes[0], seen, *value.axes[2:]))

    op_reshape = op_flatten = op_unflatten = op__unsafe_view = op_squeeze = op_unsqueeze = op_view

    def op_expand(self, x, *sizes, **others):
        if isinstance(x, Parameter):
            return replace(x, shape=self.shape[-2:])
        if len(x.shape) == 5 and x.shape[2] == 1 and x.form == "sequence":
            _wants([*x.shape[:2], *x.shape[3:]] == [*self.shape[:2], *self.shape[3:]], "")
            return replace(views.reshape(x, [*x.shape[:2], *x.shape[3:]]), repeated=self.shape[2])
        _wants(self.shape == x.shape, "a value that is repeated")
        return x

    def op_permute(self, x, *order):
        order = order[0] if isinstance(order[0], list) else order
        return replace(x, dims=tuple(x.dims[at] for at in order))

    def op_transpose(self, x, one, other):
        if isinstance(x, Parameter):
            return _turned(x)
        order = list(range(len(x.dims)))
        order[one], order[other] = order[other], order[one]
        return self.op_permute(x, order)

    def op_t(self, x):
        return _turned(x) if isinstance(x, Parameter) else self.op_transpose(x, 0, 1)

    op_numpy_T = op_t

    def op_upsample_nearest2d(self, x, size=None, *scales):
        x = self.as_image(x)
        factors = {new / old for new, old in zip(self.shape[2:], x.shape[2:], strict=True)}
        _wants(len(factors) == 1 and min(factors) % 1 == 0, "a factor that is no whole number")
        return self.image(x, self.add("upsample", [x.layer], {"factor": int(min(factors))}))


def _is(value: Any, step: str) -> bool:
    return isinstance(value, Partial) and value.step == step


def _of_gelu(operator: str, value: Any, number: Any) -> Partial | None:
    """The next step of a GELU that is written out, if a number makes one of this value."""
    if isinstance(value, Partial) and isinstance(number, float):
        for (own, step, wanted), after in GELU.items():
            if (
                own == operator
                and step == value.step
                and math.isclose(number, wanted, rel_tol=1e-6)
            ):
                return Partial(after, value.of)
    return None


def _wants(holds: Any, otherwise: str) -> None:
    if not holds:
        raise Misfit(otherwise)


def _epsilon(epsilon: float) -> dict[str, float]:
    """The epsilon of a norm where it is not the usual one."""
    return {} if math.isclose(epsilon, 1e-5) else {"epsilon": epsilon}


def _both(sizes: list[int]) -> list[int]:
    """[of rows, of columns] of sizes that may be one for both."""
    return [*sizes] * (1 if len(sizes) > 1 else 2)


def _sides(sizes: list[int]) -> Any:
    """Sizes as a layer has them: one where rows and columns have the same."""
    return sizes[0] if len({*sizes}) == 1 else [*sizes]


def _pattern(value: Value) -> list[Any]:
    """Which axes a value's dims show, by their numbers."""
    at = {
        id(atom): (axis, place)
        for axis, atoms in enumerate(value.axes)
        for place, atom in enumerate(bare(atoms))
    }
    return [
        len(value.axes),
        [[(at.get(id(atom)), atom.size) for atom in bare(atoms)] for atoms in value.dims],
    ]


def _turned(weight: Any) -> Parameter:
    """A parameter's transpose, which `op_linear` takes as it is in a module of linear."""
    _wants(isinstance(weight, Parameter) and len(weight.shape) == 2, "a product of two values")
    return Parameter(weight.name, weight.shape[::-1], not weight.turned)


def _names(value: Any) -> list[str]:
    """The nodes that arguments name."""
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


def gathered(refusals: list[Refusal]) -> list[Refusal]:
    """Refusals in order, with those of an attention that is written out in a module as one."""
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
    """All refusals of a module, one sentence for each operator and reason."""
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
