"""What a worker said, and how it ended."""

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from steptime.machine import interference


@dataclass
class Outcome:
    """What a worker said, by event, and how it ended; of several ranks, what the first said."""

    status: str = "ok"
    reason: str = ""
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    samples: list[tuple[int, float]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    peak_memory_bytes: int | None = None
    # From just before its processes were started until all of them had built their network.
    ready_seconds: float | None = None
    snapshots: list[interference.Snapshot] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    # From when to when it had the machine; None where it was not run.
    span: tuple[datetime, datetime] | None = None
    # For several ranks: `Rank.facts` of each, and the bytes over the loopback interface at each snapshot.
    ranks: list[dict[str, Any]] = field(default_factory=list)
    # The end of what each has printed.
    printed: str = field(default="", repr=False, compare=False)
    loopback: list[int | None] = field(default_factory=list)
    # By the clock of `time.monotonic`.
    made_at: float = field(default_factory=time.monotonic, compare=False)

    def used_by_ranks(self) -> list[dict[str, Any]]:
        """Returns what each of several ranks used: `seconds` in steps, `cpu_seconds`, and what `Rank.facts` says."""
        warm = self.events.get("warmup", {}).get("steps", 0)
        taken = [steps for steps, _ in self.samples] + [epoch["steps"] for epoch in self.epochs]
        last = warm + sum(taken)
        uses = []
        for rank in self.ranks:
            done, seconds, cpu = 0, 0.0, 0.0
            for steps, spent, used in rank.get("blocks", []):
                if warm <= done < last:
                    seconds, cpu = seconds + spent, cpu + used
                done += steps
            known = {"seconds": seconds, "cpu_seconds": cpu} if "blocks" in rank else {}
            uses.append({name: rank[name] for name in rank if name != "blocks"} | known)
        return uses

    def exchanged(self) -> dict[str, Any]:
        """Returns what ranks exchanged in a step: bytes over loopback; seconds and unseen updates, where known."""
        steps, sent = sum(steps for steps, _ in self.samples), interference.growth(self.loopback)
        told = {"bytes_exchanged": None if sent is None or not steps else int(sent // steps)}
        for name in ("exchange_seconds", "staleness"):
            values = [rank[name] for rank in self.ranks if rank.get(name) is not None]
            told[name] = sum(values) / len(values) if values else None
        return told
