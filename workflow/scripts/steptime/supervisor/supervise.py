"""Runs a worker process, watches it, and says how it ended. The framework can do no harm to what calls this."""

import ctypes
import errno
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from steptime.machine import cgroups, interference, processes
from steptime.machine.alone import alone
from steptime.plain import plain, plain_values

POLL_SECONDS = 0.5
LEAST_FREE_BYTES = 2**20
OOM_SCORE = Path("/proc/self/oom_score_adj")
WORKER = Path(__file__).resolve().parents[2] / "worker"
# What a worker inherits. Thread knobs, Python's own variables and the like must come from the cell alone.
# LD_LIBRARY_PATH of the user's shell would bring in another OpenMP; where drivers of GPUs lie, it is needed.
INHERITED = ("PATH", "USER", "LANG", "LC_ALL")
INHERITED_WITH_GPUS = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
PR_SET_PDEATHSIG = 1
# After its last word a worker ends by itself; what still holds its pipe then is not waited for.
ENDING_SECONDS = 2.0
LONGEST_LINE = 2**22
MOST_PRINTED_BYTES = 2**30
TAIL_BYTES = 2**16
LAST_WORDS = ("done", "failed")
# Snakemake's process, as common.smk tells it; None where it is not above this one, as on a cluster.
RUN = next(
    (pid for pid in processes.ancestors() if str(pid) == os.environ.get("STEPTIME_RUN")), None
)
# The events between which a worker does what it is measured by.
BEGINNINGS = ("warmup", "began")
ENDS = ("sampled", "trained")


class Watch(Protocol):
    """What looks at a machine while a worker is at work."""

    def begin(self) -> None:
        """The worker begins what it is measured by."""

    def end(self) -> None:
        """It has ended that."""

    def look(self, pid: int) -> None:
        """Called every half second or so, and after each event but the last, from the worker's start on."""


