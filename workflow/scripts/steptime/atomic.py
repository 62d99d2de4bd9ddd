"""Writes files that are there whole or not at all, whatever stops the program that writes them."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yields a binary file that becomes `path` once it is whole on the disk. Raises OSError, and changes nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.partial")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes data as JSON, whole or not at all."""
    with atomic_write(path) as file:
        file.write(json.dumps(content, indent=1, sort_keys=True).encode() + b"\n")
