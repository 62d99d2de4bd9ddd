"""Describes the NVIDIA GPUs of this machine, and watches a cell's GPUs while it is measured, through NVML.

Drivers differ in what they answer. Where one does not know a question, or a GPU has no counter for it, the answer is
None, and nothing fails.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steptime.machine import interference

# A GPU gives memory back some time after the process that held it has ended.
SETTLED_SECONDS = 10.0
POLL_SECONDS = 0.2
# Why a GPU's clock is lower than it could be (NVML's clocks event reasons), where the GPU or its power supply is the
# cause and not a setting.
HELD_BACK = {
    "power": ("nvmlClocksEventReasonSwPowerCap", "nvmlClocksEventReasonHwPowerBrakeSlowdown"),
    "heat": ("nvmlClocksEventReasonSwThermalSlowdown", "nvmlClocksEventReasonHwThermalSlowdown"),
    "hardware": ("nvmlClocksEventReasonHwSlowdown",),
}
# What a reader may want to know of a GPU, and the question that tells it.
FACTS = {
    "persistence": "nvmlDeviceGetPersistenceMode",
    "compute_mode": "nvmlDeviceGetComputeMode",
    "power_limit_milliwatts": "nvmlDeviceGetEnforcedPowerLimit",
    "pcie_generation": "nvmlDeviceGetCurrPcieLinkGeneration",
    "pcie_width": "nvmlDeviceGetCurrPcieLinkWidth",
    "compute_capability": "nvmlDeviceGetCudaComputeCapability",
}
# The driver's own libraries, which belong to the kernel's part of it and to no environment.
DRIVER = ("libcuda.so", "libnvidia-", "libcudadebugger.so")


# What libraries say of a GPU whose memory is full, where they do not say "out of memory".
FULL = ("resource_exhausted", "_alloc_failed", "error_out_of_memory", "errormemoryallocation")


@contextmanager
def nvml() -> Iterator[Any]:
    """Yields the module `pynvml`, with NVML started; None without a driver, or without that module."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except ModuleNotFoundError:
        yield None
        return
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def asked(module: Any, question: str, *arguments: Any) -> Any:
    """Returns NVML's answer; None where the driver does not know the question, or the GPU has no answer."""
    try:
        return getattr(module, question)(*arguments)
    except (module.NVMLError, AttributeError):
        return None


def gpus() -> list[dict[str, Any]]:
    """Returns what each NVIDIA GPU of this machine is, in the order of their slots; [] without any.

    Each has `index`, `uuid`, `model`, `memory_bytes`, `driver`, `cuda` (the newest that the driver knows) and what of
    FACTS it answers. A GPU that is divided (MIG) is replaced by its instances.
    """
    with nvml() as module:
        if module is None:
            return []
        driver = asked(module, "nvmlSystemGetDriverVersion")
        cuda = asked(module, "nvmlSystemGetCudaDriverVersion")
        newest = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
        return [
            _described(module, index, each) | {"driver": driver, "cuda": newest}
            for index in range(asked(module, "nvmlDeviceGetCount") or 0)
            for each in _parts(module, index)
        ]


def given(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the GPUs of `known` in CUDA_VISIBLE_DEVICES, by number or beginning of a UUID, as CUDA reads it."""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return known
    found: list[dict[str, Any]] = []
    for name in map(str.strip, wanted.split(",")):
        numbered = [each for each in known if str(each["index"]) == name]
        named = numbered or [each for each in known if name and each["uuid"].startswith(name)]
        if not named:
            break
        found += [each for each in named if each not in found]
    return found


def at_work(uuids: list[str]) -> list[int]:
    """Returns the processes that compute on these GPUs, after ended ones had time to give back their memory."""
    deadline = time.monotonic() + SETTLED_SECONDS
    with nvml() as module:
        if module is None:
            return []
        handles = [asked(module, "nvmlDeviceGetHandleByUUID", name) for name in uuids]
        known = [handle for handle in handles if handle is not None]
        while True:
            pids = sorted({pid for handle in known for pid in _pids(module, handle)})
            if not pids or time.monotonic() > deadline:
                return pids
            time.sleep(POLL_SECONDS)


def was_full(reason: str) -> bool:
    """Tells whether a worker ended because a GPU's memory was full."""
    return any(words in reason.lower() for words in FULL)


def driver_links(folder: Path) -> str:
    """Returns a folder with links to the driver's libraries where LD_LIBRARY_PATH of the user leads to them, else ''.

    Nothing else of that path reaches a worker: another CUDA would replace the environment's own.
    """
    for place in map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))):
        if (place / "libcuda.so.1").exists():
            folder.mkdir()
            for library in sorted(place.glob("lib*.so*")):
                if library.name.startswith(DRIVER):
                    (folder / library.name).symlink_to(library.absolute())
            return str(folder)
    return ""


