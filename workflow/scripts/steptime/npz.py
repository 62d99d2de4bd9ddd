"""Texts in files of arrays, read without NumPy, which those who plan a run may not have."""

import zipfile
from pathlib import Path


def text(path: Path, name: str) -> str:
    """Returns a text of a file of arrays. Raises OSError and ValueError for a broken file, KeyError where it has none.

    NumPy's format 1.0: ten bytes, of which the last two tell the length of the header that follows, then UTF-32.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(f"{name}.npy")
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error)) from error
    start = 10 + int.from_bytes(content[8:10], "little")
    return content[start:].decode("utf-32-le").rstrip("\0")
