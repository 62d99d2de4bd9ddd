"""Maps PyTorch's operators for products, windows, norms and sums, by their names."""

import math
from dataclasses import replace
from typing import Any

from steptime.imported import views
from steptime.imported.found import Layers, Parameter, Partial, is_step, turned, wants
from steptime.imported.views import Value, bare, fresh, shown
from steptime.networks.layers import LAYERS

# GELU by tanh as people write it: what a step and a number make, by operator.
GELU = {
    ("mul", "cube", 0.044715): "share", ("mul", "sum", (2 / math.pi) ** 0.5): "bend", ("add", "bent", 1.0): "gate",
}  # fmt: skip


class Arithmetic(Layers):
    """Operators that compute. `x` is a value, `weight` a parameter of the module."""

    def pointwise(self, value: Any, kind: str, options: dict[str, Any]) -> Any:
        if kind == "tanh" and is_step(value, "bend"):
            return Partial("bent", value.of)
        value = self.settled(value)
        return replace(value, layer=self.add(kind, [value.layer], options))

    def op_linear(self, x, weight, bias=None):
        wants(isinstance(weight, Parameter), "a product of two values")
        units, features = weight.shape
        own = {"weight": [(weight.name, "same" if weight.turned else "transposed")]}
        if bias is not None:
            own["bias"] = [(bias.name, "same")]
        options = {"units": units} | ({} if bias is not None else {"bias": False})
        if (
            x.form == "image"
            and bare(x.dims[-1]) == bare(x.axes[1])
            and (len(x.dims) == 4 or len(x.dims) == 3 and not bare(x.axes[2]))
            and not x.fixed
        ):
            return self.pixelwise(x, units, own, bias)
        x = self.by_features(x)
        if weight.name in self.tables:
            wants(bias is None, "a bias beside a table that is shared")
            return self.following(
                x, self.add("unembedding", [x.layer, self.tables[weight.name]]), units
            )
        return self.following(x, self.add("dense", [x.layer], options, **own), units)

    def pixelwise(self, x, units, own, bias):
        """Maps a product for each pixel, whose channels are last, to a convolution of one pixel."""
        name, how = own["weight"][0]
        wants(how == "transposed", "a product with a transposed parameter for each pixel")
        own = {**own, "weight": [(name, "pixel")]}
        options = {"channels": units, "kernel": 1} | ({} if bias is not None else {"bias": False})
        channels = (views.Atom(units),)
        batch, _, height, width = x.axes
        name = self.add("conv", [x.layer], options, **own)
        return replace(
            x, layer=name, axes=(batch, channels, height, width), dims=(*x.dims[:-1], channels)
        )

    def op_addmm(self, bias, x, weight):
        return self.op_linear(x, turned(weight), bias)

    def op_mm(self, x, weight):
        return self.op_linear(x, turned(weight))

    def op_matmul(self, x, weight):
        wants(isinstance(weight, Parameter), "a product of two values")
        return self.op_linear(x, turned(weight))

    def op_conv1d(self, x, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1):
        """Maps a conv1d to a convolution of an image with one row, as PyTorch itself does."""
        wants(x.form != "sequence" or x.layer == "refused", "a sequence that is convolved")
        out, channels, kernel = weight.shape
        weight = replace(weight, shape=[out, channels, 1, kernel])
        padding = padding if isinstance(padding, str) else [0, *padding]
        # With any stride, a window of one row stays in its place: TensorFlow's depthwise ones have one stride for both.
        return self.op_conv2d(x, weight, bias, stride, padding, [1, *dilation], groups, "one row")

    def op_conv2d(
        self,
        x,
        weight,
        bias=None,
        stride=(1,),
        padding=(0,),
        dilation=(1,),
        groups=1,
        how="same",
    ):
        out, _, *kernel = weight.shape
        if isinstance(padding, str):
            even = any(
                (size - 1) * apart % 2 for size, apart in zip(kernel, _both(dilation), strict=True)
            )
            wants(padding == "valid" or {*stride} == {1} and not even, f"padding='{padding}'")
            is_same = padding == "same"
            padding = [
                (size - 1) * apart // 2 if is_same else 0
                for size, apart in zip(kernel, _both(dilation), strict=True)
            ]
        own = {"weight": [(weight.name, how)]} | (
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
            ones = ((),) * (len(self.shape) - 2)
            return replace(x, layer=name, axes=(x.axes[0], last), dims=(x.dims[0], last, *ones))
        x = self.as_image(x)
        kind = "grouped_conv" if groups > 1 else "conv"
        options |= {"groups": groups} if groups > 1 else {}
        return self.image(x, self.add(kind, [x.layer], options, **own))

    def op_conv_transpose2d(
        self, x, weight, bias=None, stride=(1,), padding=(0,), more=(0,), groups=1, dilation=(1,)
    ):
        _, out, *kernel = weight.shape
        wants(
            len({*kernel}) == len({*stride}) == len({*padding}) == 1, "a window that is no square"
        )
        wants(
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

    def op_batch_norm(
        self, x, weight, bias, mean, variance, training, momentum, epsilon, cudnn=None
    ):
        wants(training, "statistics that do not come from the mini-batch")
        wants(weight is not None, "no weight and bias")
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
        wants(weight is not None, "no weight and bias")
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
        wants(weight is not None and len(shape) == 1, "no weight, or more than the last axis")
        own = {"weight": [(weight.name, "same")]} | (
            {"bias": [(bias.name, "same")]} if bias is not None else {}
        )
        options = {"epsilon": epsilon} | ({} if bias is not None else {"bias": False})
        return self.normalised(x, "layer_norm", options, own)

    def op_rms_norm(self, x, shape, weight=None, epsilon=None):
        wants(weight is not None and len(shape) == 1, "no weight, or more than the last axis")
        epsilon = 2.220446049250313e-16 if epsilon is None else epsilon
        return self.normalised(
            x, "rms_norm", {"epsilon": epsilon}, {"weight": [(weight.name, "same")]}
        )

    def normalised(self, x, kind, options, own):
        """Maps a norm of features, or of an image's channels where those are last."""
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
        """Notes a draw for whole samples, and the share of samples that are kept."""
        wants(kept and x["shape"] and math.prod(x["shape"][1:]) == 1, "for other than samples")
        return "drawn", kept

    def op_div(self, x, other):
        wants(isinstance(x, tuple) and x[0] == "drawn" and x[1] == other, "")
        return "kept", other

    def op_gelu(self, x, approximate="none"):
        return self.pointwise(x, "gelu" if approximate == "none" else "gelu_tanh", {})

    def op_leaky_relu(self, x, slope=0.01):
        return self.pointwise(x, "leaky_relu", {"slope": slope})

    def op_elu(self, x, alpha=1.0, scale=1.0, input_scale=1.0):
        wants(alpha == scale == input_scale == 1.0, "with an alpha other than 1")
        return self.pointwise(x, "elu", {})

    def op_softplus(self, x, beta=1.0, threshold=20.0):
        wants(beta == 1.0, "with a beta other than 1")
        return self.pointwise(x, "softplus", {})

    def op_hardtanh(self, x, low=-1.0, high=1.0):
        wants((low, high) == (0.0, 6.0), f"between {low:g} and {high:g}")
        return self.pointwise(x, "relu6", {})

    def op_max_pool2d(self, x, kernel, stride=(), padding=(0,), dilation=(1,), up=False):
        wants({*dilation} == {1}, "with dilation")
        return self.pooled(x, "max_pool", kernel, stride, padding, up)

    def op_avg_pool2d(
        self, x, kernel, stride=(), padding=(0,), up=False, counts=True, divisor=None
    ):
        wants(
            divisor is None and (counts or not any(padding)),
            "an average that does not count its padding",
        )
        return self.pooled(x, "avg_pool", kernel, stride, padding, up)

    def op_max_pool1d(self, x, kernel, stride=(), padding=(0,), dilation=(1,), up=False):
        kernel, padding, stride = [1, *kernel], [0, *padding], stride or kernel
        return self.op_max_pool2d(x, kernel, stride, padding, dilation, up)

    def op_avg_pool1d(self, x, kernel, stride=(), padding=(0,), up=False, counts=True):
        if [*kernel] == x.shape[2:] and not any(padding):
            return self.op_mean(x, [2], True)
        kernel, padding, stride = [1, *kernel], [0, *padding], stride or kernel
        return self.op_avg_pool2d(x, kernel, stride, padding, up, counts)

    def pooled(self, x, kind, kernel, stride, padding, up):
        x, stride = self.as_image(x), stride or kernel
        rows_and_columns = [1, *x.shape[2:]][-2:]
        sides = zip(rows_and_columns, _both(kernel), _both(stride), _both(padding), strict=True)
        rests = {(extent + 2 * edge - size) % step for extent, size, step, edge in sides}
        options = {"kernel": _sides(kernel), "stride": _sides(stride)} | (
            {"padding": _sides(padding)} if any(padding) else {}
        )
        if up and rests != {0}:
            wants("up" in LAYERS[kind].options, "with ceil_mode=True")
            options["up"] = True
        return self.image(x, self.add(kind, [x.layer], options))

    def op_adaptive_avg_pool2d(self, x, size):
        height, width = (extent or own for extent, own in zip(size, x.shape[2:], strict=True))
        if (height, width) == (1, 1):
            return self.op_mean(x, [2, 3], True)
        x = self.as_image(x)
        if [height, width] == x.shape[2:]:
            return x
        wants(height == width, "rows and columns of other numbers")
        return self.image(x, self.add("adaptive_avg_pool", [x.layer], {"size": height}))

    def op_adaptive_avg_pool1d(self, x, size):
        if [*size] == [1]:
            return self.op_mean(x, [2], True)
        steps, (parts,) = x.shape[2], size
        wants(steps % parts == 0, "parts of other numbers of steps")
        return x if steps == parts else self.op_avg_pool1d(x, [steps // parts])

    def op_pow(self, x, power):
        wants(power in (2, 3) and isinstance(x, Value), "")
        return Partial("square" if power == 2 else "cube", x)

    def op_rsqrt(self, x):
        wants(is_step(x, "mean square"), "")
        return Partial("scale", x.of, x.number)

    def op_neg(self, x):
        wants(is_step(x, "half 1"), "")
        return Partial("negative half", x.of)

    def op_mean(self, x, dims, keep=False, dtype=None):
        if is_step(x, "square"):
            wants([dim % len(x.of.dims) for dim in dims] == [len(x.of.dims) - 1] and keep, "")
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
            wants(x.layer == "refused", "a mean over other axes than pixels or steps")
            return fresh("refused", self.shape)
        return Value(name, axes, tuple(shown_still))

    def op_add(self, x, other, alpha=1):
        wants(alpha == 1, "a sum of which one part counts otherwise")
        if is_step(x, "mean square") and isinstance(other, float):
            return replace(x, number=other)
        if step := _of_gelu("add", x, other):
            return step
        if is_step(other, "share") and other.of == x:
            return Partial("sum", x)
        if is_step(x, "cosine") and is_step(other, "sine"):
            wants((x.of, x.number) == (other.of, other.number), "turns that do not belong together")
            return replace(x.of, turned=x.number)
        if isinstance(x, Parameter):
            x, other = other, x
        if isinstance(other, (int, float)):
            wants(other == 0, "a constant that is added")
            return x
        if isinstance(other, dict):
            wants(other.get("zero"), "a constant that is added")
            return x
        if isinstance(other, Parameter):
            return self.positioned(x, other)
        return self.paired(x, other, "add")

    def positioned(self, x, weight):
        """Maps a parameter that is added to each step."""
        rows, units = [1, *weight.shape][-2:]
        x = self.canonical(x, forms=(3,))
        wants(weight.rows or rows == x.shape[1] and math.prod(weight.shape) == rows * units, "")
        own = {"weight": [(weight.name, "matrix")]}
        return replace(x, layer=self.add("positions", [x.layer], {"rows": rows}, **own))

    def op_mul(self, x, other):
        if isinstance(x, Parameter | tuple | dict):
            x, other = other, x
        if is_step(x, "scaled") and isinstance(other, Parameter):
            own = {"weight": [(other.name, "same")]}
            return self.normalised(x.of, "rms_norm", {"epsilon": x.number}, own)
        if is_step(other, "scale") and other.of == x:
            return Partial("scaled", x, other.number)
        if isinstance(other, dict) and other.get("turns"):
            return self.turning(x, other)
        if step := _of_gelu("mul", x, other):
            return step
        if is_step(x, "half") and is_step(other, "gate") and x.of == other.of:
            return self.pointwise(x.of, "gelu_tanh", {})
        if isinstance(x, Value) and other == 0.5:
            return Partial("half", x)
        if isinstance(other, tuple):
            wants(other[0] == "kept", "samples that are dropped and not made up for")
            return self.pointwise(x, "stochastic_depth", {"rate": round(1 - other[1], 12)})
        if isinstance(other, (int, float)):
            wants(other == 1, "a constant factor")
            return x
        if isinstance(other, Parameter):
            x = self.settled(x)
            image = x.form == "image"
            axis = x.axes[1] if image else x.axes[-1]
            shape = [1] * (len(x.dims) - len(other.shape)) + other.shape
            long = [at for at, extent in enumerate(shape) if extent > 1]
            wants(
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
            wants(
                other.form == "row" and len(other.dims) == len(x.dims) and bare(other.dims[1]),
                "factors of other shapes",
            )
            return replace(x, layer=self.add("scale_channels", [x.layer, other.layer]))
        return self.paired(x, other, "multiply")

    def turning(self, x, table):
        """Notes a part of the heads that rotary positions turn."""
        is_sine = table["turns"] == "sine"
        wants(is_step(x, "turned half") if is_sine else isinstance(x, Value), "a table of angles")
        own = x.of if is_sine else x
        wants(own.shape[-2:] == table["shape"][-2:], "a table of other heads")
        return Partial(table["turns"], own, table["base"])

    def paired(self, x, other, kind):
        """Maps an operation on two values of one shape that have the same view."""
        if "refused" in (x.layer, other.layer):
            return fresh("refused", self.shape)
        wants(x.shape == other.shape, "two values of other shapes")
        x, other = self.settled(x), self.settled(other)
        if _pattern(x) != _pattern(other):
            x, other = self.canonical(x), self.canonical(other)
            wants(len(x.axes) == len(other.axes), "two values that are seen otherwise")
        return replace(x, layer=self.add(kind, [x.layer, other.layer]))


def _of_gelu(operator: str, value: Any, number: Any) -> Partial | None:
    """Returns the next step of a written-out GELU, if this number continues one; else None."""
    if isinstance(value, Partial) and isinstance(number, float):
        for (own, step, wanted), after in GELU.items():
            if (
                own == operator
                and step == value.step
                and math.isclose(number, wanted, rel_tol=1e-6)
            ):
                return Partial(after, value.of)
    return None


def _epsilon(epsilon: float) -> dict[str, float]:
    """Returns a norm's epsilon as an option where it is not the usual one."""
    return {} if math.isclose(epsilon, 1e-5) else {"epsilon": epsilon}


def _both(sizes: list[int]) -> list[int]:
    """Returns [of rows, of columns] from sizes that may be one for both."""
    return [*sizes] * (1 if len(sizes) > 1 else 2)


def _sides(sizes: list[int]) -> Any:
    """Returns sizes as a layer has them: one number where rows and columns have the same."""
    return sizes[0] if len({*sizes}) == 1 else [*sizes]


def _pattern(value: Value) -> list[Any]:
    """Returns which axes a value's dimensions show, by number."""
    at = {
        id(atom): (axis, place)
        for axis, atoms in enumerate(value.axes)
        for place, atom in enumerate(bare(atoms))
    }
    return [
        len(value.axes),
        [[(at.get(id(atom)), atom.size) for atom in bare(atoms)] for atoms in value.dims],
    ]
