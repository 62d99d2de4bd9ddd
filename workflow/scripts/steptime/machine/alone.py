"""Keeps to one cell at a time on a machine, whatever its folder and user, by a lock of the kernel's on a file for all.

The kernel releases the lock when its holder ends, in whatever way.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steptime.machine import placement
from steptime.say import say

# Where every user of a machine may write; the last is a user's own.
FOLDERS = ("/tmp", "/dev/shm", os.environ.get("XDG_RUNTIME_DIR", ""))
# For tests, which are not to wait for a run beside them.
ELSEWHERE = "STEPTIME_LOCKS"
LOCKS = Path("/proc/locks")


@contextmanager
def alone(beside: bool = False) -> Iterator[None]:
    """Waits until no other run measures, and keeps others out; with `beside`, all who say so may be inside."""
    file = _take(fcntl.LOCK_SH if beside else fcntl.LOCK_EX)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def _take(kind: int) -> int | None:
    """Returns the locked file; None where there is none."""
    folders = (os.environ[ELSEWHERE],) if ELSEWHERE in os.environ else FOLDERS
    for folder in folders:
        path = Path(folder or ".") / _name()
        with suppress(OSError):
            while folder:
                file = _open(path)
                _lock(file, kind)
                # A program that cleans such folders may have removed it meanwhile: then others lock another file.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(file), os.stat(path)):
                        return file
                os.close(file)
    say(
        "No file could be locked in any of "
        f"{', '.join(filter(None, folders))}: nothing keeps another run from measuring beside this one."
    )
    return None


def _open(path: Path) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        # To create it would be refused where it is another user's (fs.protected_regular).
        return os.open(path, flags)
    except FileNotFoundError:
        file = os.open(path, flags | os.O_CREAT, 0o644)
        with suppress(PermissionError):
            # Whatever this user's umask is.
            os.fchmod(file, 0o644)
        return file


def _lock(file: int, kind: int) -> None:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"    waits for its turn: another run measures on this machine{_holder(file)}")
        fcntl.flock(file, kind)


def _holder(file: int) -> str:
    """Names the process that has locked a file; '' where the kernel does not say."""
    inode = str(os.fstat(file).st_ino)
    with suppress(OSError):
        for line in LOCKS.read_text().splitlines():
            fields = line.split()
            if "FLOCK" in fields and "->" not in fields and fields[5].rpartition(":")[2] == inode:
                return f" (process {fields[4]})"
    return ""


def _name() -> str:
    """Names the machine; nodes that a test plays on one machine have names of their own."""
    node, host = (name.partition(".")[0] for name in (placement.name(), os.uname().nodename))
    return "steptime.lock" if node == host else f"steptime-{node}.lock"
