"""Reads events from a worker's pipe, and checks each line: a framework and its libraries may write there too.

`worker.__main__`, the worker's tasks and, for ranks on nodes, `steptime.supervisor.nodes` say what each event means.
The checks find what a library may write by chance, or a broken clock or adapter would say. A value of another type fits
no column of a shard, and becomes a row that says so.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from steptime.machine import interference
from steptime.plain import plain_values
from steptime.tasks import TASKS

# What tasks of nodes report besides their workers' events, by names that no event of a worker has.
HELD, ENDED = "rank held", "rank ended"
LAST_WORDS = ("done", "failed")
FAILURES = ("unsupported", "not_equivalent", "out_of_memory", "crashed", "diverged")
STOPPED = ("accuracy", "epochs", "seconds")
# A step is a pass through a network and back: of a thousand cycles at the least, at 10 GHz.
LEAST_STEP_SECONDS = 1e-7
INT32 = 2**31 - 1

Event = dict[str, Any]


def owed(job: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the events without which a rank that has this job is not done."""
    task = TASKS.get(job["task"])
    return task.owes if task and not job.get("rank") else ()


def read(line: bytes) -> tuple[str, Event] | None:
    """Returns name and fields of the event in a line of the pipe, after what a library left there; None without one."""
    try:
        event = json.loads(line[max(line.find(b"{"), 0) :])
        # Texts of the kernel's, whose lines count.
        kernel = {"kernel": event.pop("kernel")} if "kernel" in event else {}
        name, fields = event.pop("event"), plain_values(event) | kernel
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    return (name, fields) if isinstance(name, str) and _fits(name, fields) else None


def _fits(name: str, fields: Event) -> bool:
    try:
        return name not in CHECKS or CHECKS[name](fields)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
        return False


def _has_versions(event: Event) -> bool:
    """Tells whether the versions that a framework gives are texts."""
    return all(isinstance(each, str | None) for each in event.get("versions", {}).values())


def _is_timed(event: Event) -> bool:
    """Tells whether so many steps may have taken so many seconds."""
    counted = type(event["steps"]) is int and 1 <= event["steps"] <= INT32
    return counted and LEAST_STEP_SECONDS <= event["seconds"] < math.inf


def _is_part(event: Event) -> bool:
    """Tells whether an event names an operation, with samples that are (steps, seconds)."""
    named = event.keys() >= {"part", "role", "way", "lacking", "flops"}
    return named and all(steps > 0 <= seconds for steps, seconds in event["samples"])


def _is_counted(event: Event) -> bool:
    """Tells whether an event has the kernel's counts of a machine, which are parsed again where they are used."""
    interference.parse(**event["kernel"], cpus=[0])
    return True


CHECKS: dict[str, Callable[[Event], bool]] = {
    "ready": _has_versions,
    "failed": lambda event: event["status"] in FAILURES and isinstance(event["reason"], str),
    "sample": _is_timed,
    "epoch": lambda event: _is_timed(event) and event.keys() >= {"epoch", "test_loss", "accuracy"},
    "part": _is_part,
    **dict.fromkeys(("warmup", "again", "began", "sampled", "resumed", "ended"), _is_counted),
    "trained": lambda event: event["stopped"] in STOPPED and _is_counted(event),
    HELD: lambda event: type(event["resident"]) is int,
    ENDED: lambda event: event.keys() >= {"code", "killed"},
}
