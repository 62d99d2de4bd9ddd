"""Starts the worker processes of a cell: one for each rank, on its own CPUs, in a network that nobody else can reach.

Variables tell ranks how to reach one another, as `worker.ranks` says. A cell on one device has one rank, without such
variables. Ranks start on this machine (`HERE`) or on nodes of a cluster (`steptime.supervisor.nodes`).
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from steptime.machine import interference, processes
from steptime.supervisor import events, network
from steptime.supervisor.events import LAST_WORDS

if TYPE_CHECKING:
    from steptime.supervisor.nodes import Task

OOM_SCORE = Path("/proc/self/oom_score_adj")
PR_SET_PDEATHSIG = 1
LOOPBACK = "127.0.0.1"
LONGEST_LINE = 2**22
TAIL_BYTES = 2**16


class NotStarted(Exception):
    """A rank could not be started; the text is the reason."""


class Child(subprocess.Popen[bytes]):
    """A worker process that this process has started."""

    # Whether the kernel has killed it for want of memory, as far as this is known of it alone.
    is_out_of_memory = False
    # The kernel's counts of its network.
    network: TextIO | None = None

    def memory(self) -> tuple[int, int | None]:
        """Returns resident bytes of the process and of those below it, and their high-water mark."""
        return processes.memory(self.pid)

    def proportional_memory(self) -> int:
        """Returns the resident bytes with shared pages counted once, where the kernel says which these are."""
        return processes.proportional_memory(self.pid)

    def waited_seconds(self) -> float | None:
        """Returns the seconds for which its threads waited for a CPU; None where it has ended."""
        waited = []
        for member in processes.family(self.pid):
            for path in Path(f"/proc/{member}/task").glob("*/schedstat"):
                with suppress(OSError):
                    waited.append(int(path.read_text().split()[1]))
        return sum(waited) / 1e9 if waited else None

    def loopback_bytes(self) -> int | None:
        """Returns the bytes that have gone over its network's loopback interface; None where that is not known."""
        with suppress(OSError):
            # The file has the network's counts as long as it is open, even when the rank has ended.
            self.network = self.network or Path(f"/proc/{self.pid}/net/dev").open()
            self.network.seek(0)
            for line in self.network:
                name, _, counts = line.partition(":")
                if name.strip() == "lo":
                    return int(counts.split()[0])
        return None


@dataclass(eq=False)
class Rank:
    """A worker process, and what it has said."""

    number: int
    process: "Child | Task"
    cpus: list[int]
    pipe: BinaryIO
    # What it prints: open, since a framework or a user may remove the log, or put another one in its place.
    log: BinaryIO
    # The node of a cluster that it is on; '' of this machine.
    node: str = ""
    # The events without which it is not done, and which of them it had not told when it said that it was.
    owes: tuple[str, ...] = ()
    lacking: list[str] = field(default_factory=list)
    # What it has said so far of a line.
    rest: bytes = b""
    # The last event of each name.
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    # When it had said its last word, or closed its pipe.
    silent_since: float | None = None
    # How long it had waited for a CPU when its work began, and when that had ended.
    waited: list[float | None] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Tells whether it says nothing more."""
        return self.silent_since is not None

    def read(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields name and fields of each event since the last call, up to its last word."""
        chunk = self.pipe.read(65536)
        if chunk == b"":
            self.silent_since = time.monotonic()
            return
        *lines, rest = (self.rest + (chunk or b"")).split(b"\n")
        # No event is as long: a library writes there, without an end of line.
        self.rest = rest if len(rest) <= LONGEST_LINE else b""
        for name, event in filter(None, map(events.read, lines)):
            if name == "done":
                self.lacking = [each for each in self.owes if each not in self.events]
            if name == "done" and self.lacking:
                continue
            self.events[name] = event
            yield name, event
            if name in LAST_WORDS:
                self.silent_since = time.monotonic()
                return

    def tail(self) -> str:
        """Returns the end of what it has printed."""
        with self.opened("rb") as log:
            log.seek(-min(TAIL_BYTES, os.fstat(log.fileno()).st_size), os.SEEK_END)
            return log.read(TAIL_BYTES).decode(errors="replace")

    def opened(self, mode: str) -> BinaryIO:
        """Opens its log again, even if it was moved: opening a file shows what another node has written."""
        return cast(BinaryIO, open(f"/proc/self/fd/{self.log.fileno()}", mode))

    def has_spoken(self) -> bool:
        """Tells whether it has said its last word."""
        return any(name in self.events for name in LAST_WORDS)

    def facts(self) -> dict[str, Any]:
        """Returns what a shard says of it; `waited_seconds` are those for a CPU while samples were taken."""
        return {
            **self.events.get("followed", {}),
            "rank": self.number,
            "cpus": self.cpus,
            **({"node": self.node} if self.node else {}),
            "waited_seconds": interference.growth(self.waited),
        }


@dataclass(frozen=True)
class Launch:
    """A way to start ranks."""

    # The folder for temporary files that all ranks see, by a cell's log; None for the usual one.
    folder: Callable[[Path], Path | None]
    # As `started`.
    started: Callable[..., AbstractContextManager[list[Rank]]]


def shares(cpus: list[int], ranks: int) -> list[list[int]]:
    """Returns the CPUs of each rank: as many for each, and none for two; all for all where there are too few."""
    each = len(cpus) // ranks
    if not each:
        return [cpus] * ranks
    return [cpus[number * each : (number + 1) * each] for number in range(ranks)]


