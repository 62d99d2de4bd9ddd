"""Writes layers as an entry of a file of networks, with the module's path as a comment on each."""

import json
import math
from dataclasses import replace
from typing import Any

import yaml

from steptime.imported.found import Layer

# A mini-batch of so many numbers is usual, and of no more samples.
NUMBERS, MOST_SAMPLES = 2**22, 64
FAMILIES = {
    "Transformer": {"attention"},
    "RNN": {"lstm", "gru", "rnn"},
    "CNN": {"conv", "grouped_conv"},
}
# Without a norm, and with so many layers, start values must be wider.
DEEP = 10


def renamed(layers: list[Layer]) -> list[Layer]:
    """Layers by the names that a specification gives them: kinds, counted."""
    counts: dict[str, int] = {}
    names = {"input": "input"}
    for layer in layers:
        counts[layer.kind] = counts.get(layer.kind, 0) + 1
        names[layer.name] = f"{layer.kind}{counts[layer.kind]}"
    return [
        replace(layer, name=names[layer.name], inputs=[names[each] for each in layer.inputs])
        for layer in layers
    ]


def started(layers: list[Layer]) -> list[Layer]:
    """Layers with the marks of start values that deep networks need in float32; they change nothing that is timed."""
    kinds = [layer.kind for layer in layers]
    adds = {name for layer in layers if layer.kind == "add" for name in layer.inputs[:1]}
    norms = {"batch_norm", "group_norm"}
    has_norm = any("norm" in kind for kind in kinds)
    for layer in layers:
        if layer.kind in norms:
            if "add" not in kinds:
                layer.options["raised"] = True
            elif layer.name in adds:
                layer.options["ends_branch"] = True
        if layer.kind in ("conv", "grouped_conv") and not has_norm and len(kinds) > DEEP:
            layer.options["wide_start"] = True
    return layers


def entry(
    layers: list[Layer], label: str, shape: list[int], vocabulary: int, loss: str
) -> dict[str, Any]:
    """The entry of a network, but for its number of parameters."""
    kinds = {layer.kind for layer in layers}
    family = next((name for name, own in FAMILIES.items() if own & kinds), "FCN")
    kind = "tokens" if vocabulary else "image" if len(shape) == len("chw") else "dense"
    source: dict[str, Any] = {"kind": kind, "shape": shape}
    content = {
        "label": label,
        "family": family,
        "batch": max(1, min(MOST_SAMPLES, NUMBERS // math.prod(shape))),
        "input": source | ({"vocabulary": vocabulary} if vocabulary else {}),
    }
    return (
        content
        | ({} if loss == "softmax_cross_entropy" else {"loss": loss})
        | {"layers": written(layers)}
    )


def written(layers: list[Layer]) -> list[Any]:
    """Layers in the language of networks: names and inputs only where they are not in order."""
    before = ["input", *(layer.name for layer in layers)]
    astray = {
        name
        for layer, last in zip(layers, before, strict=False)
        if layer.inputs != [last]
        for name in layer.inputs
    }
    content: list[Any] = []
    for layer, last in zip(layers, before, strict=False):
        options = dict(layer.options)
        if layer.inputs != [last]:
            options["inputs"] = layer.inputs
        if layer.name in astray:
            options["name"] = layer.name
        content.append({layer.kind: options} if options else layer.kind)
    return content


def text(name: str, content: dict[str, Any], layers: list[Layer]) -> str:
    """An entry as YAML."""
    head = {key: value for key, value in content.items() if key != "layers"}
    lines = [f"{name}:"]
    lines += [f"  {key}: {_inline(value)}" for key, value in head.items()]
    lines.append("  layers:")
    width = max(len(_inline(each)) for each in content["layers"])
    for each, layer in zip(content["layers"], layers, strict=True):
        own = _inline(each).removeprefix("{").removesuffix("}") if isinstance(each, dict) else each
        lines.append(f"    - {own:{min(width, 60)}}  # {layer.path}".rstrip(" #"))
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, str) and ": " in value:
        return json.dumps(value)
    dumped = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
    return dumped.removesuffix("\n").removesuffix("\n...").strip()