@dataclass
class Outcome:
    """What a worker said, by event, and how it ended."""

    status: str = "ok"
    reason: str = ""
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    samples: list[tuple[int, float]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    peak_memory_bytes: int | None = None
    snapshots: list[interference.Snapshot] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    # From when to when it had the machine; None where it was not run.
    span: tuple[datetime, datetime] | None = None


def run_worker(
    prefix: Path,
    job: dict[str, Any],
    cpus: list[int],
    variables: dict[str, str],
    limit_seconds: float,
    limit_bytes: int,
    log: Path,
    meanwhile: Callable[[], None] = lambda: None,
    watches: Sequence[Watch] = (),
) -> Outcome:
    """Runs `job` in the environment in the folder `prefix` on `cpus` and returns its outcome, whatever happens to it.

    `meanwhile` is called once the worker has started: slow imports of this process hide behind the framework's own.
    `watches` look at what it uses. The worker is killed after `limit_seconds`, when its resident
    memory passes `limit_bytes`, and when this process dies.
    Raises OSError where it failed for want of space on the disk, which says nothing of the framework. Waits until no
    other run measures on this machine; what is not measured (`proof`) may be beside its like.
    """
    with alone(beside=job["task"] == "proof"):
        _end_with_the_run()
        began = datetime.now(UTC)
        outcome = _run_worker(
            prefix, job, cpus, variables, limit_seconds, limit_bytes, log, meanwhile, watches
        )
        outcome.span = (began, datetime.now(UTC))
        return outcome


def _run_worker(
    prefix: Path,
    job: dict[str, Any],
    cpus: list[int],
    variables: dict[str, str],
    limit_seconds: float,
    limit_bytes: int,
    log: Path,
    meanwhile: Callable[[], None],
    watches: Sequence[Watch],
) -> Outcome:
    log.parent.mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    kills_before = _kernel_kills()
    outcome = Outcome()
    with (
        log.open("w") as output,
        tempfile.TemporaryFile("w+") as stdin,
        tempfile.TemporaryDirectory(prefix="steptime-", dir=_scratch_below()) as scratch,
        os.fdopen(reading, "rb") as pipe,
    ):
        json.dump(job, stdin)
        stdin.seek(0)
        try:
            worker = subprocess.Popen(
                [str(prefix / "bin/python"), "-m", "worker", str(writing)],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                env=environment(
                    variables | own_folders(prefix, scratch) | _asked_of_the_kernel(),
                    job["device"],
                    worker_path(scratch),
                ),
                start_new_session=True,
                # `python -m` looks there first: nothing that lies in the user's folder may hide a package.
                cwd=Path(scratch) / "path",
                preexec_fn=lambda: _prepare(cpus),
            )
        except (OSError, subprocess.SubprocessError) as error:
            os.close(writing)
            outcome.status, outcome.reason = "crashed", _why_not_started(error, cpus)
            return outcome
        os.close(writing)
        others = processes.adopt_orphans() - {worker.pid}
        try:
            meanwhile()
            _watch(worker, pipe, outcome, cpus, limit_seconds, limit_bytes, log, watches)
        finally:
            processes.end(worker, others)
    if outcome.status == "ok" and "done" not in outcome.events:
        outcome.status, outcome.reason = _how_it_ended(
            worker.returncode, _kernel_kills() > kills_before, log
        )
    if outcome.status == "crashed":
        _refuse_full_disk(outcome.reason, log)
    reported = outcome.events.get("done", {}).get("peak_memory_bytes")
    outcome.peak_memory_bytes = max(
        filter(None, (outcome.peak_memory_bytes, reported)), default=None
    )
    return outcome


def own_folders(prefix: Path, scratch: str) -> dict[str, str]:
    """The variables of a worker that name folders of its own.

    Settings and caches of the framework stay in the environment's folder `prefix`; what is left in `scratch` goes.
    """
    home = prefix / "home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "TMPDIR": scratch}


def _scratch_below() -> str:
    """Where a worker's own folder is made: it is on a path, and no path can hold the sign between its folders."""
    folder = tempfile.gettempdir()
    return "/tmp" if os.pathsep in folder else folder


def _asked_of_the_kernel() -> dict[str, str]:
    return {"STEPTIME_THROTTLING": os.pathsep.join(cgroups.throttling_files())}


def worker_path(scratch: str) -> str:
    """A folder with the worker's package alone: nothing else may hide a package of a foreign interpreter."""
    folder = Path(scratch) / "path"
    folder.mkdir()
    (folder / WORKER.name).symlink_to(WORKER)
    return str(folder)


def environment(variables: dict[str, str], device: str, path: str) -> dict[str, str]:
    """Environment variables of a worker: a few inherited ones, Python's isolation, its `path`, the cell's own."""
    names = INHERITED + (INHERITED_WITH_GPUS if device == "gpu" else ())
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    own = {
        "PYTHONPATH": path,
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    return inherited | own | hidden | variables


def _watch(
    worker: subprocess.Popen[bytes],
    pipe: Any,
    outcome: Outcome,
    cpus: list[int],
    limit_seconds: float,
    limit_bytes: int,
    log: Path,
    watches: Sequence[Watch],
) -> None:
    deadline = time.monotonic() + limit_seconds
    selector = selectors.DefaultSelector()
    selector.register(pipe, selectors.EVENT_READ)
    os.set_blocking(pipe.fileno(), False)
    rest = b""
    while True:
        if selector.select(POLL_SECONDS):
            chunk = pipe.read(65536)
            if chunk == b"":
                break
            *lines, rest = (rest + (chunk or b"")).split(b"\n")
            # No event is as long: a library writes there, without an end of line.
            rest = rest if len(rest) <= LONGEST_LINE else b""
            for name, event in filter(None, map(_event, lines)):
                _note(name, event, outcome, cpus, worker.pid, watches)
                if name in LAST_WORDS:
                    _await_end(worker)
                    return
        _end_with_the_run()
        for watch in watches:
            watch.look(worker.pid)
        resident, peak = processes.memory(worker.pid)
        # What comes after is for the proof, not for what is timed.
        if not outcome.events.keys() & set(ENDS):
            outcome.peak_memory_bytes = max(
                filter(None, (outcome.peak_memory_bytes, peak)), default=None
            )
        if resident > limit_bytes:
            # Pages that forked processes share are counted once, which takes longer.
            resident = processes.proportional_memory(worker.pid) or resident
        if resident > limit_bytes:
            outcome.status = "out_of_memory"
            outcome.reason = (
                f"the worker held {resident / 2**30:.1f} GiB, "
                f"above the limit of {limit_bytes / 2**30:.1f} GiB"
            )
            return
        if log.stat().st_size > MOST_PRINTED_BYTES:
            outcome.status = "crashed"
            outcome.reason = f"it printed more than {MOST_PRINTED_BYTES / 2**30:g} GiB"
            return
        if time.monotonic() > deadline:
            outcome.status = "timeout"
            outcome.reason = f"not done after {limit_seconds:g} s, the limit of the grid ({_last_stage(outcome)})"
            return
    # The pipe is closed by the end of the process, or by a framework that closes what it does not know.
    if not _await_end(worker):
        outcome.status, outcome.reason = "crashed", "the worker closed its pipe before it was done"


def _end_with_the_run() -> None:
    """Ends this process where Snakemake has ended: its cell would go on beside those of the next run."""
    if RUN and RUN not in processes.ancestors():
        sys.exit("The run has ended, and so does this cell: nothing of it is kept.")


def _await_end(worker: subprocess.Popen[bytes]) -> bool:
    """Whether a worker that has nothing more to say ends by itself."""
    try:
        worker.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _event(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Name and fields of the event in a line of the pipe; None for what a library has written there.

    What a library leaves without an end of line stands before the next event.
    """
    try:
        event = json.loads(line[max(line.find(b"{"), 0) :])
        # Texts of the kernel's, whose lines count.
        kernel = {"kernel": event.pop("kernel")} if "kernel" in event else {}
        return event.pop("event"), plain_values(event) | kernel
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None


def _note(
    name: str,
    event: dict[str, Any],
    outcome: Outcome,
    cpus: list[int],
    pid: int,
    watches: Sequence[Watch],
) -> None:
    if name == "sample":
        outcome.samples.append((event["steps"], event["seconds"]))
    elif name == "epoch":
        outcome.epochs.append(event)
    elif name == "part":
        outcome.parts.append(event)
    elif name == "failed":
        outcome.status, outcome.reason = event["status"], event["reason"]
    else:
        outcome.events[name] = event
        # Not while samples are taken; some are loaded by the first step.
        if name == "ready" or name in ENDS:
            outcome.libraries = sorted({*outcome.libraries, *processes.libraries(pid)})
        if name in BEGINNINGS + ENDS:
            outcome.snapshots.append(interference.parse(**event.pop("kernel"), cpus=cpus))
            for watch in watches:
                watch.begin() if name in BEGINNINGS else watch.end()


def _why_not_started(error: Exception, cpus: list[int]) -> str:
    if isinstance(error, OSError):
        return f"the environment's Python does not start: {error}"
    return f"the worker cannot be pinned to CPU {', '.join(map(str, cpus))}"


def _last_stage(outcome: Outcome) -> str:
    if outcome.samples:
        return f"{len(outcome.samples)} samples taken"
    if outcome.epochs:
        return f"{len(outcome.epochs)} epochs trained"
    if outcome.parts:
        return f"{len(outcome.parts)} operations timed"
    stages = {
        "began": "in the first epoch",
        "warmup": "before the first sample",
        "ready": "in the warm-up",
    }
    return next(
        (text for event, text in stages.items() if event in outcome.events),
        "before the network was built",
    )


def _how_it_ended(code: int, by_kernel: bool, log: Path) -> tuple[str, str]:
    """Status and reason of a worker that ended without a word."""
    if code == -signal.SIGKILL and by_kernel:
        return "out_of_memory", "the kernel killed the worker because the machine ran out of memory"
    if code < 0:
        known = {each.value: each.name for each in signal.Signals}
        name = known.get(-code, f"signal {-code}")
        return "crashed", f"the worker was ended by {name} ({signal.strsignal(-code)})"
    with log.open("rb") as printed:
        printed.seek(-min(TAIL_BYTES, log.stat().st_size), os.SEEK_END)
        tail = printed.read().decode(errors="replace")
    lines = list(filter(None, map(plain, tail.splitlines())))
    last = f": {lines[-1][:200]}" if lines else ""
    return "crashed", f"the worker ended with exit code {code} before it was done{last}"


def _refuse_full_disk(reason: str, log: Path) -> None:
    folders = (log.parent, Path(tempfile.gettempdir()))
    said = os.strerror(errno.ENOSPC)
    if (
        said in reason
        and min(shutil.disk_usage(folder).free for folder in folders) < LEAST_FREE_BYTES
    ):
        raise OSError(errno.ENOSPC, said, str(log))


def _prepare(cpus: list[int]) -> None:
    """Runs in the child before Python: affinity, death with the parent, first choice of the kernel's OOM killer."""
    os.sched_setaffinity(0, cpus)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A crash is a row; gigabytes of memory written into the user's folder are of no use to anybody.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Some containers have a /proc that is read alone.
    with suppress(OSError):
        OOM_SCORE.write_text("1000")


def _kernel_kills() -> int:
    """How many processes the kernel has killed for want of memory since boot."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
