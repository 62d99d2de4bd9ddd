"""What the kernel tells of a worker and the programs below it: some frameworks are programs that Python speaks to."""

import os
from pathlib import Path


def family(pid: int) -> list[int]:
    """A process and those below it, as far as they are still there."""
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        for task in _listed(f"/proc/{found[-1]}/task"):
            left += map(int, _text(f"/proc/{found[-1]}/task/{task}/children").split())
    return found


def memory(pid: int) -> tuple[int, int | None]:
    """Resident bytes now, of a process and those below it, and their high-water marks (VmRSS and VmHWM of proc(5))."""
    resident, peak = 0, 0
    for member in family(pid):
        for line in _text(f"/proc/{member}/status").splitlines():
            key, _, rest = line.partition(":")
            if key == "VmRSS":
                resident += int(rest.split()[0]) * 1024
            elif key == "VmHWM":
                peak += int(rest.split()[0]) * 1024
    return resident, peak or None


def libraries(pid: int) -> list[str]:
    """Absolute paths of the shared libraries that a process and those below it have loaded."""
    mapped = set()
    for member in family(pid):
        for line in _text(f"/proc/{member}/maps").splitlines():
            # Address, rights, offset, device and inode come before the path.
            path = line.split(maxsplit=5)[-1]
            if ".so" in Path(path).name and path.startswith(os.sep):
                mapped.add(path)
    return sorted(mapped)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
