"""Proves that an imported network is the same function as the module that it was imported from.

The module has computed one training step in float64, in its own Python: outputs, loss and the gradient of each
parameter; and once more with inputs and weights moved by 1e-15. Ours is the golden run from the same weights.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steptime.imported.found import Layer
from steptime.prove import golden

Arrays = dict[str, np.ndarray]
# What two right calculations in float64 may differ by, and so many times the module's own movement.
LEAST, MOVEMENTS = 1e-9, 100.0
# Where the module moves by more than this, a wrong network could not be told from a right one.
MOST = 1e-6
# A gradient below this part of the largest one may be zero by mathematics, and noise alone.
FAINT = 1e-3
# What else makes gradients differ where outputs do not.
BACKWARD = ", though its outputs agree: let autograd do it, a backward of yours is not imported"
TAKEN = {
    "same": lambda values: values,
    "transposed": lambda values: values.T,
    "pixel": lambda values: values[:, :, None, None],
    "of one pixel": lambda values: values.reshape(values.shape[:2]).T,
    "one row": lambda values: values[:, :, None],
    "matrix": lambda values: values.reshape(-1, values.shape[-1]),
    "vector": lambda values: values.reshape(-1),
    "second": lambda values: values,
}


@dataclass(frozen=True)
class Verdict:
    """What differs, '' where nothing does, and the largest differences of outputs and of gradients."""

    reason: str
    outputs: float = 0.0
    gradients: float = 0.0


def placed(layers: list[Layer], parameters: dict[str, list[int]]) -> str:
    """Names a parameter of the module that has no place in our layers, or several; '' where each has one."""
    places: dict[str, list[str]] = {name: [] for name in parameters}
    for layer in layers:
        for role, sources in layer.sources.items():
            for name, _ in sources:
                places[name].append(f"{layer.name}/{role}")
    for name, own in places.items():
        if not own:
            return f"its parameter {name} has no part in the output: take it out of the module"
        if len(own) > 1:
            return f"its parameter {name} is shared by {' and '.join(own)}: give each a parameter of its own"
    return ""


def compare(spec: dict[str, Any], layers: list[Layer], arrays: Arrays) -> Verdict:
    """Compares a step of our network with the module's, from the module's weights."""
    weights = {
        f"{layer.name}/{role}": _joined(sources, arrays, "parameter")
        for layer in layers
        for role, sources in layer.sources.items()
    }
    wanted = {entry["name"]: tuple(entry["shape"]) for entry in spec["parameters"]}
    shapes = {name: values.shape for name, values in weights.items()}
    if shapes != wanted:
        name = next(name for name in {**wanted, **shapes} if wanted.get(name) != shapes.get(name))
        return Verdict(
            f"{name} has the shape {wanted.get(name)} here and {shapes.get(name)} in the module"
        )
    # The module has an image of one row without that axis.
    inputs = arrays["inputs"].reshape(-1, *spec["input"]["shape"])
    logits, tape = golden.forward(spec, weights, inputs)
    outputs = arrays["outputs"].reshape(logits.shape)
    off = float(np.abs(logits - outputs).max() / np.abs(outputs).max())
    moved = float(np.abs(arrays["moved/outputs"]).max() / np.abs(outputs).max())
    if reason := _judged("its outputs", off, moved):
        return Verdict(reason, off)
    targets = arrays["labels"].reshape(
        logits.shape[:-1] if arrays["labels"].dtype.kind == "i" else logits.shape
    )
    loss, flowing = golden.loss_of(spec)(logits, targets)
    if abs(loss - arrays["loss"]) > max(LEAST, MOVEMENTS * moved) * abs(arrays["loss"]):
        return Verdict(
            f"its loss is {loss:.12g} here and {float(arrays['loss']):.12g} in the module", off
        )
    gradients, worst = golden.backward(spec, tape, flowing), 0.0
    largest = max(float(np.linalg.norm(values)) for values in gradients.values())
    for layer in layers:
        for role, sources in layer.sources.items():
            ours = gradients[f"{layer.name}/{role}"]
            for theirs, movement, names in _shares(layer, sources, arrays):
                if theirs is None:
                    return Verdict(
                        f"its parameter {names} gets no gradient: take it out, or do not freeze it",
                        off,
                    )
                own = ours[..., : theirs.shape[-1]] if theirs.shape != ours.shape else ours
                size = max(float(np.linalg.norm(theirs)), FAINT * largest)
                found = float(np.linalg.norm(own - theirs)) / size
                worst = max(worst, found)
                moved = float(np.linalg.norm(movement)) / size
                if reason := _judged(f"the gradients of {names}", found, moved, BACKWARD):
                    return Verdict(reason, off, worst)
    return Verdict("", off, worst)


def _judged(what: str, off: float, moved: float, hint: str = "") -> str:
    """Says why a difference is more than rounding makes; '' where it is not."""
    if moved * MOVEMENTS > MOST:
        return (
            f"{what} in the module move by {moved:.2g} of their size when inputs and weights move by 1e-15, so nothing "
            "can be proven: take larger images"
        )
    if not off <= max(LEAST, MOVEMENTS * moved):
        return f"{what} differ by {off:.2g} of their size{hint}"
    return ""


def _joined(sources: list[tuple[str, str]], arrays: Arrays, kind: str) -> np.ndarray:
    """Makes one of our parameters from the module's: side by side, or added where one is a second bias."""
    parts = [TAKEN[how](arrays[f"{kind}/{name}"]) for name, how in sources if how != "second"]
    values = np.concatenate(parts, -1) if len(parts) > 1 else parts[0]
    for name, how in sources:
        if how == "second":
            values = values + arrays[f"{kind}/{name}"]
    return np.ascontiguousarray(values)


def _shares(layer: Layer, sources: list[tuple[str, str]], arrays: Arrays) -> Any:
    """Yields the module's gradients in our layout, with how far they moved and their names; each bias by itself."""
    parts = [(name, how) for name, how in sources if how != "second"]
    names = ", ".join(name for name, _ in parts)
    if any(f"gradient/{name}" not in arrays for name, _ in sources):
        yield None, None, names
        return
    yield _joined(parts, arrays, "gradient"), _joined(parts, arrays, "moved/gradient"), names
    for name, how in sources:
        if how == "second":
            values, moved = arrays[f"gradient/{name}"], arrays[f"moved/gradient/{name}"]
            # Another bias is inside the reset gate, where it stays zero.
            count = 2 * len(values) // 3 if layer.kind == "gru" else len(values)
            yield values[:count], moved[:count], name
