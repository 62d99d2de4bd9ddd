"""Reads what this process and those below it use of the machine, as the kernel counts it."""

import glob
import os
import resource
import time

from shared.disturbance import MOST_FOREIGN_CPUS, MOST_STEAL_SHARE
from shared.processes import family, text

TICKS = os.sysconf("SC_CLK_TCK")


class Usage(object):
    """Counts what this process uses of its CPUs from now on, except between `pause` and `resume`."""

    def __init__(self, clock):
        self.clock = clock
        self.used = {}
        self.resume()

    def resume(self):
        self.before = self._now()

    def pause(self):
        self.used = self.so_far()

    def so_far(self):
        now = self._now()
        # None is what the kernel does not tell.
        return {
            name: None
            if now[name] is None
            else now[name] - self.before[name] + self.used.get(name, 0)
            for name in now
        }

    def _now(self):
        return {
            # How often the kernel took a CPU from a thread of this process.
            "involuntary_switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            "waited_seconds": waited_seconds(),
            "cpu_seconds": cpu_seconds(),
            "wall_seconds": self.clock(),
        }


def cpu_seconds():
    """Returns CPU seconds of this process and of those below it, ended ones too, in ticks (stat, proc(5))."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + ended.ru_utime + ended.ru_stime
    for process in family(os.getpid())[1:]:
        # The name in parentheses may hold anything; the state comes after it, and eleven fields later the times of the
        # process and those of its children that have ended.
        fields = text("/proc/{}/stat".format(process)).rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / TICKS
    return total


def waited_seconds():
    """Returns how long threads, also of processes below, waited for a CPU (schedstat); None where it is not counted."""
    texts = [
        text(path)
        for process in family(os.getpid())
        for path in glob.glob("/proc/{}/task/*/schedstat".format(process))
    ]
    counted = [int(waited) for text in texts for waited in text.split()[1:2]]
    return sum(counted) / 1e9 if counted else None


def kernel_counters():
    """Returns the texts of /proc/stat, /proc/cpuinfo (proc(5)) and of the files in STEPTIME_THROTTLING, read here."""
    with open("/proc/stat") as stat, open("/proc/cpuinfo") as cpuinfo:
        rates = [line for line in cpuinfo if line.startswith(("processor", "cpu MHz"))]
        times = [line for line in stat if line.startswith("cpu")]
    files = filter(None, os.environ.get("STEPTIME_THROTTLING", "").split(os.pathsep))
    throttling = [text(path) for path in files]
    return {"stat": "".join(times), "cpuinfo": "".join(rates), "throttling": throttling}


def is_disturbed(before, after, used):
    """Tells whether other programs or guests had CPU time between two `kernel_counters`; `used` is that of a Usage."""
    times = [list(map(int, each["stat"].split("\n")[0].split()[1:9])) for each in (before, after)]
    user, nice, system, _, _, irq, softirq, stolen = (new - old for old, new in zip(*times))
    cpus = after["stat"].count("\ncpu")
    foreign = (user + nice + system + irq + softirq) / TICKS - used["cpu_seconds"]
    is_stolen = stolen / TICKS / cpus > MOST_STEAL_SHARE * used["wall_seconds"]
    return is_stolen or foreign > MOST_FOREIGN_CPUS * used["wall_seconds"]


def libraries():
    """Returns the absolute paths of the shared libraries that this process and those below it have loaded, in order."""
    mapped = set()
    for process in family(os.getpid()):
        for line in text("/proc/{}/maps".format(process)).splitlines():
            # Address, rights, offset, device and inode come before the path.
            path = line.split(None, 5)[-1]
            if path.startswith(os.sep) and ".so" in os.path.basename(path):
                mapped.add(path)
    return sorted(mapped)


def peak_memory():
    """Returns the most resident bytes of this process and of those below it, by high-water marks (VmHWM)."""
    lines = [
        line
        for process in family(os.getpid())
        for line in text("/proc/{}/status".format(process)).splitlines()
    ]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
