"""Writes layers as an entry of a file of networks, with the module's path as a comment on each."""

import json
import math
from dataclasses import dataclass, replace
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
# A block that repeats must save this many lines.
WORTH_A_BLOCK = 4
# The column of the modules' paths.
WIDTH = 60
# Without a norm, and with so many layers, start values must be wider.
DEEP = 10


@dataclass(frozen=True)
class Block:
    """Layers from the place `first` on, `length` of them, which follow one another `rounds` times."""

    first: int
    length: int = 1
    rounds: int = 1

    @property
    def after(self) -> int:
        """Returns the place after its last round."""
        return self.first + self.length * self.rounds

    @property
    def saves(self) -> int:
        """Returns how many layers need not be written."""
        return self.length * (self.rounds - 1)


def renamed(layers: list[Layer]) -> list[Layer]:
    """Returns layers with the names that a specification gives them: kinds, counted."""
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
    """Marks start values that deep networks need in float32; the marks change nothing that is timed."""
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
    """Returns the entry of a network, without its number of parameters."""
    kinds = {layer.kind for layer in layers}
    family = next((name for name, own in FAMILIES.items() if own & kinds), "FCN")
    kind = "tokens" if vocabulary else "image" if len(shape) == len("chw") else "dense"
    source: dict[str, Any] = {"kind": kind, "shape": shape}
    content = {
        "label": label,
        "family": family,
        "batch": _mini_batch(math.prod(shape)),
        "input": source | ({"vocabulary": vocabulary} if vocabulary else {}),
    }
    return (
        content
        | ({} if loss == "softmax_cross_entropy" else {"loss": loss})
        | {"layers": written(layers)}
    )


def _mini_batch(numbers: int) -> int:
    """Returns a mini-batch for samples of so many numbers: a power of two, as people choose them."""
    most = max(1, min(MOST_SAMPLES, NUMBERS // numbers))
    return 2 ** int(math.log2(most))


def written(layers: list[Layer]) -> list[Any]:
    """Writes layers in the language of networks, one after another."""
    return _written(layers, [Block(place) for place in range(len(layers))])


def shortened(layers: list[Layer]) -> list[Any]:
    """Writes layers, with equal ones that follow one another as a block that repeats.

    Each round of a block defines its names again; a layer that takes one of another round's by name may get another
    input. The caller must check that the network is the same.
    """
    return _written(layers, blocks(layers))


def blocks(layers: list[Layer]) -> list[Block]:
    """Returns all layers, in order, as blocks: each repetition as one, any other layer by itself."""
    places = _places(layers)
    alike = [
        (layer.kind, layer.options, [place - places[name] for name in layer.inputs])
        for place, layer in enumerate(layers)
    ]
    found: list[Block] = []
    while (first := found[-1].after if found else 0) < len(layers):
        best = Block(first)
        for length in range(2, (len(layers) - first) // 2 + 1):
            own, rounds = alike[first : first + length], 1
            while alike[first + rounds * length : first + (rounds + 1) * length] == own:
                rounds += 1
            best = max(best, Block(first, length, rounds), key=lambda block: block.saves)
        found.append(best if best.saves >= WORTH_A_BLOCK else Block(first))
    return found


def _places(layers: list[Layer]) -> dict[str, int]:
    return {"input": -1} | {layer.name: place for place, layer in enumerate(layers)}


def _written(layers: list[Layer], blocks: list[Block]) -> list[Any]:
    """Writes blocks in the language of networks, with names and inputs only where these are not in order."""
    places = _places(layers)
    order = ["input", *(layer.name for layer in layers)]
    # In the first round of its block each layer is written.
    first_round = {place: place for place in range(-1, len(layers))}
    for block in blocks:
        for place in range(block.first, block.after):
            first_round[place] = block.first + (place - block.first) % block.length
    # Places whose layers have one name: what comes from before a block comes from the round before in all other rounds.
    same: dict[int, int] = {}
    taken: dict[int, list[int]] = {}

    def named(place: int) -> int:
        while place in same:
            place = same[place]
        return place

    for block in blocks:
        for place in range(block.first, block.first + block.length):
            if layers[place].inputs == [order[place]]:
                continue
            inputs = [places[name] for name in layers[place].inputs]
            taken[place] = [first_round[each] for each in inputs]
            for each in inputs:
                if block.rounds > 1 and each < block.first <= each + block.length:
                    one, other = named(first_round[each + block.length]), named(first_round[each])
                    same |= {one: other} if one != other else {}
    has_name = {named(each) for own in taken.values() for each in own}
    content: list[Any] = []
    for block in blocks:
        own: list[Any] = []
        for place in range(block.first, block.first + block.length):
            layer = layers[place]
            options = dict(layer.options)
            if place in taken:
                options["inputs"] = [order[named(each) + 1] for each in taken[place]]
            if named(place) in has_name:
                options["name"] = order[named(place) + 1]
            own.append({layer.kind: options} if options else layer.kind)
        content += [{"repeat": block.rounds, "layers": own}] if block.rounds > 1 else own
    return content


def text(name: str, content: dict[str, Any], layers: list[Layer]) -> str:
    """Writes an entry as YAML; a layer that repeats has the path of its first round."""
    head = {key: value for key, value in content.items() if key != "layers"}
    lines = [f"{name}:"]
    lines += [f"  {key}: {_inline(value)}" for key, value in head.items()]
    lines.append("  layers:")
    place = 0
    for each in content["layers"]:
        if isinstance(each, dict) and "repeat" in each:
            own = each["layers"]
            lines += [f"    - repeat: {each['repeat']}", "      layers:"]
            lines += [
                _line(" " * 8, one, layer.path)
                for one, layer in zip(own, layers[place:], strict=False)
            ]
            place += each["repeat"] * len(own)
        else:
            lines.append(_line(" " * 4, each, layers[place].path))
            place += 1
    return "\n".join(lines) + "\n"


def _line(indent: str, layer: Any, path: str) -> str:
    own = _inline(layer).removeprefix("{").removesuffix("}") if isinstance(layer, dict) else layer
    return f"{indent}- {own:{WIDTH}}  # {path}".rstrip(" #")


def _inline(value: Any) -> str:
    if isinstance(value, str) and ": " in value:
        return json.dumps(value)
    dumped = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
    return dumped.removesuffix("\n").removesuffix("\n...").strip()
