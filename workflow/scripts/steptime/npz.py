"""Reads texts in files of arrays without NumPy, which a machine that plans a run may lack."""

import zipfile
from pathlib import Path


def text(path: Path, name: str) -> str:
    """Returns a text of a file of arrays. Raises OSError and ValueError for a broken file, KeyError where it has none.

    NumPy's format 1.0: ten bytes, the last two of which are the length of the header that follows, then UTF-32.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(f"{name}.npy")
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error)) from error
    start = 10 + int.from_bytes(content[8:10], "little")
    return content[start:].decode("utf-32-le").rstrip("\0")
