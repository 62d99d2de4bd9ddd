"""Runs a worker process, watches it, and says how it ended. A framework cannot harm the process that calls this."""

import errno
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from shared.grouping import UNMET
from steptime.machine import cgroups, gpu, interference, processes
from steptime.machine.alone import alone
from steptime.machine.variables import isolated
from steptime.outcome import Outcome
from steptime.supervisor import endings, ranks
from steptime.supervisor.pace import Pace
from steptime.supervisor.ranks import HERE, Launch, Rank
from steptime.tasks import TASKS

POLL_SECONDS = 0.5
LEAST_FREE_BYTES = 2**20
WORKER = Path(__file__).resolve().parents[2] / "worker"
SHARED = WORKER.with_name("shared")
# After its last word a worker ends by itself; what still holds its pipe then is not waited for.
ENDING_SECONDS = 2.0
MOST_PRINTED_BYTES = 2**30
# Snakemake's process, as `flow.engine` tells it; None where it is not above this one, as on a cluster.
ABOVE = os.environ.get("STEPTIME_RUN")
RUN = next((pid for pid in processes.ancestors() if str(pid) == ABOVE), None)
# What frameworks say where somebody has taken a port that was free.
TAKEN = ("address already in use", "address in use", "not start grpc server", "failed to bind")
# How often the ranks of a cell get other ports.
MOST_PORTS = 3
# What came before it is left out: other programs had CPU time meanwhile.
AGAIN = "again"
# The events between which a worker does what it is measured by.
BEGINNINGS = {AGAIN, *(event for task in TASKS.values() for event in task.begins)}
ENDS = {event for task in TASKS.values() for event in task.ends}


class Watch(Protocol):
    """Looks at a machine while a worker is at work."""

    def begin(self) -> None:
        """Is called when the worker begins what it is measured by."""

    def end(self) -> None:
        """Is called when the worker has ended what it is measured by."""

    def look(self, pid: int) -> None:
        """Is called from the worker's start on, about every half second and after each event but the last."""


class Limits(NamedTuple):
    """The limits at which a cell is ended: seconds from its start, resident bytes of all its ranks."""

    seconds: float
    bytes: int


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
    launch: Launch = HERE,
) -> Outcome:
    """Runs `job` in the environment in the folder `prefix` on `cpus` and returns its outcome, whatever happens to it.

    A job of several `ranks` has as many workers, which `launch` starts; on this machine they share out the `cpus`.
    `meanwhile` is called once the worker has started, so that slow imports of this process run beside the framework's
    own. `watches` look at what the worker uses. The worker is killed after `limit_seconds`, when its resident memory
    passes `limit_bytes`, and when this process dies. Raises OSError where the disk was full, which says nothing of the
    framework. Waits until no other run measures on this machine; proofs may run beside one another.
    """
    limits = Limits(limit_seconds, limit_bytes)

    def attempt() -> Outcome:
        log.parent.mkdir(parents=True, exist_ok=True)
        kills_before = processes.kernel_kills()
        outcome, pace = Outcome(), Pace()
        # A framework may have put something else in its place.
        with tempfile.TemporaryDirectory(
            prefix="steptime-", dir=launch.folder(log), ignore_cleanup_errors=True
        ) as scratch:
            given = isolated(
                variables
                | own_folders(prefix, scratch)
                | {"STEPTIME_THROTTLING": os.pathsep.join(cgroups.throttling_files())}
                | _libraries(variables, job["device"], scratch),
                job["device"],
                worker_path(scratch),
            )
            try:
                with launch.started(prefix / "bin/python", job, cpus, given, log) as members:
                    meanwhile()
                    _watch(members, outcome, limits, [*watches, pace])
                    if outcome.status == "ok":
                        outcome.status, outcome.reason = endings.cause(
                            members, lambda: processes.kernel_kills() > kills_before
                        )
                        if outcome.status == "out_of_memory":
                            _end_proof(members[0], outcome)
                    wrong = pace.refusal(outcome.samples, outcome.epochs)
                    if outcome.status == "ok" and wrong:
                        outcome.status, outcome.reason = "not_equivalent", wrong
                    outcome.printed = "\n".join(rank.tail() for rank in members)
            except ranks.NotStarted as error:
                outcome.status, outcome.reason = "crashed", str(error)
                return outcome
            if outcome.status == "crashed":
                # Before its own temporary files go.
                _refuse_full_disk(outcome.reason, log, Path(scratch))
        if len(members) > 1:
            outcome.ranks = [rank.facts() for rank in members]
        reported = outcome.events.get("done", {}).get("peak_memory_bytes")
        outcome.peak_memory_bytes = max(
            filter(None, (outcome.peak_memory_bytes, reported)), default=None
        )
        return outcome

    with alone(beside=job["task"] not in TASKS):
        _end_with_the_run()
        began, clock = datetime.now(UTC), time.monotonic()
        for _ in range(MOST_PORTS):
            outcome = attempt()
            if not _have_not_met(outcome):
                break
            if UNMET not in outcome.reason:
                outcome.reason = f"another program has taken a port of its ranks: {outcome.reason}"
        # The clock of the day may be set meanwhile.
        outcome.span = (began, began + timedelta(seconds=time.monotonic() - clock))
        return outcome


