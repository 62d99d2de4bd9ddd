"""Checks files that other machines have made before they are taken: whether they can be what they say they are.

Each function raises what its caller shows: one sentence with the file, what is wrong with it, and what to do.
"""

import json
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from steptime.cells import shard
from steptime.cells.mixed import under_another_name

FETCH = "fetch it once more from the machine that made it, or leave it out"


class UntrustedError(shard.ShardError):
    """A file cannot be what it says it is."""


def regular(paths: Iterable[Path]) -> None:
    """Refuses paths that are no plain files, such as a link that leads nowhere."""
    for path in paths:
        if not path.is_file():
            raise UntrustedError(f"{path} is no file: remove it there, or leave it out.")


def record(path: Path) -> dict[str, Any]:
    """Returns the content of a JSON object, such as a proof or a manifest; refuses anything else."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UntrustedError(f"{path} is broken ({shard.short(error)}): {FETCH}.") from error
    if not isinstance(content, dict):
        raise UntrustedError(f"{path} is broken (it holds no record): {FETCH}.")
    return content


def peak(path: Path) -> dict[str, Any]:
    """Returns a machine's peaks as `machine.peak` and `machine.gpu_peak` write them; refuses anything else."""
    content = record(path)
    known = content.get("threads")
    if not isinstance(known, dict) or not all(
        "flops_per_second" in each for each in known.values()
    ):
        raise UntrustedError(f"{path} does not say what a machine reaches: {FETCH}.")
    return content


def arrays(path: Path) -> None:
    """Refuses a file of arrays (.npz) that is cut off or changed."""
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        broken = shard.short(error)
    if broken:
        raise UntrustedError(f"{path} is broken ({broken}): {FETCH}.")


def reference(path: Path) -> None:
    """Refuses what is no reference."""
    arrays(path)
    with np.load(path, allow_pickle=False) as content:
        if "reason" not in content:
            raise UntrustedError(f"{path} is broken (it is no reference): {FETCH}.")


def parts(path: Path) -> tuple[dict[str, Any], pa.Table, dict[str, Any]]:
    """Returns what `shard.read_parts` returns; refuses a shard under another cell's name."""
    row, rows, footer = shard.read_parts(path)
    # The file of another cell, or a second one of this, would count as a process of its own.
    if misnamed := under_another_name(path, row):
        raise UntrustedError(misnamed)
    return row, rows, footer
