"""What the GPUs of a cell do while it is measured, through NVML. Made only for cells whose device is a GPU."""

from typing import Any


class Watch:
    """Reads the GPUs that a worker is shown, by number or UUID as in CUDA_VISIBLE_DEVICES.

    Nobody else may be at work on them (measure.placement), so that the memory that comes to be used is the worker's.
    Where NVML does not answer, or a GPU lacks a counter, what it would tell stays None.
    """

    def __init__(self, visible: list[str]) -> None:
        import pynvml

        self.nvml = pynvml
        self.handles: list[Any] = []
        try:
            pynvml.nvmlInit()
            self.handles = [
                pynvml.nvmlDeviceGetHandleByIndex(int(name))
                if name.isdigit()
                else pynvml.nvmlDeviceGetHandleByUUID(name)
                for name in visible
            ]
        except pynvml.NVMLError:
            pass
        self.sampling = False
        self.used_before = self._sum(self._memory)
        self.used: int | None = None
        self.peak: int | None = None
        self.millijoules: list[int | None] = []
        self.shares: list[float] = []
        self.megahertz: list[int] = []

    def begin(self) -> None:
        """Samples are taken from now on."""
        self.sampling = True
        self.millijoules.append(self._sum(self.nvml.nvmlDeviceGetTotalEnergyConsumption))

    def end(self) -> None:
        """The last sample was taken."""
        self.sampling = False
        self.millijoules.append(self._sum(self.nvml.nvmlDeviceGetTotalEnergyConsumption))

    def look(self, pid: int) -> None:
        """Notes memory, and while samples are taken utilisation and clocks; called every half second or so."""
        self.used = used = self._sum(self._memory)
        if used is not None and self.used_before is not None:
            self.peak = max(self.peak or 0, used - self.used_before)
        if self.sampling:
            share = self._sum(lambda handle: self.nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
            clock = self._sum(
                lambda handle: self.nvml.nvmlDeviceGetClockInfo(handle, self.nvml.NVML_CLOCK_SM)
            )
            if share is not None:
                self.shares.append(share / 100 / len(self.handles))
            if clock is not None:
                self.megahertz.append(clock // len(self.handles))

    def columns(self) -> dict[str, Any]:
        """The shard's columns: most bytes used, mean share of the time in which a kernel ran, joules over the samples.

        The share is NVML's: of its last sampling period of up to a second, whatever part of the GPU the kernel used.
        """
        known = [value for value in self.millijoules if value is not None]
        return {
            "peak_device_memory_bytes": self.peak,
            "device_utilisation": sum(self.shares) / len(self.shares) if self.shares else None,
            "energy_joules": (known[1] - known[0]) / 1000 if len(known) == 2 else None,
        }

    def clocks(self) -> dict[str, int] | None:
        """Lowest and highest clock of the multiprocessors while samples were taken, in MHz, mean over the GPUs."""
        return (
            {"least_mhz": min(self.megahertz), "most_mhz": max(self.megahertz)}
            if self.megahertz
            else None
        )

    def _memory(self, handle: Any) -> int:
        return self.nvml.nvmlDeviceGetMemoryInfo(handle).used

    def _sum(self, read: Any) -> int | None:
        try:
            return sum(read(handle) for handle in self.handles) if self.handles else None
        except self.nvml.NVMLError:
            return None
