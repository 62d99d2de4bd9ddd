"""Takes a network apart: makes a network of each of its layers, at its own sizes, to be proven and timed like any
other.

A layer that multiplies by weights keeps the norms, activations and poolings that follow, up to the next such layer. A
bias or a scale is put in front, so that its input has a gradient as in the whole network, and a softmax behind. What
these two take is timed alone, `around` a shape, and subtracted: one half in front, one half behind.
"""

import json
from typing import Any

from shared.specification import pair
from steptime.networks.counts import count_parameters
from steptime.networks.layers import LAYERS
from steptime.networks.specification import INPUT, resolve, specify

Entry = dict[str, Any]
Node = dict[str, Any]
# One half of what is around a layer is in front of it, one half behind.
HALF = 0.5
# Marks of start values: they change nothing that is timed.
START_MARKS = ("ends_branch", "raised", "wide_start")
# Behind an image that is normed, and nothing else, a mean over places would leave no gradient.
NORMS = ("batch_norm", "group_norm")


def of_network(name: str, catalogue: dict[str, Entry]) -> dict[str, Entry]:
    """Returns the entries of a network's layers by name, equal layers once, and those of what is put around them.

    In `part_of`, each names its network and layer, how many `times` the network has it, and under `less` which share of
    which other entry to subtract.
    """
    whole, spec = resolve(name, catalogue), specify(name, catalogue)
    label = whole.get("label", name)
    found: dict[str, Entry] = {}
    around: dict[str, tuple[str, list[int], list[str]]] = {}
    named: list[str] = []
    for chain in _chains(spec["nodes"]):
        first, last = chain[0], chain[-1]
        is_first, is_last = first["inputs"] == [INPUT], last is spec["nodes"][-1]
        layers = [_layer(node) for node in chain]
        key = json.dumps([is_first, is_last, first["in_shape"], layers])
        if key in found:
            found[key]["part_of"]["times"] += 1
            continue
        words = _words(chain)
        named.append(words)
        # Two may differ in what their words do not say, such as padding.
        if (count := named.count(words)) > 1:
            words += f" ({count})"
        source = spec["input"] if is_first else _source(first["in_shape"])
        front = [] if is_first else [_in_front(first["in_shape"])]
        behind = [] if is_last else _behind(last)
        sides = [] if is_first else [(first["in_shape"], _ends(first["in_shape"]))]
        sides += [] if is_last else [(last["shape"], behind)]
        less: dict[str, float] = {}
        for shape, ends in sides:
            at = json.dumps([shape, ends])
            own = around.setdefault(at, (f"{name}-around{len(around) + 1}", shape, ends))[0]
            less[own] = less.get(own, 0) + HALF
        found[key] = _entry(
            whole,
            source,
            [*front, *layers, *behind],
            {"network": name, "layer": words, "times": 1, "less": less},
            f"{label}: {words}",
        )
    parts = {f"{name}-layer{at}": entry for at, entry in enumerate(found.values(), 1)}
    for own, shape, ends in around.values():
        told = {"network": name, "layer": f"around {_shape_words(shape)}", "times": 0, "less": {}}
        ending = ", flat" if ends == ["flatten"] else ""
        parts[own] = _entry(
            whole,
            _source(shape),
            [_in_front(shape), *ends],
            told,
            f"{label}: {told['layer']}{ending}",
        )
    return parts


def _chains(nodes: list[Node]) -> list[list[Node]]:
    """Returns chains: each node that multiplies by weights, with the nodes behind it that do not and only it feeds."""
    takers: dict[str, list[Node]] = {}
    for node in nodes:
        for each in node["inputs"]:
            takers.setdefault(each, []).append(node)

    def following(node: Node) -> Node | None:
        own = takers.get(node["name"], [])
        if len(own) != 1:
            return None
        taker = own[0]
        if taker["op"] == "add" and taker["inputs"][0] == node["name"]:
            # What is added comes from elsewhere: a sum is in no layer, and what follows it is.
            return following(taker)
        if len(taker["inputs"]) > 1 or LAYERS[taker["op"]].counted:
            return None
        return taker

    chains = []
    for node in nodes:
        if LAYERS[node["op"]].counted or node["inputs"] == [INPUT]:
            chain = [node]
            while (behind := following(chain[-1])) is not None:
                chain.append(behind)
            chains.append(chain)
    return chains


def _layer(node: Node) -> Any:
    kind = LAYERS[node["op"]]
    keys = (*kind.needs, *kind.defaults, *kind.flags, *kind.options)
    options = {key: node[key] for key in keys if key in node and key not in START_MARKS}
    return {node["op"]: options} if options else node["op"]


def _entry(whole: Entry, source: Entry, layers: list[Any], part: Entry, label: str) -> Entry:
    entry = {"label": label, "family": whole["family"], "batch": whole["batch"], "part_of": part}
    entry |= {"input": source, "layers": layers}
    return entry | {"parameters": count_parameters(specify("part", {"part": entry}))}


def _source(shape: list[int]) -> Entry:
    return {"kind": "image" if len(shape) == len("chw") else "dense", "shape": shape}


def _in_front(shape: list[int]) -> str:
    return "layer_scale" if len(shape) == len("chw") else "bias"


def _ends(shape: list[int]) -> list[str]:
    return ["global_average_pool"] if len(shape) == len("chw") else []


def _behind(last: Node) -> list[str]:
    ends = _ends(last["shape"])
    return ["flatten"] if ends and last["op"] in NORMS else ends


def _words(chain: list[Node]) -> str:
    first = chain[0]
    inner, outer = first["in_shape"], first["shape"]
    if "kernel" in first:
        rows, columns = pair(first["kernel"])
        told = f"{rows}×{columns}, {inner[0]} to {outer[0]}, of {_shape_words(inner[1:])}"
        down, _ = pair(first["stride"])
        told += f" by {down}" if down > 1 else ""
    else:
        told = f"{first.get('vocabulary', inner[-1])} to {outer[-1]}"
    names = [node["op"].replace("_", " ") for node in chain]
    return ", ".join([f"{names[0]} {told}", *names[1:]])


def _shape_words(shape: list[int]) -> str:
    return "×".join(map(str, shape))
