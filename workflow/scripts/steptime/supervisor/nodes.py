"""Runs the ranks of a cell on several nodes of a SLURM cluster: one step of the cell's job, one task a rank.

The supervisor is on the first node. Each task (`steptime.supervisor.task`) connects to it from its own node, shows a
secret that only this step was given, starts its rank as on one machine, and passes on what the rank says. Ranks meet at
the addresses by which their nodes reached the first one. A task that loses the supervisor ends its rank; a task that is
lost counts as a rank that has ended, and ends the others.
"""

import hmac
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from steptime.machine import placement
from steptime.supervisor import events
from steptime.supervisor.events import ENDED, HELD
from steptime.supervisor.ranks import Launch, NotStarted, Rank, gather

# What a step must know of its job. The rest describes another step: the one that this process is in.
KEPT = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_CLUSTER_NAME", "SLURM_CONF")
SECRET = "STEPTIME_SECRET"
MEETING_SECONDS = 120.0
ANSWER_SECONDS = 10.0
# The check of a node, and the start of a worker, take some time.
STARTING_SECONDS = 60.0
ENDING_SECONDS = 10.0
LONGEST_WORD = 2**20


class Task:
    """A worker process on a node, as its task reports it: what `ranks.Child` is on this machine."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.is_out_of_memory = False
        self._held: dict[str, Any] = {}

    def note(self, name: str, event: dict[str, Any]) -> None:
        if name == HELD:
            self._held = event
        else:
            self.returncode, self.is_out_of_memory = event["code"], event["killed"]

    def lose(self) -> None:
        """Notes that its task has ended: unless the process had ended before, the kernel then kills it."""
        if self.returncode is None:
            self.returncode = -signal.SIGKILL

    def wait(self, timeout: float) -> int:
        """Does nothing: its task ends it."""
        return self.returncode or 0

    def memory(self) -> tuple[int, int | None]:
        return self._held.get("resident", 0), self._held.get("peak")

    def proportional_memory(self) -> int:
        return self.memory()[0]

    def waited_seconds(self) -> float | None:
        """Returns the last report, half a second old or less."""
        return self._held.get("waited")

    def loopback_bytes(self) -> int | None:
        """Returns None: traffic between nodes does not use the loopback interface."""
        return None


@dataclass(eq=False)
class TaskRank(Rank):
    """A rank on a node, whose words come by way of its task."""

    def read(self) -> Iterator[tuple[str, dict[str, Any]]]:
        assert isinstance(self.process, Task)
        for name, event in super().read():
            if name in (HELD, ENDED):
                self.process.note(name, event)
            else:
                yield name, event
        if self.silent and not self.has_spoken():
            self.process.lose()


@dataclass
class NodeTask:
    """A task that has connected: its node's name, and where that node is reached."""

    connection: socket.socket
    node: str
    address: str
    interface: str
    port: int
    # Only for the first rank: a port for a server, and the port for the others' links.
    server: int
    links: int


def launch(platform: str, nodes: int, threads: int) -> Launch:
    """Returns how to start ranks of so many threads on a platform's nodes, in this job; without nodes, exits."""

    @contextmanager
    def started(
        python: Path, job: dict[str, Any], cpus: list[int], variables: dict[str, str], log: Path
    ) -> Iterator[list[Rank]]:
        # As `ranks.started`; which `cpus` a rank has is decided on its node.
        count, scratch = job["ranks"], Path(variables["TMPDIR"]).absolute()
        printed, meeting = scratch / "step", scratch / "meeting"
        logs = [log.absolute(), *(scratch / f"rank{number}.log" for number in range(1, count))]
        meeting.mkdir()
        secret, each = secrets.token_hex(16), count // nodes
        cores = placement.entry(platform)["cores"]
        ranks: list[Rank] = []
        with ExitStack() as stack:
            stack.callback(gather, ranks)
            server = stack.enter_context(_listening(log))
            step = stack.enter_context(_step(server, count, nodes, cores, secret, printed, log))
            # Before the step is waited for: who comes too late goes again.
            stack.callback(server.close)
            tasks = _gathered(server, count, secret, step, printed, log, stack)
            _check(tasks, platform, log)
            addresses = {
                "STEPTIME_MEETING": str(meeting),
                "STEPTIME_ENDPOINTS": ",".join(f"{task.address}:{task.port}" for task in tasks),
                "STEPTIME_SERVER": f"{tasks[0].address}:{tasks[0].server}",
                "STEPTIME_NETWORK": "nodes",
            }
            for number, task in enumerate(tasks):
                follows = {"rank": number, "task": job.get("follow", "follow")} if number else {}
                _tell(
                    task.connection,
                    python=str(python.absolute()),
                    job=job | follows,
                    variables=variables | addresses | {"STEPTIME_INTERFACE": task.interface},
                    log=str(logs[number]),
                    cpus=[threads, each],
                    links=[tasks[0].address, tasks[0].links],
                )
            for number, task in enumerate(tasks):
                owes = () if number else events.owed(job)
                ranks.append(_rank(number, task, logs[number], owes))
                stack.callback(ranks[-1].pipe.close)
            yield ranks

    # Beside the log, since all nodes see that.
    return Launch(lambda log: log.parent.absolute(), started)


