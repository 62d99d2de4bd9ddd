"""Measures what else the machine did while samples were taken: other processes, other guests of its host, the clock."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.disturbance import MOST_FOREIGN_CPUS, MOST_STEAL_SHARE
from steptime.machine import cgroups

TICKS = os.sysconf("SC_CLK_TCK")
# The clock may not lose a tenth of its rate either.
LEAST_FREQUENCY_RATIO = 0.9
# What `between` gives.
MEASURED = ("foreign_cpus", "steal_share", "frequency_ratio", "throttled_seconds")


@dataclass(frozen=True)
class Snapshot:
    """The kernel's counters at one moment.

    CPU seconds of all CPUs; for the cell's own CPUs, the mean stolen seconds and the mean MHz; and the seconds for
    which a quota held its control groups back.
    """

    busy_seconds: float
    stolen_seconds: float
    megahertz: float | None
    throttled_seconds: float | None = None


def disturbed(seen: Mapping[str, Any]) -> bool:
    """Tells whether values of `between` exceed the limits; unknown ones (None or NaN) do not."""
    return bool(
        (seen.get("foreign_cpus") or 0) > MOST_FOREIGN_CPUS
        or (seen.get("steal_share") or 0) > MOST_STEAL_SHARE
        or (seen.get("frequency_ratio") or 1) < LEAST_FREQUENCY_RATIO
    )


def snapshot(cpus: Iterable[int] | None = None) -> Snapshot:
    """Reads the machine's counters now; stolen time and clock rate of `cpus`, or of all."""
    return parse(Path("/proc/stat").read_text(), Path("/proc/cpuinfo").read_text(), cpus)


def parse(
    stat: str, cpuinfo: str, cpus: Iterable[int] | None = None, throttling: list[str] | None = None
) -> Snapshot:
    """Makes a snapshot from the texts of /proc/stat (proc(5): user nice system idle iowait irq softirq steal), of
    cpuinfo and of control groups' cpu.stat.

    Where containers renumber their CPUs, `cpus` are not among them: then all count.
    """
    times = {
        name: [int(count) for count in counts[:8]]
        for name, *counts in map(str.split, stat.splitlines())
        if name.startswith("cpu")
    }
    user, nice, system, _idle, _wait, irq, softirq, _steal = times.pop("cpu")
    chosen = None if cpus is None else set(cpus)
    stolen = [
        counts[7] for name, counts in times.items() if chosen is None or int(name[3:]) in chosen
    ] or [counts[7] for counts in times.values()]
    known = _rates(cpuinfo)
    rates = [known[cpu] for cpu in (known if chosen is None else chosen) if cpu in known]
    return Snapshot(
        (user + nice + system + irq + softirq) / TICKS,
        sum(stolen) / len(stolen) / TICKS,
        sum(rates) / len(rates) if rates else None,
        cgroups.throttled_seconds(throttling) if throttling else None,
    )


def growth(readings: Sequence[float | None]) -> float | None:
    """Returns how much a counter grew within windows, from readings at the ends of each; None where one is missing."""
    known = [reading for reading in readings if reading is not None]
    if not known or len(known) < len(readings) or len(known) % 2:
        return None
    return sum(end - begin for begin, end in zip(known[::2], known[1::2], strict=True))


def between(
    snapshots: Sequence[Snapshot], wall_seconds: float, cpu_seconds: float
) -> dict[str, Any]:
    """Returns the interference over `wall_seconds` in which the worker itself used `cpu_seconds`; None for unknown
    values.

    `snapshots` are of the beginning and the end of each window. `foreign_cpus` is how many CPUs others kept busy,
    `steal_share` the share of its CPUs' time that other guests took, `frequency_ratio` the clock rate after divided by
    that before, and `throttled_seconds` is how long a quota held it back.
    """

    def grown(name: str) -> float | None:
        return growth([getattr(each, name) for each in snapshots])

    before, after = snapshots[0].megahertz, snapshots[-1].megahertz
    return {
        "foreign_cpus": max(0.0, (grown("busy_seconds") or 0.0) - cpu_seconds) / wall_seconds,
        "steal_share": (grown("stolen_seconds") or 0.0) / wall_seconds,
        "frequency_ratio": after / before if before and after else None,
        "throttled_seconds": grown("throttled_seconds"),
    }


def _rates(cpuinfo: str) -> dict[int, float]:
    """Returns the MHz of each CPU, where /proc/cpuinfo has them."""
    rates: dict[int, float] = {}
    cpu = -1
    for line in cpuinfo.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "processor":
            cpu = int(value)
        elif key == "cpu MHz":
            rates[cpu] = float(value)
    return rates