def _have_not_met(outcome: Outcome) -> bool:
    """Tells whether ranks have missed one another, or another program has taken one of their ports."""
    if outcome.status != "crashed" or "ready" in outcome.events:
        return False
    printed = f"{outcome.reason}\n{outcome.printed}".lower()
    # One rank alone has a server to meet.
    return UNMET in printed or (bool(outcome.ranks) and any(words in printed for words in TAKEN))


def own_folders(prefix: Path, scratch: str) -> dict[str, str]:
    """Returns the variables that give a worker its own folders.

    Settings and caches of the framework stay in the environment's folder `prefix`; `scratch` is removed.
    """
    home = prefix / "home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "TMPDIR": scratch}


def _libraries(variables: dict[str, str], device: str, scratch: str) -> dict[str, str]:
    """Returns the path on which a worker on a GPU finds libraries: its own variables' first, then the driver's."""
    if device != "gpu":
        return {}
    places = (variables.get("LD_LIBRARY_PATH", ""), gpu.driver_links(Path(scratch) / "driver"))
    return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, places))}


def worker_path(scratch: str) -> str:
    """Makes a folder with only the worker's packages: nothing else may hide a package of an environment's Python."""
    folder = Path(scratch) / "path"
    folder.mkdir()
    for package in (WORKER, SHARED):
        (folder / package.name).symlink_to(package)
    return str(folder)


def _watch(members: list[Rank], outcome: Outcome, limits: Limits, watches: Sequence[Watch]) -> None:
    """Listens to the ranks until one says nothing more, or passes a limit; then waits for the others."""
    deadline = time.monotonic() + limits.seconds
    with selectors.DefaultSelector() as selector:
        for rank in members:
            selector.register(rank.pipe, selectors.EVENT_READ, rank)
        while not any(rank.silent for rank in members):
            _listen(selector, POLL_SECONDS, members, outcome, watches)
            if any(rank.silent for rank in members):
                break
            _end_with_the_run()
            for watch in watches:
                watch.look(members[0].process.pid)
            _weigh(members, outcome, limits.bytes)
            printed = sum(os.fstat(rank.log.fileno()).st_size for rank in members)
            if printed > MOST_PRINTED_BYTES:
                outcome.status = "crashed"
                outcome.reason = f"it printed more than {MOST_PRINTED_BYTES / 2**30:g} GiB"
            elif time.monotonic() > deadline and outcome.status == "ok":
                outcome.status = "timeout"
                outcome.reason = f"not done after {limits.seconds:g} s, the limit of the grid ({_last_stage(outcome)})"
            if outcome.status != "ok":
                _end_proof(members[0], outcome)
                return
        # What one rank has to say about the end of another is heard too.
        deadline = time.monotonic() + ENDING_SECONDS
        while not all(rank.silent for rank in members) and time.monotonic() < deadline:
            _listen(selector, max(0.0, deadline - time.monotonic()), members, outcome, watches)
    for rank in members:
        with suppress(subprocess.TimeoutExpired):
            rank.process.wait(max(0.0, deadline - time.monotonic()))


def _end_proof(first: Rank, outcome: Outcome) -> None:
    """Ends only the proof, and not the row, where a limit was passed after all samples were taken."""
    if "timed" in outcome.events:
        first.events["done"] = outcome.events["done"] = outcome.events["timed"]
        proven = outcome.events.get("proven", {})
        outcome.events["proven"] = proven | {"lacking": outcome.reason}
        outcome.status, outcome.reason = "ok", ""