@contextmanager
def _listening(log: Path) -> Iterator[socket.socket]:
    """Opens a socket on this node's own address only."""
    node = placement.name()
    shown = ""
    if shutil.which("scontrol"):
        command = ["scontrol", "show", "node", node]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    known = re.search(r"(?:^|\s)NodeAddr=(\S*)", shown)
    address = known[1] if known else node
    try:
        *_, place = socket.getaddrinfo(address, 0, socket.AF_INET, socket.SOCK_STREAM)[0]
        server = socket.create_server(place)  # type: ignore[arg-type]
    except OSError as error:
        _give_up(
            log,
            f"Ranks on several nodes meet at the address of the first one, and '{address}', which "
            f"SLURM knows {node} by, is no address of this machine ({error.strerror}). Nothing was measured.",
        )
    with server:
        yield server


@contextmanager
def _step(
    server: socket.socket, count: int, nodes: int, cores: int, secret: str, printed: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a step of as many tasks as there are ranks, on nodes of so many `cores`; ends it afterwards."""
    address, port = server.getsockname()
    command = [
        "srun",
        f"--ntasks={count}",
        f"--nodes={nodes}",
        f"--ntasks-per-node={count // nodes}",
        f"--cpus-per-task={cores * nodes // count}",
        "--distribution=block",
        # It is beside the step that this process is in, and has all of each node, as that one has.
        "--overlap",
        "--mem=0",
        "--cpu-bind=none",
        "--input=none",
    ]
    command += [sys.executable, "-m", "steptime", "supervisor.task", f"{address}:{port}"]
    of_step = ("SLURM_", "SRUN_", "SBATCH_")
    kept = [name for name in os.environ if name in KEPT or not name.startswith(of_step)]
    variables = {name: os.environ[name] for name in kept} | {SECRET: secret}
    with printed.open("wb") as output:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output}
        streams["stderr"] = subprocess.STDOUT
        try:
            step = subprocess.Popen(command, env=variables, start_new_session=True, **streams)
        except OSError as error:
            _give_up(log, f"srun does not start: {error}. Nothing was measured.")
    try:
        yield step
    finally:
        # Its tasks have lost their supervisor by now.
        with suppress(subprocess.TimeoutExpired):
            step.wait(ENDING_SECONDS)
        step.kill()
        step.wait()


def _gathered(
    server: socket.socket,
    count: int,
    secret: str,
    step: subprocess.Popen[bytes],
    printed: Path,
    log: Path,
    stack: ExitStack,
) -> list[NodeTask]:
    """Returns the tasks of all ranks, in the order of ranks, when they have connected."""
    tasks: dict[int, NodeTask] = {}
    deadline = time.monotonic() + MEETING_SECONDS
    server.settimeout(0.2)
    while len(tasks) < count:
        if step.poll() is not None or time.monotonic() > deadline:
            lines = printed.read_text(errors="replace").strip().splitlines()
            why = lines[-1] if lines else f"{len(tasks)} of {count} came in {MEETING_SECONDS:g} s"
            _give_up(log, f"SLURM has not started the {count} ranks: {why}. Nothing was measured.")
        with suppress(TimeoutError):
            connection, _ = server.accept()
            stack.callback(_hang_up, connection)
            message = heard(connection)
            # Nothing is said to anyone else who connects.
            if hmac.compare_digest(str(message.pop("secret", "")), secret):
                number = message.pop("rank")
                tasks[number] = NodeTask(connection, **message)
            else:
                connection.close()
    return [tasks[number] for number in range(count)]


def _check(tasks: list[NodeTask], platform: str, log: Path) -> None:
    """Asks each node whether it is the platform and idle, except the first, which was checked before."""
    seen = {tasks[0].node: tasks[0]}
    others = [seen.setdefault(task.node, task) for task in tasks if task.node not in seen]
    for task in others:
        _tell(task.connection, check=platform)
    for task in others:
        gone = f"The task on {task.node} has ended. Nothing was measured."
        if refused := heard(task.connection, STARTING_SECONDS).get("refused", gone):
            _give_up(log, refused)


def _rank(number: int, task: NodeTask, log: Path, owes: tuple[str, ...]) -> Rank:
    """Returns the rank that a task has started. Raises NotStarted."""
    message = heard(task.connection, STARTING_SECONDS)
    if "pid" not in message:
        why = message.get("reason", f"its task on {task.node} has ended")
        raise NotStarted(f"rank {number}: {why}")
    task.connection.setblocking(False)
    pipe = os.fdopen(os.dup(task.connection.fileno()), "rb")
    process, printed = Task(message["pid"]), log.open("r+b", 0)
    return TaskRank(number, process, message["cpus"], pipe, printed, task.node, owes)


def heard(connection: socket.socket, seconds: float | None = ANSWER_SECONDS) -> dict[str, Any]:
    """Reads the other end's next message, a line of JSON, and no byte more; {} where none comes in `seconds`."""
    connection.settimeout(seconds)
    line = bytearray()
    with suppress(OSError, ValueError):
        while not line.endswith(b"\n") and len(line) < LONGEST_WORD:
            byte = connection.recv(1)
            if not byte:
                break
            line += byte
        message = json.loads(line)
        return message if isinstance(message, dict) else {}
    return {}


def _tell(connection: socket.socket, **words: Any) -> None:
    connection.settimeout(ANSWER_SECONDS)
    # An end that has gone is missed when it has to answer.
    with suppress(OSError):
        connection.sendall(json.dumps(words).encode() + b"\n")


def _hang_up(connection: socket.socket) -> None:
    """Ends a connection at once, even where another file of this process has it open."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _give_up(log: Path, sentence: str) -> NoReturn:
    """Ends the program: nothing was learned of the framework, and another node may work."""
    log.write_text(f"{sentence}\n")
    sys.exit(sentence)
