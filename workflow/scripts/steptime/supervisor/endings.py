"""Finds out how the workers of a cell have ended, and which of them was the cause."""

import math
import signal
from collections.abc import Callable

from steptime.plain import plain
from steptime.supervisor.ranks import Rank

# What a rank says whose partner is gone: that one's words, or the way in which it ended, tell why.
OF_ANOTHER = ("connection", "peer", "has ended", "broken pipe", "unavailable")


def cause(members: list[Rank], by_kernel: Callable[[], bool]) -> tuple[str, str]:
    """Returns status and reason of the first cause: an end without a word comes before a complaint."""
    if "done" in members[0].events:
        # Its last word comes when all that was asked for is done and shown, by all.
        return "ok", ""
    mute = [rank for rank in members if not rank.has_spoken()]
    failed = [rank for rank in members if "failed" in rank.events]
    ended = [rank for rank in mute if rank.process.returncode is not None]
    first = min(ended or failed or mute, key=_place, default=None)
    if first is None:
        return "ok", ""
    if first.has_spoken():
        failure = first.events["failed"]
        status, reason = failure["status"], failure["reason"]
    else:
        status, reason = _how_it_ended(first, first.process.is_out_of_memory or by_kernel())
    named = first.number and status != "unsupported"
    return status, f"rank {first.number}: {reason}" if named else reason


def _place(rank: Rank) -> tuple[bool, bool, float]:
    """Returns a sort key for ranks that failed: first those whose words explain most."""
    failure = rank.events.get("failed", {"status": "", "reason": ""})
    complains = any(words in failure["reason"].lower() for words in OF_ANOTHER)
    return failure["status"] == "crashed", complains, rank.silent_since or math.inf


def _how_it_ended(rank: Rank, by_kernel: bool) -> tuple[str, str]:
    """Returns status and reason of a worker that ended, or went on, without a last word."""
    code = rank.process.returncode
    if code is None and not rank.silent:
        return "crashed", "the worker went on when the others had ended"
    if code is None:
        return "crashed", "the worker closed its pipe before it was done"
    if code == -signal.SIGKILL and by_kernel:
        return "out_of_memory", "the kernel killed the worker because the machine ran out of memory"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return "crashed", f"the worker was ended by {name} ({signal.strsignal(-code)})"
    if code == 0 and rank.lacking:
        said = "the worker said that it was done, but nothing that can be true under"
        return "crashed", f"{said} {', '.join(rank.lacking)}"
    lines = list(filter(None, map(plain, rank.tail().splitlines())))
    last = f": {lines[-1][:200]}" if lines else ""
    return "crashed", f"the worker ended with exit code {code} before it was done{last}"
