"""Reads what a container, a batch system or systemd allows this process: CPU time, memory, and how long it was held
back.

Limits of both versions of control groups count, also those of parent groups (cgroups(7); sched-bwc.rst and memory.rst
of the kernel's documentation).
"""

from pathlib import Path

from shared.processes import text

PROC = Path("/proc/self")


def cpu_quota(proc: Path = PROC) -> float | None:
    """Returns how many CPUs' time may be used, at most; None without a limit."""
    quotas = []
    for folder in _folders("cpu", proc):
        old = [text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        words = (text(folder / "cpu.max") or " ".join(old)).split()
        # No quota is "max" in version 2 and -1 in version 1.
        if len(words) == 2 and words[0].isdigit():
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def memory_limit(proc: Path = PROC) -> int | None:
    """Returns how many bytes may be used, at most; None without a limit."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    texts = [text(folder / name).strip() for folder in _folders("memory", proc) for name in names]
    return min((int(text) for text in texts if text.isdigit()), default=None)


def throttling_files(proc: Path = PROC) -> list[str]:
    """Returns the files that say how long this process and its like were held back for their quota."""
    paths = [folder / "cpu.stat" for folder in _folders("cpu", proc)]
    return [str(path) for path in paths if path.is_file()]


def throttled_seconds(texts: list[str]) -> float:
    """Adds up the seconds in such files: they have microseconds in version 2, nanoseconds in version 1."""
    units = {"throttled_usec": 1e6, "throttled_time": 1e9}
    pairs = [line.split() for text in texts for line in text.splitlines()]
    return sum(int(pair[1]) / units[pair[0]] for pair in pairs if pair and pair[0] in units)


def _folders(controller: str, proc: Path) -> list[Path]:
    """Returns a controller's folders for this process, from its own group to the top, as far as visible here."""
    found = []
    groups = [line.split(":", 2) for line in text(proc / "cgroup").splitlines()]
    mounts = [line.split() for line in text(proc / "mountinfo").splitlines()]
    for _, controllers, path in groups:
        for mount in mounts:
            kind, options = mount[mount.index("-") + 1], mount[-1].split(",")
            # The line of version 2 names no controller.
            is_old = kind == "cgroup" and controller in controllers.split(",")
            if (is_old and controller in options) or (kind == "cgroup2" and not controllers):
                top, root = Path(mount[4]), mount[3]
                # A container sees its own group as the root, by its name on the host or as "/".
                within = path.removeprefix(root) if root != "/" else path
                own = top / within.strip("/")
                own = own if own.is_dir() else top
                found += [own, *(each for each in own.parents if each.is_relative_to(top))]
    return list(dict.fromkeys(found))
