"""Reads the energy that this machine's processors use, where its counters may be read: RAPL by way of powercap."""

from pathlib import Path

from steptime.machine import read_text

POWERCAP = Path("/sys/class/powercap")


class Counter:
    """Adds up the energy of all processor packages; `read` must be called before a counter starts again from 0.

    A package's counter has some 262 kJ (`max_energy_range_uj`), which is many minutes even under full load. On many
    machines only root may read it: then there is no energy, and no guess at one.
    """

    def __init__(self, folder: Path = POWERCAP) -> None:
        names = {zone: read_text(zone / "name") or "" for zone in folder.glob("intel-rapl:?")}
        self.zones = [zone for zone in sorted(names) if names[zone].startswith("package")]
        self.folder = folder
        self.last = [self._microjoules(zone) for zone in self.zones]
        self.total = 0

    @property
    def is_readable(self) -> bool:
        """Tells whether there are counters and all of them can be read."""
        return bool(self.last) and None not in self.last

    @property
    def state(self) -> str:
        """Says that the counters can be read, or why not, for a reader of a table."""
        if not self.zones:
            return f"this machine shows no counters of its processors' energy in {self.folder}"
        return "read" if self.is_readable else f"this user may not read energy_uj in {self.folder}"

    def read(self) -> float | None:
        """Returns the joules since this counter was made."""
        if not self.is_readable:
            return None
        now = [self._microjoules(zone) for zone in self.zones]
        for zone, before, after in zip(self.zones, self.last, now, strict=True):
            if before is None or after is None:
                return None
            around = int(read_text(zone / "max_energy_range_uj") or 0) if after < before else 0
            self.total += after - before + around
        self.last = now
        return self.total / 1e6

    def _microjoules(self, zone: Path) -> int | None:
        text = read_text(zone / "energy_uj")
        return int(text) if text else None