@contextmanager
def started(
    python: Path, job: dict[str, Any], cpus: list[int], variables: dict[str, str], log: Path
) -> Iterator[list[Rank]]:
    """Starts the ranks of a job, with the variables that join them; ends them afterwards. Raises NotStarted.

    What other ranks print is added to `log` after what the first prints. PYTHONPATH, one path, is the working folder.
    """
    count, scratch = job.get("ranks", 1), Path(variables["TMPDIR"])
    # A single rank with an exchange starts as several do: it is one of one.
    joins = count > 1 or bool(job.get("exchange"))
    logs = [log, *(scratch / f"rank{number}.log" for number in range(1, count))]
    ranks: list[Rank] = []
    others: set[int] = set()
    with ExitStack() as stack:
        stack.callback(gather, ranks)
        files = stack.enter_context(network.made()) if joins else []
        joining = _joining(count, scratch, bool(files), stack) if joins else [({}, [])]
        stack.callback(end, ranks, others)
        for number, own in enumerate(shares(cpus, count)):
            joined, ends = joining[number]
            follows = {"rank": number, "task": job.get("follow", "follow")}
            asked = job | (follows if number else {})
            given = variables | joined
            ranks.append(start(number, python, asked, own, given, ends, logs[number], files))
            if number == 0:
                others |= processes.adopt_orphans() - {ranks[0].process.pid}
        for _, ends in joining:
            for each in ends:
                each.close()
        yield ranks


HERE = Launch(lambda log: None, started)


def _joining(
    count: int, scratch: Path, alone: bool, stack: ExitStack
) -> list[tuple[dict[str, str], list[socket.socket]]]:
    """Returns, for each rank, the variables that join it to the others, and its sockets.

    `alone` tells whether no other program is in their network.
    """
    meeting = scratch / "meeting"
    meeting.mkdir()
    pairs = [socket.socketpair() for _ in range(1, count)]
    for end in (end for pair in pairs for end in pair):
        stack.callback(end.close)
    *ports, of_server = free_ports(count + 1)
    meet = {
        "STEPTIME_MEETING": str(meeting),
        "STEPTIME_ENDPOINTS": ",".join(f"{LOOPBACK}:{port}" for port in ports),
        "STEPTIME_SERVER": f"{LOOPBACK}:{of_server}",
        "STEPTIME_INTERFACE": "lo",
        "STEPTIME_NETWORK": "own" if alone else "",
    }
    ends = [[first for first, _ in pairs], *([second] for _, second in pairs)]
    links = [",".join(str(end.fileno()) for end in own) for own in ends]
    return [(meet | {"STEPTIME_LINKS": each}, own) for each, own in zip(links, ends, strict=True)]


def free_ports(count: int, address: str = LOOPBACK) -> list[int]:
    """Returns free ports of an address of this machine. If one is taken meanwhile, the framework will say so."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in held:
            each.bind((address, 0))
        return [each.getsockname()[1] for each in held]


def start(
    number: int,
    python: Path,
    job: dict[str, Any],
    cpus: list[int],
    variables: dict[str, str],
    ends: list[socket.socket],
    log: Path,
    files: list[int],
) -> Rank:
    """Starts the rank `number` of a job on these CPUs and its own GPU, in the network of `files`. Raises NotStarted."""
    if job["device"] == "gpu" and job.get("ranks", 1) > 1:
        own = variables["CUDA_VISIBLE_DEVICES"].split(",")[number]
        variables = variables | {"CUDA_VISIBLE_DEVICES": own}
    reading, writing = os.pipe()
    output = log.open("w+b", buffering=0)
    with tempfile.TemporaryFile("w+") as stdin:
        json.dump(job, stdin)
        stdin.seek(0)
        try:
            process = Child(
                [str(python), "-m", "worker", str(writing)],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing, *(end.fileno() for end in ends)],
                env=variables,
                start_new_session=True,
                # `python -m` looks there first: nothing in the user's folder may hide a package.
                cwd=variables["PYTHONPATH"],
                preexec_fn=lambda: _prepare(cpus, files),
            )
        except (OSError, subprocess.SubprocessError) as error:
            os.close(reading)
            output.close()
            why = f"the worker cannot be pinned to CPU {', '.join(map(str, cpus))}"
            if isinstance(error, OSError):
                why = f"the environment's Python does not start: {error}"
            raise NotStarted(why) from error
        finally:
            os.close(writing)
    os.set_blocking(reading, False)
    pipe = os.fdopen(reading, "rb")
    return Rank(number, process, cpus, pipe, output, owes=events.owed(job))


def _prepare(cpus: list[int], files: list[int]) -> None:
    """Sets up the child before Python starts: network, CPUs, death with the parent, first choice of the OOM killer."""
    network.enter(files)
    os.sched_setaffinity(0, cpus)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A crash is a row; gigabytes of memory written into the user's folder are of no use to anybody.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Some containers have a /proc that is read alone.
    with suppress(OSError):
        OOM_SCORE.write_text("1000")


def end(ranks: list[Rank], others: set[int]) -> None:
    """Ends all ranks of this machine and what they have started, except the `others` that were there before."""
    children = [rank.process for rank in ranks if isinstance(rank.process, Child)]
    for child in children:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.network:
            child.network.close()
    for rank in ranks:
        rank.pipe.close()
    if children:
        processes.end(children[0], others)


def gather(ranks: list[Rank]) -> None:
    """Appends what the other ranks have printed to the first rank's log, and closes all logs."""
    with ExitStack() as logs:
        for rank in ranks:
            logs.enter_context(rank.log)
        for rank in ranks[1:]:
            with ranks[0].opened("ab") as output, rank.opened("rb") as log:
                output.write(f"\n--- rank {rank.number}\n".encode())
                shutil.copyfileobj(log, output)
