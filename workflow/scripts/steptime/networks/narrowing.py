"""Finds the small version of a network on which frameworks are proven, where its entry does not give the sizes."""

from collections.abc import Callable
from typing import Any

Entry = dict[str, Any]
# Sizes are divided by the largest of these with which the layers still fit one another.
DIVISORS = (256, 128, 64, 32, 16, 8, 4, 2, 1)
# A layer keeps so many features where it had as many, and a network so many words and steps.
LEAST, WORDS, STEPS = 8, 50, 6
# What a small version has fewer of: keys of layers, beside which numbers of windows stay.
FEATURES = ("channels", "units", "groups", "heads", "kv_heads", "start", "size")


def narrowed(entry: Entry, specify: Callable[[Entry], Any]) -> Entry:
    """Returns the entry with small numbers for all sizes; `specify` raises ValueError where they do not fit."""
    plain = {key: value for key, value in entry.items() if key != "sizes"}
    sizes = entry.get("sizes", {})
    plain |= {"input": _without_names(entry["input"], sizes), "sizes": {}, "narrow": {}}
    plain["layers"] = _without_names(entry["layers"], sizes)
    small = _smaller_images(plain, specify)
    divided = (_fitting(_divided(small, by), specify) for by in DIVISORS)
    return next((found for found in divided if found), small)


def _fitting(entry: Entry, specify: Callable[[Entry], Any]) -> Entry | None:
    try:
        specify(entry)
    except ValueError:
        return None
    return entry


def _without_names(value: Any, sizes: dict[str, int], key: str = "") -> Any:
    """Replaces names of sizes by their numbers, wherever a size can be."""
    if isinstance(value, list):
        return [_without_names(each, sizes, key) for each in value]
    if isinstance(value, dict):
        return {own: _without_names(each, sizes, own) for own, each in value.items()}
    named = isinstance(value, str) and key not in ("name", "inputs", "kind")
    return sizes.get(value, value) if named else value


def _divided(entry: Entry, by: int) -> Entry:
    """Returns the entry with features divided by `by`, and fewer words and steps."""

    def smaller(size: int) -> int:
        return size if size < LEAST else max(LEAST if by > size // LEAST else size // by, 1)

    def changed(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {own: changed(own, each) for own, each in value.items()}
        if isinstance(value, list) and key != "inputs":
            return [changed(key, each) for each in value]
        if type(value) is not int:
            return value
        if key in ("vocabulary", "rows"):
            return min(value, WORDS)
        return smaller(value) if key in FEATURES else value

    source, layers = dict(entry["input"]), changed("layers", entry["layers"])
    if "vocabulary" in source:
        source["vocabulary"] = min(source["vocabulary"], WORDS)
        source["shape"] = [min(source["shape"][0], STEPS)]
    elif source["kind"] == "image":
        # An image has few channels, as colours are, and no layer has more.
        pass
    else:
        *steps, features = source["shape"]
        source["shape"] = [*(min(each, STEPS) for each in steps), smaller(features)]
    return entry | {"input": source, "layers": layers}


def _smaller_images(entry: Entry, specify: Callable[[Entry], Any]) -> Entry:
    """Halves images as often as every map that had two rows and columns keeps two."""
    if entry["input"]["kind"] != "image":
        return entry
    wide = _wide_maps(specify(entry))
    while True:
        channels, *extents = entry["input"]["shape"]
        # An image of one row keeps it.
        long = [extent for extent in extents if extent > 1]
        if not long or any(extent % 2 for extent in long):
            return entry
        shape = [channels, *(extent // 2 if extent > 1 else 1 for extent in extents)]
        smaller = _fitting(entry | {"input": entry["input"] | {"shape": shape}}, specify)
        if smaller is None or not wide <= _wide_maps(specify(smaller)):
            return entry
        entry = smaller


def _wide_maps(spec: Any) -> set[str]:
    """Returns the layers whose images have two rows and columns or more; for an input of one row, two columns."""
    one_row = spec["input"]["shape"][1] == 1
    return {
        node["name"]
        for node in spec["nodes"]
        if len(node["shape"]) == 3 and min(node["shape"][2 if one_row else 1 :]) > 1
    }
