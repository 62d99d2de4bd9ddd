"""Our layers as PyTorch's operators lead to them, and where their parameters come from."""

from dataclasses import dataclass, field, replace
from typing import Any

from steptime.imported import views
from steptime.imported.views import Misfit, Value, bare, fresh, shown

# For one of our parameters: [name of the module's, how it is taken], whose parts are side by side.
Source = list[tuple[str, str]]


@dataclass
class Layer:
    """One of our layers, and where its parameters come from."""

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
    """A part of what becomes one layer, or an attention: of which value, and with what."""

    step: str
    of: Value
    number: float = 0.0


@dataclass
class End:
    """The last state of the recurrent layer `of`; `units` says how many each of two directions has, if two."""

    of: Value
    units: int
    way: str


class Layers:
    """Layers so far, in order, and the layers that bring a value into the form that a layer wants."""

    # The shape that the node has which is mapped now, and the path of its module.
    shape: list[int]
    path: str

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.counts: dict[str, int] = {}
        # How often linears and embeddings take a parameter, and the table of one that is shared.
        self.uses: dict[str, int] = {}
        self.tables: dict[str, str] = {}

    def add(
        self, kind: str, inputs: list[str], options: dict[str, Any] | None = None, **sources: Source
    ) -> str:
        """Adds a layer and returns its name; after a refused input, adds nothing."""
        if "refused" in inputs:
            return "refused"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        name = f"{kind}{self.counts[kind]}"
        self.layers.append(Layer(name, kind, options or {}, inputs, self.path, sources))
        return name

    def settled(self, value: Value) -> Value:
        """Returns the value without fixed atoms: a layer makes the part or the step that the tensor shows."""
        wants(not isinstance(value, Partial), "a form that no layer has")
        wants(not value.turned and value.repeated == 1, "heads that no attention takes")
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
        """Returns the value after the fewest copies that make axes and dims fit. Raises Misfit where none do."""
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
        """Returns the value with each axis as one dimension; with `any_order`, mini-batch and steps may share one."""
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
        """Returns the value as a row or a sequence whose last axis is the last dimension."""
        if value.layer == "refused":
            return value

        def fits(axes: tuple, dims: tuple) -> bool:
            return len(axes) in (2, 3) and bare(axes[-1]) == bare(dims[-1]) and bool(bare(dims[-1]))

        return self.arranged(value, fits)

    def as_image(self, value: Value) -> Value:
        """Returns the value as an image, channels first. Raises Misfit."""
        if value.layer == "refused":
            return value
        value = self.settled(value)
        if len(value.axes) == 4 and shown(value.axes) == shown(value.dims):
            return value
        raise Misfit("its input is no image of ours")

    def following(self, value: Value, layer: str, features: int | None = None) -> Value:
        """Returns the output of a layer that keeps all axes, except perhaps the number of features."""
        if features is None:
            return replace(value, layer=layer)
        last = (views.Atom(features),)
        return replace(
            value, layer=layer, axes=(*value.axes[:-1], last), dims=(*value.dims[:-1], last)
        )

    def image(self, x, name):
        """Returns the output of a layer that makes an image of the node's shape, which may leave out a single row."""
        _, channels, *extents = fresh(name, self.shape).axes
        one_row = ((),) if len(extents) == 1 else ()
        axes = (x.axes[0], channels, *one_row, *extents)
        return Value(name, axes, (x.dims[0], channels, *extents))


def is_step(value: Any, step: str) -> bool:
    return isinstance(value, Partial) and value.step == step


def wants(holds: Any, otherwise: str) -> None:
    if not holds:
        raise Misfit(otherwise)


def turned(weight: Any) -> Parameter:
    """Returns a parameter's transpose, as `op_linear` takes it from a module of linear."""
    wants(isinstance(weight, Parameter) and len(weight.shape) == 2, "a product of two values")
    return Parameter(weight.name, weight.shape[::-1], not weight.turned)
