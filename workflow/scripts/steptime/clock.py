"""Files from the future: what a clock that was set back, or another host's, has left.

Snakemake removes what was just made where one of its inputs is newer, be it a whole night's cell.
"""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path


def to_present(folders: Iterable[Path]) -> int:
    """Gives files whose time is yet to come the present one, all of them the same; returns how many there were."""
    now = time.time_ns()
    future = [path for folder in folders for path, written in _files(folder) if written > now]
    for path in future:
        os.utime(path, ns=(now, now))
    return len(future)


def not_before(output: Path, inputs: Iterable[Path]) -> None:
    """Gives an output the time of its newest input where that is later: the clock was set back meanwhile."""
    newest = max(path.stat().st_mtime_ns for path in inputs)
    if output.stat().st_mtime_ns < newest:
        os.utime(output, ns=(newest, newest))


def _files(folder: Path | str) -> Iterator[tuple[str, int]]:
    """Every file below a folder with its time in ns."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path, entry.stat(follow_symlinks=False).st_mtime_ns
