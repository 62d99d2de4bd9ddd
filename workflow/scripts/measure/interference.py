"""What else the machine did while samples were taken: other processes, other guests of its host, the clock's rate."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Above these limits a cell is marked in every table: a tenth of a CPU at work for others, or a hundredth of the
# machine's time given to other guests. A thread that waits at a barrier for one that lost its CPU loses as much itself.
MOST_FOREIGN_CPUS = 0.1
MOST_STEAL_SHARE = 0.01


@dataclass(frozen=True)
class Snapshot:
    """The kernel's counters at one moment: CPU seconds since boot over all CPUs, and the mean clock rate in MHz."""

    busy_seconds: float
    stolen_seconds: float
    megahertz: float | None


def snapshot() -> Snapshot:
    """Reads /proc/stat (proc(5): user nice system idle iowait irq softirq steal) and /proc/cpuinfo."""
    user, nice, system, _idle, _wait, irq, softirq, stolen = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    rates = [float(line.split(":")[1]) for line in lines if line.startswith("cpu MHz")]
    return Snapshot(
        (user + nice + system + irq + softirq) / TICKS,
        stolen / TICKS,
        sum(rates) / len(rates) if rates else None,
    )


def between(
    before: Snapshot, after: Snapshot, wall_seconds: float, cpu_seconds: float, cpus: int
) -> dict[str, float | None]:
    """Interference over `wall_seconds` in which the worker itself used `cpu_seconds`, on a machine of `cpus` CPUs.

    `foreign_cpus` is the number of CPUs that others kept busy, `steal_share` the share of all CPUs' time that a
    hypervisor gave to other guests, `frequency_ratio` the clock rate after by the rate before.
    """
    busy = after.busy_seconds - before.busy_seconds
    known = before.megahertz and after.megahertz
    return {
        "foreign_cpus": max(0.0, busy - cpu_seconds) / wall_seconds,
        "steal_share": (after.stolen_seconds - before.stolen_seconds) / (wall_seconds * cpus),
        "frequency_ratio": after.megahertz / before.megahertz if known else None,
    }