class Watch:
    """Reads the GPUs that a worker can see, by UUID; None where NVML has no answer.

    Nobody else may be at work on them (machine.placement), so that the memory that is used in addition is the worker's.
    """

    def __init__(self, visible: list[str]) -> None:
        import pynvml

        self.nvml = pynvml
        self.handles: list[Any] = []
        try:
            pynvml.nvmlInit()
            self.handles = [pynvml.nvmlDeviceGetHandleByUUID(name) for name in visible]
        except pynvml.NVMLError:
            pass
        self.sampling = False
        self.used_before = self._settled()
        self.used: int | None = None
        self.peak: int | None = None
        self.millijoules: list[int | None] = []
        # For each window in which samples are taken, its readings: (seconds, milliwatts).
        self.power: list[list[tuple[float, int]]] = []
        self.shares: list[float] = []
        self.megahertz: list[int] = []
        self.last: float | None = None
        self.held_back = dict.fromkeys(HELD_BACK, 0.0)

    def begin(self) -> None:
        self._note_memory()
        self.sampling, self.last = True, time.monotonic()
        self.power.append([])
        self.millijoules.append(self._sum("nvmlDeviceGetTotalEnergyConsumption"))
        self._note_power()

    def end(self) -> None:
        self._note_memory()
        self.sampling = False
        self.millijoules.append(self._sum("nvmlDeviceGetTotalEnergyConsumption"))
        self._note_power()

    def look(self, pid: int) -> None:
        """Notes memory, and utilisation, clocks and power while samples are taken; called about every half second."""
        self._note_memory()
        if not self.sampling:
            return
        share = self._sum("nvmlDeviceGetUtilizationRates", lambda found: found.gpu)
        clock = self._sum("nvmlDeviceGetClockInfo", int, self.nvml.NVML_CLOCK_SM)
        if share is not None:
            self.shares.append(share / 100 / len(self.handles))
        if clock is not None:
            self.megahertz.append(clock // len(self.handles))
        self._note_power()
        self._note_clocks()

    def columns(self) -> dict[str, Any]:
        """Returns the shard's columns. Utilisation is the share of time with a kernel at work, by NVML."""
        return {
            "peak_device_memory_bytes": self.peak,
            "device_utilisation": sum(self.shares) / len(self.shares) if self.shares else None,
            "energy_joules": self._joules()[0],
            "throttled_seconds": max(self.held_back.values()) if self.handles else None,
        }

    def facts(self) -> dict[str, Any]:
        """Returns what else is known of the GPUs: UUIDs, lowest and highest MHz (mean over the GPUs), how energy was
        measured, and for how many seconds each of HELD_BACK held a clock back.
        """
        uuids = [asked(self.nvml, "nvmlDeviceGetUUID", handle) for handle in self.handles]
        facts: dict[str, Any] = {"uuids": uuids, "energy_by": self._joules()[1]}
        if self.megahertz:
            facts |= {"least_mhz": min(self.megahertz), "most_mhz": max(self.megahertz)}
        return facts | {"held_back": self.held_back}

    def _joules(self) -> tuple[float | None, str]:
        """Returns the energy over the samples, and its source: a counter (Volta and newer), or readings of power."""
        counted = interference.growth(self.millijoules)
        if counted is not None:
            return counted / 1000, "counter"
        pairs = [pair for window in self.power for pair in zip(window, window[1:], strict=False)]
        if not pairs:
            return None, ""
        return sum((b - a) * (p + q) / 2e3 for (a, p), (b, q) in pairs), "power"

    def _note_memory(self) -> None:
        self.used = used = self._sum("nvmlDeviceGetMemoryInfo", lambda found: found.used)
        if used is not None and self.used_before is not None:
            self.peak = max(self.peak or 0, used - self.used_before)

    def _note_power(self) -> None:
        milliwatts = self._sum("nvmlDeviceGetPowerUsage")
        if milliwatts is not None:
            self.power[-1].append((time.monotonic(), milliwatts))

    def _note_clocks(self) -> None:
        """Adds the time since the last look to each reason that now holds back the clock of any GPU."""
        now = time.monotonic()
        passed, self.last = now - (now if self.last is None else self.last), now
        reasons = 0
        for handle in self.handles:
            seen = asked(self.nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
            # Its name before driver 535.
            if seen is None:
                seen = asked(self.nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
            reasons |= seen or 0
        for why, names in HELD_BACK.items():
            if any(reasons & getattr(self.nvml, name) for name in names):
                self.held_back[why] += passed

    def _settled(self) -> int | None:
        """Returns the bytes in use once they no longer change: what has just ended gives memory back late."""
        deadline = time.monotonic() + SETTLED_SECONDS
        used = self._sum("nvmlDeviceGetMemoryInfo", lambda found: found.used)
        while used is not None and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            before, used = used, self._sum("nvmlDeviceGetMemoryInfo", lambda found: found.used)
            if used == before:
                break
        return used

    def _sum(self, question: str, take: Any = int, *arguments: Any) -> int | None:
        """Returns the sum over the GPUs of what `take` makes of the answers; None where one has no answer."""
        found = [asked(self.nvml, question, handle, *arguments) for handle in self.handles]
        return None if not found or None in found else sum(map(take, found))


def _parts(module: Any, index: int) -> list[Any]:
    """Returns the handle of a GPU, or those of the instances that it is divided into."""
    handle = asked(module, "nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return []
    if (asked(module, "nvmlDeviceGetMigMode", handle) or (0,))[0] != 1:
        return [handle]
    count = asked(module, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0
    question = "nvmlDeviceGetMigDeviceHandleByIndex"
    parts = [asked(module, question, handle, place) for place in range(count)]
    return [part for part in parts if part is not None]


def _described(module: Any, index: int, handle: Any) -> dict[str, Any]:
    memory = asked(module, "nvmlDeviceGetMemoryInfo", handle)
    told = {name: asked(module, question, handle) for name, question in FACTS.items()}
    most = asked(module, "nvmlDeviceGetMaxClockInfo", handle, module.NVML_CLOCK_SM)
    return {
        "index": index,
        "uuid": asked(module, "nvmlDeviceGetUUID", handle) or "",
        "model": asked(module, "nvmlDeviceGetName", handle) or "unknown",
        "memory_bytes": memory.total if memory else None,
        "most_mhz": most,
    } | {name: value for name, value in told.items() if value is not None}


def _pids(module: Any, handle: Any) -> list[int]:
    # By the names of their versions: the one without raises another error where a driver lacks it, as before 510.
    for version in ("v3", "v2"):
        found = asked(module, f"nvmlDeviceGetComputeRunningProcesses_{version}", handle)
        if found is not None:
            return [process.pid for process in found]
    return []
