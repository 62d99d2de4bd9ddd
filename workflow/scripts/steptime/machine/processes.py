"""Reads what the kernel says of a worker and the programs below it: some frameworks are programs that Python calls."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

from shared.processes import children, family, text

PR_SET_CHILD_SUBREAPER = 36
# What does not end in this time sleeps in the kernel, where nothing reaches it.
ENDING_SECONDS = 5.0


def ancestors() -> Iterator[int]:
    """Yields the processes above this one, the nearest first."""
    return (each.pid for each in psutil.Process().parents())


def adopt_orphans() -> set[int]:
    """Makes this process the parent of what its children leave behind; returns the children that it has now."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    return set(children(os.getpid()))


def end(child: subprocess.Popen[bytes], others: set[int]) -> None:
    """Ends a child and all that it started, in whatever session, after `adopt_orphans` returned the `others`."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + ENDING_SECONDS
    # A killed process may have started another one, and its children that are left come to this process.
    while left := set(children(os.getpid())) - others:
        for pid in (member for orphan in left for member in family(orphan)):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        ended = [pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]]
        if not ended and time.monotonic() > deadline:
            break
        time.sleep(0 if ended else 0.002)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0)


def memory(pid: int) -> tuple[int, int | None]:
    """Returns resident bytes of a process and those below it, now and at most (VmRSS and VmHWM of proc(5))."""
    resident, peak = 0, 0
    for member in family(pid):
        for line in text(f"/proc/{member}/status").splitlines():
            key, _, rest = line.partition(":")
            if key == "VmRSS":
                resident += int(rest.split()[0]) * 1024
            elif key == "VmHWM":
                peak += int(rest.split()[0]) * 1024
    return resident, peak or None


def proportional_memory(pid: int) -> int:
    """Returns resident bytes of a process and those below it, with shared pages counted once (Pss of proc(5))."""
    texts = (text(f"/proc/{member}/smaps_rollup") for member in family(pid))
    lines = (line.split() for text in texts for line in text.splitlines())
    return sum(int(words[1]) * 1024 for words in lines if words[:1] == ["Pss:"])


def kernel_kills() -> int:
    """Returns how many processes the kernel has killed for want of memory since it was started."""
    lines = text("/proc/vmstat").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
