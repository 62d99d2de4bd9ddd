"""Notes what a worker uses while it is measured: energy; in a training, each second also CPU time, memory and GPUs."""

import time
from typing import Any

import psutil

from steptime.machine import energy, gpu, interference, processes

INTERVAL_SECONDS = 1.0
COLUMNS = ["seconds", "cpu_seconds", "resident_bytes"]
COLUMNS += ["device_share", "device_bytes", "host_joules"]


class Watch:
    """Reads the processors' energy when the worker begins what it is measured by and when it ends.

    With `notes`, it also notes one row of COLUMNS every INTERVAL_SECONDS or a little later. `devices` must be looked at
    before it. `seconds` counts from when the watch was made, `cpu_seconds` is of all threads of the worker since its
    start, in the kernel's ticks of 10 ms, and `host_joules` is of the whole machine. None where something cannot be
    read.
    """

    def __init__(self, devices: gpu.Watch | None = None, notes: bool = True) -> None:
        self.devices, self.notes, self.counter = devices, notes, energy.Counter()
        self.made = time.monotonic()
        self.due = self.made
        self.own_seconds = 0.0
        self.rows: list[tuple[float | None, ...]] = []
        self.span: list[float] = []
        self.joules: list[float | None] = []

    def begin(self) -> None:
        """Reads the time and the energy, and forgets a beginning that has not ended."""
        if len(self.span) % 2:
            self.span.pop()
            self.joules.pop()
        self._read()

    def end(self) -> None:
        self._read()

    def _read(self) -> None:
        self.span.append(time.monotonic() - self.made)
        self.joules.append(self.counter.read())

    def look(self, pid: int) -> None:
        """Notes a row when one is due."""
        now = time.monotonic()
        if now < self.due or not self.notes:
            return
        self.due = now + INTERVAL_SECONDS
        before = time.thread_time()
        try:
            used = [psutil.Process(member).cpu_times() for member in processes.family(pid)]
        except psutil.NoSuchProcess:
            return
        shares = self.devices.shares[-1:] if self.devices else []
        device = (shares[0] if shares else None, self.devices.used if self.devices else None)
        # With children that have ended.
        cpu = sum(sum(times[:4]) for times in used)
        resident, _ = processes.memory(pid)
        if not resident:
            # It has just ended.
            return
        self.rows.append((now - self.made, cpu, resident, *device, self.counter.read()))
        self.own_seconds += time.thread_time() - before

    def host_joules(self) -> float | None:
        """Returns the energy of the machine's processors while the worker did what it is measured by."""
        return interference.growth(self.joules)

    def series(self) -> dict[str, Any]:
        """Returns all notes: `columns`, `rows`, `span` of the training, `interval_seconds`, `own_seconds`."""
        return {
            "columns": COLUMNS,
            "rows": self.rows,
            "span": self.span,
            "interval_seconds": INTERVAL_SECONDS,
            "own_seconds": self.own_seconds,
        }
