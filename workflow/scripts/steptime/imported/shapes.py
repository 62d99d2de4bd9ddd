"""Maps PyTorch's operators that take parts of values, put them together, or view them differently."""

import math
from dataclasses import replace

from steptime.imported import views
from steptime.imported.found import Layers, Parameter, Partial, is_step, turned, wants
from steptime.imported.views import Misfit, Value, bare, fresh


class Shapes(Layers):
    """Operators that compute nothing, but may copy."""

    def op_getitem(self, values, index):
        return values[index]

    def op_select(self, x, dim, index):
        if isinstance(x, tuple):
            wants(dim == 0, "")
            return self.end(x[1][index])
        return views.select(x, dim % len(x.dims), index % x.shape[dim])

    def end(self, last):
        """Maps the last state of a recurrent layer; that of a backward one is its output at the first step."""
        axes = last.of.axes[::2]
        value = Value(
            self.add("first_step" if last.way else "last_step", [last.of.layer]), axes, axes
        )
        if not last.units:
            return value
        options = {"start": last.units if last.way else 0, "size": last.units}
        return self.following(value, self.add("part", [value.layer], options), last.units)

    def op_slice(self, x, dim=0, start=None, end=None, step=1):
        if isinstance(x, tuple):
            return x
        if isinstance(x, Parameter):
            return Parameter(x.name, x.shape, rows=True) if self.shape[:-1] != x.shape[:-1] else x
        if self.shape == x.shape:
            return x
        wants(step in (1, None), "every other value")
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
        wants(dim % len(x.dims) == len(x.dims) - 1, "a part of an axis that is not the features")
        return self.following(x, self.add("part", [x.layer], {"start": start, "size": size}), size)

    def channels(self, x, dim, start, size):
        """Maps some channels of an image."""
        x = self.as_image(x)
        wants(dim % len(x.dims) == 1, "a part of an axis that is not the channels")
        name = self.add("channel_part", [x.layer], {"start": start, "size": size})
        last = (views.Atom(size),)
        return replace(
            x, layer=name, axes=(x.axes[0], last, *x.axes[2:]), dims=(x.dims[0], last, *x.dims[2:])
        )

    def op_pad(self, x, pads, mode="constant", value=None):
        wants(mode == "constant" and not value, f"with {mode} values of {value}")
        wants(len(pads) in (2, 4) and min(pads) >= 0, "of other axes than rows and columns")
        x = self.as_image(x)
        left, right, top, bottom = [*pads, 0, 0][:4]
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
        wants(dim == len(x.dims) - 1, "a part of an axis that is not the features")
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
            wants(self.shape[1] == x.shape[1] * x.repeated and self.shape[2:] == x.shape[2:], "")
            return x
        return self.shuffled(views.reshape(x, self.shape))

    def shuffled(self, value):
        """Returns the value after a layer that shuffles its channels, where a view and a transpose have done so."""
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
            wants([*x.shape[:2], *x.shape[3:]] == [*self.shape[:2], *self.shape[3:]], "")
            return replace(views.reshape(x, [*x.shape[:2], *x.shape[3:]]), repeated=self.shape[2])
        wants(self.shape == x.shape, "a value that is repeated")
        return x

    def op_permute(self, x, *order):
        order = order[0] if isinstance(order[0], list) else order
        return replace(x, dims=tuple(x.dims[at] for at in order))

    def op_transpose(self, x, one, other):
        if isinstance(x, Parameter):
            return turned(x)
        order = list(range(len(x.dims)))
        order[one], order[other] = order[other], order[one]
        return self.op_permute(x, order)

    def op_t(self, x):
        return turned(x) if isinstance(x, Parameter) else self.op_transpose(x, 0, 1)

    op_numpy_T = op_t

    def op_cat(self, parts, dim=0):
        if len(parts) == 2 and is_step(parts[0], "negative half") and is_step(parts[1], "half 0"):
            wants(parts[0].of == parts[1].of, "halves of two values")
            return Partial("turned half", parts[0].of)
        if isinstance(parts[0], Parameter) and len(parts) == 2:
            x = self.canonical(parts[1], forms=(3,))
            wants(dim == 1, "a parameter put beside a value")
            steps = (views.Atom(self.shape[1]),)
            name = self.add("class_token", [x.layer], weight=[(parts[0].name, "vector")])
            axes = (x.axes[0], steps, x.axes[2])
            return Value(name, axes, axes)
        if len(parts) == 1:
            return parts[0]
        if any(part.layer == "refused" for part in parts):
            return fresh("refused", self.shape)
        parts = [self.canonical(part, forms=(2, 4)) for part in parts]
        wants(
            dim % len(self.shape) == 1,
            "values one behind the other along another axis than channels",
        )
        return self.image(parts[0], self.add("concat", [part.layer for part in parts]))

    def op_upsample_nearest2d(self, x, size=None, *scales):
        return self.upsampled(x, {})

    def op_upsample_bilinear2d(self, x, size, align_corners, *scales):
        wants(not align_corners, "with align_corners=True")
        return self.upsampled(x, {"bilinear": True})

    def upsampled(self, x, options):
        x = self.as_image(x)
        factors = {new / old for new, old in zip(self.shape[2:], x.shape[2:], strict=True)}
        wants(len(factors) == 1 and min(factors) % 1 == 0, "a factor that is no whole number")
        options = {"factor": int(min(factors))} | options
        return self.image(x, self.add("upsample", [x.layer], options))
