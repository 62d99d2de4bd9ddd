"""What this process and those below it use of the machine, as the kernel counts it.

Plain Python that 3.6 can import: standard library.
"""

import glob
import os
import resource
import time

TICKS = os.sysconf("SC_CLK_TCK")


class Usage(object):
    """What this process used of its CPUs from now on."""

    def __init__(self, clock):
        self.clock = clock
        self.before = self._now()

    def so_far(self):
        now = self._now()
        return {name: now[name] - self.before[name] for name in now}

    def _now(self):
        return {
            # How often the kernel took a CPU from a thread of this process.
            "involuntary_switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            "waited_seconds": waited_seconds(),
            "cpu_seconds": cpu_seconds(),
            "wall_seconds": self.clock(),
        }


def cpu_seconds():
    """CPU seconds of this process, and of those below it in the kernel's ticks (stat, proc(5))."""
    total = time.process_time()
    for process in _family()[1:]:
        # The name in parentheses may hold anything; the state comes after it, and eleven fields later the times.
        fields = _text("/proc/{}/stat".format(process)).rpartition(")")[2].split()
        total += sum(map(int, fields[11:13])) / TICKS
    return total


def waited_seconds():
    """How long threads that are still there, of processes below too, could have run and had no CPU (schedstat)."""
    tasks = (
        path
        for process in _family()
        for path in glob.glob("/proc/{}/task/*/schedstat".format(process))
    )
    return sum(int(waited) for path in tasks for waited in _text(path).split()[1:2]) / 1e9


def kernel_counters():
    """The texts of /proc/stat and /proc/cpuinfo (proc(5)) that tell CPU seconds and clock rates.

    Read here: the supervisor may be late, while it imports or where it has no CPU of its own.
    """
    with open("/proc/stat") as stat, open("/proc/cpuinfo") as cpuinfo:
        rates = [line for line in cpuinfo if line.startswith(("processor", "cpu MHz"))]
        return {"stat": stat.readline(), "cpuinfo": "".join(rates)}


def peak_memory():
    """Resident memory in bytes, of this process and of those below it, at their kernel's high-water marks (VmHWM)."""
    lines = [
        line
        for process in _family()
        for line in _text("/proc/{}/status".format(process)).splitlines()
    ]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _family():
    """This process and those below it: some frameworks are programs that Python only speaks to."""
    found, left = [], ["self"]
    while left:
        found.append(left.pop())
        for path in glob.glob("/proc/{}/task/*/children".format(found[-1])):
            left.extend(_text(path).split())
    return found


def _text(path):
    """The text of a file of /proc, or "" where what it tells of has ended."""
    try:
        with open(path, errors="replace") as lines:
            return lines.read()
    except OSError:
        return ""
