"""Finds records by name: each is a constant in a module of its own, in a package that lists its folder."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


class Records(Mapping[str, Any]):
    """Maps module names to a constant that every module of a package has; imports a module when it is asked for."""

    def __init__(self, package: str, folders: Iterable[str], constant: str) -> None:
        self.package, self.constant = package, constant
        self.names = sorted(
            path.stem
            for folder in folders
            for path in Path(folder).glob("*.py")
            if not path.stem.startswith("_")
        )
        self.found: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.found:
            if name not in self.names:
                raise KeyError(name)
            module = import_module(f"{self.package}.{name}")
            self.found[name] = getattr(module, self.constant)
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


# What people miss, and what there is in its place.
WISHES = {
    "same": "write a number: `same` is for a stride of 1 and an odd kernel",
    "valid": "write padding: 0",
    "activation": "write the function as a layer behind it, such as `- relu`",
    "softmax": "leave it out: the loss softmax_cross_entropy has it",
    "return_sequences": "write last_step behind the layer where one step is wanted",
    "betas": "write beta1 and beta2, each with its number",
    "reshape": "write flatten, unstack or patches where it is one of them, or leave it out",
    "conv1d": "write an input of kind image, [channels, 1, steps], and conv with kernel: [1, k]",
    "label_smoothing": "leave it out: the loss is that of the plain labels",
}
for missing in ("selu", "prelu", "mish"):
    WISHES[missing] = "write leaky_relu, relu, gelu, silu, tanh or sigmoid"
for missing in ("cross_entropy", "crossentropy", "categorical_crossentropy", "nll"):
    WISHES[missing] = "write softmax_cross_entropy, which takes the scores, or leave it out"
for missing in ("linear", "fc", "fully_connected", "inner_product"):
    WISHES[missing] = "write dense"
WISHES["swish"] = "write silu"
for missing in ("clip_norm", "clipnorm", "clip_value", "clipvalue", "gradient_clipping"):
    WISHES[missing] = "leave it out: gradients are not clipped"


def as_number(text: str) -> str:
    """Writes the number that a text is as YAML wants it; '' where it is none."""
    try:
        return f"{float(text):g}"
    except ValueError:
        return ""


def check_keys(
    owner: str,
    options: dict[str, Any],
    needs: tuple[str, ...],
    others: tuple[str, ...],
    lacks: str = "{0} lacks '{1}'; write {1}: with its value",
) -> None:
    """Raises ValueError for a key that its owner does not know, and for one that it lacks."""
    for key in options:
        if key not in needs + others:
            raise ValueError(f"{owner} has no '{key}'; {write_instead(key, needs + others)}")
    for key in needs:
        if key not in options:
            raise ValueError(lacks.format(owner, key))


def write_instead(name: str, known: Iterable[str]) -> str:
    """Says what to write instead of an unknown name: the nearest known one, or one of all."""
    name, known = name.lower(), sorted(known)
    if name in WISHES:
        return WISHES[name]
    near = difflib.get_close_matches(name, known, 1)
    return f"write '{near[0]}'" if near else f"write one of {', '.join(known)}"
