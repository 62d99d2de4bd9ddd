"""Shows that a run is at work in a folder, by a lock of the kernel's: it ends with its process, as Snakemake's does
not.

A closed terminal, a power cut or `kill -9` leaves Snakemake's lock, and the same command would be refused for ever.
"""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from steptime.say import say

FOLDER = Path(".snakemake")


def hold(folder: Path = FOLDER) -> int | None:
    """Locks a run's folder until this process ends, and clears what ended runs left; returns the file, or None."""
    try:
        (folder / "steptime").mkdir(parents=True, exist_ok=True)
        file = os.open(folder / "steptime" / "held", os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _open_left_locks(folder / "locks", file)
            for left in (folder / "steptime").glob("*/"):
                shutil.rmtree(left, ignore_errors=True)
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        return None
    return file


def _open_left_locks(locks: Path, file: int) -> None:
    """Removes Snakemake's locks of a folder in which no run is at work, unless another host may hold it."""
    here, last = os.uname().nodename, os.read(file, 256).decode(errors="replace")
    left = list(locks.glob("*"))
    if left and last != here:
        say(
            f"A run on {last or 'some machine'} has locked this folder. If it is at work no more, open it with "
            "`.venv/bin/snakemake --unlock`."
        )
        return
    for lock in left:
        lock.unlink(missing_ok=True)
    if left:
        say("A run that was killed had left this folder locked: it is open again.")
    os.ftruncate(file, 0)
    os.pwrite(file, here.encode(), 0)