def _listen(
    selector: selectors.BaseSelector,
    seconds: float,
    members: list[Rank],
    outcome: Outcome,
    watches: Sequence[Watch],
) -> None:
    """Notes what ranks say within `seconds`."""
    for key, _ in selector.select(seconds):
        for name, event in key.data.read():
            if key.data.number == 0:
                _note(name, event, outcome, members, watches)
        if key.data.silent:
            selector.unregister(key.fileobj)


def _weigh(members: list[Rank], outcome: Outcome, limit_bytes: int) -> None:
    """Notes how much memory all ranks hold; above the limit on one node, the cell is out of memory."""
    held = [rank.process.memory() for rank in members]
    peak = sum(most or 0 for _, most in held)
    # What comes after is for the proof, not for what is timed.
    if not outcome.events.keys() & ENDS:
        outcome.peak_memory_bytes = max(
            filter(None, (outcome.peak_memory_bytes, peak)), default=None
        )
    for node in dict.fromkeys(rank.node for rank in members):
        mine = [at for at, rank in enumerate(members) if rank.node == node]
        resident = sum(held[at][0] for at in mine)
        if resident > limit_bytes:
            # Pages that forked processes share are counted once, which takes longer.
            resident = sum(members[at].process.proportional_memory() for at in mine) or resident
        if resident > limit_bytes:
            outcome.status = "out_of_memory"
            where = f" on {node}" if node else ""
            outcome.reason = (
                f"the worker held {resident / 2**30:.1f} GiB{where}, "
                f"above the limit of {limit_bytes / 2**30:.1f} GiB"
            )


def _end_with_the_run() -> None:
    """Ends this process where Snakemake has ended: its cell would run beside the next run's cells."""
    if RUN and RUN not in processes.ancestors():
        sys.exit("The run has ended, and so does this cell: nothing of it is kept.")


def _note(
    name: str,
    event: dict[str, Any],
    outcome: Outcome,
    members: list[Rank],
    watches: Sequence[Watch],
) -> None:
    if name == "sample":
        outcome.samples.append((event["steps"], event["seconds"]))
    elif name == "epoch":
        outcome.epochs.append(event)
    elif name == "part":
        outcome.parts.append(event)
    elif name != "failed":
        outcome.events[name] = event
        if name == "ready":
            # The first rank tells it when it has heard from all.
            outcome.ready_seconds = time.monotonic() - outcome.made_at
        outcome.libraries = sorted({*outcome.libraries, *event.pop("libraries", [])})
        if name == AGAIN:
            outcome.samples.clear()
            outcome.snapshots.clear()
        if name in BEGINNINGS | ENDS:
            # The kernel is that of the first one's machine.
            cpus = [cpu for rank in members if rank.node == members[0].node for cpu in rank.cpus]
            outcome.snapshots.append(interference.parse(**event.pop("kernel"), cpus=cpus))
            if len(members) > 1:
                for rank in members:
                    rank.waited.append(rank.process.waited_seconds())
                outcome.loopback.append(members[0].process.loopback_bytes())
            for watch in watches:
                watch.begin() if name in BEGINNINGS else watch.end()


def _last_stage(outcome: Outcome) -> str:
    if outcome.samples:
        return f"{len(outcome.samples)} samples taken"
    if outcome.epochs:
        return f"{len(outcome.epochs)} epochs trained"
    if outcome.parts:
        return f"{len(outcome.parts)} operations timed"
    if "began" in outcome.events:
        return "in the first epoch"
    if "warmup" in outcome.events:
        return "before the first sample"
    return "in the warm-up" if "ready" in outcome.events else "before the network was built"


def _refuse_full_disk(reason: str, log: Path, scratch: Path) -> None:
    words = os.strerror(errno.ENOSPC)
    # Each folder, or what is left of its path.
    there = [next(filter(Path.exists, (at, *at.parents))) for at in (log.parent, scratch)]
    if words in reason and min(shutil.disk_usage(at).free for at in there) < LEAST_FREE_BYTES:
        raise OSError(errno.ENOSPC, words, str(log))
