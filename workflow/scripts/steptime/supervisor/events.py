"""What a line of a worker's pipe must hold to be an event: anything may write there, a framework and its libraries too.

What each event says stands in `worker.__main__`, in the worker's tasks and, of ranks on nodes, in
`steptime.supervisor.nodes`. Fields that are not named here are kept as they are.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from steptime.machine import interference
from steptime.plain import plain_values
from steptime.tasks import TASKS

Check = Callable[[Any], bool]

# What tasks of nodes say beside what their workers do, by names that no event of a worker has.
HELD, ENDED = "rank held", "rank ended"
LAST_WORDS = ("done", "failed")
FAILURES = ("unsupported", "not_equivalent", "out_of_memory", "crashed", "diverged")
STOPPED = ("accuracy", "epochs", "seconds")
# A step is a pass through a network and back: of a thousand cycles at the least, at 10 GHz.
LEAST_STEP_SECONDS = 1e-7
INT32, INT64 = 2**31 - 1, 2**63 - 1
# Larger integers are not all numbers of float64.
EXACT = 2**53


def owed(job: Mapping[str, Any]) -> tuple[str, ...]:
    """The events without which a rank that has this job is not done."""
    task = TASKS.get(job["task"])
    return task.owes if task and not job.get("rank") else ()


def read(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Name and fields of the event in a line of the pipe; None for what a library has written there.

    What a library leaves without an end of line stands before the next event.
    """
    try:
        event = json.loads(line[max(line.find(b"{"), 0) :])
        # Texts of the kernel's, whose lines count.
        kernel = {"kernel": event.pop("kernel")} if "kernel" in event else {}
        name, fields = event.pop("event"), plain_values(event) | kernel
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    return (name, fields) if isinstance(name, str) and _fits(name, fields) else None


def _fits(name: str, fields: dict[str, Any]) -> bool:
    needed, known = NEEDED.get(name, {}), OPTIONAL.get(name, {})
    return all(field in fields and check(fields[field]) for field, check in needed.items()) and all(
        check(fields[field]) for field, check in known.items() if field in fields
    )


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= EXACT)


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 <= value < math.inf


def _is_step(value: Any) -> bool:
    return _is_time(value) and value >= LEAST_STEP_SECONDS


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_counted(value: Any) -> bool:
    """Whether these are the kernel's counts of a machine."""
    if not (isinstance(value, dict) and value.keys() <= {"stat", "cpuinfo", "throttling"}):
        return False
    try:
        interference.parse(**value, cpus=[0])
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError):
        return False
    return True


def _count(least: int, most: int) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(*kinds: type) -> Check:
    return lambda value: type(value) in kinds


def _each(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _row(*checks: Check) -> Check:
    return lambda value: (
        isinstance(value, list)
        and len(value) == len(checks)
        and all(check(each) for check, each in zip(checks, value, strict=True))
    )


def _are_versions(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_or_none(_is_text), value.values()))


_STEPS = _count(1, INT32)
_BYTES = _or_none(_count(0, INT64))
_TIME, _NUMBER = _or_none(_is_time), _or_none(_is_number)
_KERNEL: dict[str, Check] = {"kernel": _is_counted}

NEEDED: dict[str, dict[str, Check]] = {
    "failed": {"status": FAILURES.__contains__, "reason": _is_text},
    "sample": {"steps": _STEPS, "seconds": _is_step},
    "epoch": {
        "epoch": _count(1, INT32),
        "steps": _STEPS,
        "seconds": _is_step,
        "test_loss": _is_number,
        "accuracy": _NUMBER,
    },
    "part": {
        **dict.fromkeys(("part", "role", "way", "lacking"), _is_text),
        "flops": _count(0, INT64),
        "samples": _each(_row(_STEPS, _is_time)),
    },
    **dict.fromkeys(("warmup", "began", "sampled", "resumed", "ended"), _KERNEL),
    "trained": {"stopped": STOPPED.__contains__, **_KERNEL},
    HELD: {"resident": _count(0, INT64)},
    # A signal's number or an exit code.
    ENDED: {"code": _or_none(_count(-64, 255)), "killed": _one_of(bool)},
}
_DONE: dict[str, Check] = {
    "last_loss": _NUMBER,
    "peak_memory_bytes": _BYTES,
    "involuntary_switches": _BYTES,
    **dict.fromkeys(("cpu_seconds", "wall_seconds"), _is_time),
    "waited_seconds": _TIME,
}
_LIBRARIES = {"libraries": _each(_is_text)}
OPTIONAL: dict[str, dict[str, Check]] = {
    "ready": {
        "versions": _are_versions,
        "settings": _one_of(dict),
        "parameters": _count(0, INT64),
        # By a clock that an adapter may have changed in between, which is seen later.
        **dict.fromkeys(("import_seconds", "build_seconds"), _NUMBER),
        **_LIBRARIES,
    },
    HELD: {"peak": _BYTES, "waited": _TIME},
    "warmup": {
        "steps": _STEPS,
        "first_loss": _is_number,
        "first_seconds": _is_time,
        "seconds": _is_time,
        "steady": _one_of(bool),
    },
    "sampled": _LIBRARIES,
    "trained": _LIBRARIES,
    "epoch": dict.fromkeys(("feed_seconds", "cpu_seconds", "test_seconds"), _TIME)
    | {"loss": _NUMBER},
    "part": dict.fromkeys(("error", "cpus"), _NUMBER),
    "proven": dict.fromkeys(("loss", "change"), _NUMBER) | {"gradients": _one_of(bool, type(None))},
    "timed": _DONE,
    "followed": {
        "blocks": _each(_row(_count(0, INT32), _is_time, _is_time)),
        **dict.fromkeys(("exchange_seconds", "staleness"), _NUMBER),
        "cpu_seconds": _is_time,
    },
    "done": _DONE,
}
