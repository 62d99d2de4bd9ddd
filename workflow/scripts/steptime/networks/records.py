"""Records that are found by name: each is a constant of a module of its own in a package that lists
its folder.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


class Records(Mapping[str, Any]):
    """By module name, the constant that every module of a package has; a module is imported when it
    is asked for.
    """

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

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def write_instead(name: str, known: Iterable[str]) -> str:
    """What to write in place of an unknown name: the nearest known one, or one of all."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, 1)
    return f"write '{near[0]}'" if near else f"write one of {', '.join(known)}"
