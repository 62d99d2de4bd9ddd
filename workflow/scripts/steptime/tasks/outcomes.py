"""What ranks used and exchanged, of a worker's outcome, for the columns of its shard."""

from typing import TYPE_CHECKING, Any

from steptime.machine import interference

if TYPE_CHECKING:
    from steptime.supervisor.supervise import Outcome


def used_by_ranks(outcome: "Outcome") -> list[dict[str, Any]]:
    """Of several ranks, what each used: its `seconds` in steps and `cpu_seconds` besides what `Rank.facts` says."""
    warm = outcome.events.get("warmup", {}).get("steps", 0)
    taken = [steps for steps, _ in outcome.samples] + [epoch["steps"] for epoch in outcome.epochs]
    last, uses = warm + sum(taken), []
    for rank in outcome.ranks:
        done, seconds, cpu = 0, 0.0, 0.0
        for steps, spent, used in rank.get("blocks", []):
            if warm <= done < last:
                seconds, cpu = seconds + spent, cpu + used
            done += steps
        known = {"seconds": seconds, "cpu_seconds": cpu} if "blocks" in rank else {}
        uses.append({name: rank[name] for name in rank if name != "blocks"} | known)
    return uses


def exchanged(outcome: "Outcome") -> dict[str, Any]:
    """What ranks exchanged in a step: bytes over loopback; seconds and unseen updates, where the framework tells."""
    steps = sum(steps for steps, _ in outcome.samples)
    sent = interference.growth(outcome.loopback)
    told = {"bytes_exchanged": None if sent is None or not steps else int(sent // steps)}
    for name in ("exchange_seconds", "staleness"):
        values = [rank[name] for rank in outcome.ranks if rank.get(name) is not None]
        told[name] = sum(values) / len(values) if values else None
    return told
