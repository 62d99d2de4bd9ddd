"""Turns words of a framework or an installer into plain text, which no terminal, XML parser or file chokes on."""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Sequences of a terminal: CSI (colours), OSC (titles, links) up to BEL or ESC \, and the short ones (ECMA-48).
SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
SPACES = {"Cc", "Zl", "Zp"}
MOST_NAMED = 3
MACHINE_NAMES = {"local-cpu": "this machine", "local-gpu": "this machine's GPU"}


def plain(text: str) -> str:
    """The text in one line without terminal sequences, control and format characters; an undecodable byte is \\xNN."""
    if text.isascii() and text.isprintable():
        return text
    kept = (_character(each) for each in SEQUENCES.sub("", text))
    return " ".join("".join(kept).split())


def plain_values(value: Any) -> Any:
    """Returns JSON data in which every text, and every name, is plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [plain_values(each) for each in value]
    if isinstance(value, dict):
        return {plain(name): plain_values(each) for name, each in value.items()}
    return value


def _character(each: str) -> str:
    category = unicodedata.category(each)
    if category in SPACES:
        return " "
    if category == "Cs":
        # Python's sign for a byte that is no UTF-8 (PEP 383).
        return f"\\x{ord(each) & 0xFF:02x}"
    return "" if category.startswith("C") else each


def file_name(*things: str) -> str:
    """Returns the name of a file about these things, as a user names them; only the last part of a path counts."""
    names = (Path(thing).name if "/" in thing else thing for thing in things)
    return "_".join(re.sub(r"[^\w.-]+", "-", name).strip("-") for name in names)


def few(names: Iterable[Any], between: str = ", ") -> str:
    """Returns the first of these names, and "..." where there are more."""
    texts = list(map(str, names))
    return between.join([*texts[:MOST_NAMED], "..."] if len(texts) > MOST_NAMED else texts)


def machine_name(platform: str) -> str:
    """Returns the name of a platform for readers."""
    return MACHINE_NAMES.get(platform, platform)


def plural(number: int, word: str) -> str:
    """Writes a number and its word: '1 thread', '2 threads'."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
