"""Describes how a PyTorch tensor shows one of our values: its axes split, merged and in another order, without a copy.

One of our values has axes, the mini-batch first, each of one or more atoms. A tensor shows the same atoms, some of them
in each of its dimensions. `view`, `permute` and `select` change the dimensions; a layer may need them equal to the
axes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace


class Misfit(Exception):
    """A view that none of our layers makes."""


@dataclass(eq=False)
class Atom:
    """A part of an axis that no view splits further."""

    size: int


Atoms = tuple[Atom, ...]


@dataclass(frozen=True)
class Value:
    """The output of one of our layers, as a tensor shows it. Of `fixed` atoms, only one index is shown."""

    layer: str
    axes: tuple[Atoms, ...]
    dims: tuple[Atoms, ...]
    fixed: dict[Atom, int] = field(default_factory=dict)
    # Only an attention takes these: the base by which heads are turned, and how many queries share each of them.
    turned: float = 0.0
    repeated: int = 1

    @property
    def shape(self) -> list[int]:
        return [sizes(atoms) for atoms in self.dims]

    @property
    def form(self) -> str:
        return {1: "words", 2: "row", 3: "sequence", 4: "image"}.get(len(self.axes), "")


def sizes(atoms: Atoms) -> int:
    return math.prod(atom.size for atom in atoms)


def fresh(layer: str, shape: list[int]) -> Value:
    """Returns the output of a layer with this shape, the mini-batch first, shown as it is."""
    axes = tuple((Atom(extent),) for extent in shape)
    return Value(layer, axes, axes)


def reshape(value: Value, wanted: list[int]) -> Value:
    """Returns the same numbers in dimensions of other sizes. Raises Misfit where a dimension is no part of ours."""
    left = [atom for atoms in value.dims for atom in atoms if atom.size > 1]
    dims: list[Atoms] = []
    swaps: dict[Atom, Atoms] = {}
    for extent in wanted:
        taken: list[Atom] = []
        while (rest := extent // sizes(tuple(taken))) > 1:
            if not left:
                raise Misfit("a view of other sizes")
            atom = left.pop(0)
            if atom.size > rest:
                if atom.size % rest:
                    raise Misfit("a view that cuts an axis unevenly")
                parts = Atom(rest), Atom(atom.size // rest)
                swaps[atom] = parts
                atom, left = parts[0], [parts[1], *left]
            taken.append(atom)
        if sizes(tuple(taken)) != extent:
            raise Misfit("a view that cuts an axis unevenly")
        dims.append(tuple(taken))

    def swapped(atoms: Atoms) -> Atoms:
        parts = tuple(part for atom in atoms for part in swaps.get(atom, (atom,)))
        return swapped(parts) if any(atom in swaps for atom in parts) else parts

    axes = tuple(swapped(tuple(a for a in atoms)) for atoms in value.axes)
    return replace(value, axes=axes, dims=tuple(map(swapped, dims)))


def split(value: Value, dim: int, parts: int) -> Value:
    """Splits a dimension into so many parts, which become a dimension before it."""
    shape = value.shape
    return reshape(value, [*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]])


def select(value: Value, dim: int, index: int) -> Value:
    """Returns one index of a dimension, without the dimension."""
    atoms = [atom for atom in value.dims[dim] if atom.size > 1]
    others = value.dims[:dim] + value.dims[dim + 1 :]
    if not atoms:
        return replace(value, dims=others)
    if len(atoms) > 1:
        raise Misfit("one index of a dimension of several axes")
    return replace(value, dims=others, fixed={**value.fixed, atoms[0]: index})


def bare(atoms: Atoms) -> Atoms:
    """Returns atoms without those of size one, which no view can tell apart."""
    return tuple(atom for atom in atoms if atom.size > 1)


def shown(axes: tuple[Atoms, ...]) -> list[Atoms]:
    return [bare(atoms) for atoms in axes if bare(atoms)]


def arrangements(value: Value) -> Iterator[tuple[list[str], tuple[Atoms, ...]]]:
    """Yields the axes that a value can have after no, one or two copying layers, with these layers."""
    yield [], value.axes
    if len(value.axes) == len(("batch", "channels", "height", "width")):
        batch, channels, height, width = value.axes
        yield ["flatten"], (batch, channels + height + width)
        yield ["patches"], (batch, height + width, channels)
        yield ["patches", "transpose"], (batch, channels, height + width)
        yield ["patches", "unstack"], (batch, height + width + channels)
    if len(value.axes) == len(("batch", "steps", "features")):
        batch, steps, features = value.axes
        yield ["unstack"], (batch, steps + features)
        yield ["transpose"], (batch, features, steps)
        yield ["transpose", "unstack"], (batch, features + steps)
