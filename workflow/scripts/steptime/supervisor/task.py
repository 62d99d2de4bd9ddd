"""The task that SLURM starts for one rank of a cell on several nodes.

    workflow/scripts/launch supervisor.task ADDRESS:PORT

It starts the rank on its node and passes on what the rank says. `steptime.supervisor.nodes` starts it, and says which
messages they exchange. It ends its rank, and all that the rank has started, when the supervisor hangs up or is gone.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from steptime import machine
from steptime.machine import placement, processes
from steptime.supervisor import nodes, ranks
from steptime.supervisor.events import ENDED, HELD
from steptime.supervisor.ranks import Rank

TELL_SECONDS = 0.5
# A worker that closes its pipe mostly ends.
ENDING_SECONDS = 1.0


def main() -> None:
    """Runs the command line, whose argument is the supervisor's address."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    number, secret = int(os.environ["SLURM_PROCID"]), os.environ.pop(nodes.SECRET)
    try:
        address, _, port = sys.argv[1].rpartition(":")
        supervisor = socket.create_connection((address, int(port)), nodes.ANSWER_SECONDS)
    except OSError as error:
        sys.exit(f"{placement.name()} does not reach {sys.argv[1]}, the first node ({error})")
    with ExitStack() as stack:
        stack.enter_context(supervisor)
        # The one by which this node reaches the others.
        address = supervisor.getsockname()[0]
        links = stack.enter_context(socket.create_server((address, 0)))
        own_port, server = ranks.free_ports(2, address)
        _say(
            supervisor,
            secret=secret,
            rank=number,
            node=placement.name(),
            address=address,
            interface=interface_of(address),
            port=own_port,
            server=server,
            links=links.getsockname()[1],
        )
        order = nodes.heard(supervisor, None)
        if "check" in order:
            _say(supervisor, refused=placement.refusal(order["check"]))
            order = nodes.heard(supervisor, None)
        if order:
            _run(number, order, secret, links, supervisor)


def interface_of(address: str) -> str:
    """Returns the network interface that has this address; the loopback interface has all of 127.0.0.0/8."""
    known = psutil.net_if_addrs().items()
    names = [name for name, own in known if any(each.address == address for each in own)]
    return names[0] if names else "lo"


def _run(
    number: int, order: dict[str, Any], secret: str, links: socket.socket, supervisor: socket.socket
) -> None:
    """Starts the rank and stays with it until it has to end."""
    members: list[Rank] = []
    threads, count = order["cpus"]
    others = processes.adopt_orphans()
    try:
        ends = _joined(number, order, secret, links)
        own = ranks.shares(machine.cpus_of_ranks(threads, count), count)
        cpus = own[int(os.environ["SLURM_LOCALID"])]
        descriptors = ",".join(str(end.fileno()) for end in ends)
        given = order["variables"] | {"STEPTIME_LINKS": descriptors}
        python, log = Path(order["python"]), Path(order["log"])
        members.append(ranks.start(number, python, order["job"], cpus, given, ends, log, []))
        for end in ends:
            end.close()
        _say(supervisor, pid=members[0].process.pid, cpus=cpus)
        _attend(members[0], supervisor)
    except (ranks.NotStarted, OSError) as error:
        _say(supervisor, reason=str(error))
    finally:
        ranks.end(members, others)


def _joined(
    number: int, order: dict[str, Any], secret: str, links: socket.socket
) -> list[socket.socket]:
    """Returns the sockets to other ranks: from rank 0 to each, from another rank to rank 0. Raises OSError."""
    if number:
        end = socket.create_connection(tuple(order["links"]), nodes.ANSWER_SECONDS)
        _say(end, secret=secret, rank=number)
        return [_for_worker(end)]
    links.settimeout(nodes.ANSWER_SECONDS)
    sockets: dict[int, socket.socket] = {}
    while len(sockets) < order["job"]["ranks"] - 1:
        end, _ = links.accept()
        message = nodes.heard(end)
        if message.get("secret") == secret:
            sockets[message["rank"]] = _for_worker(end)
        else:
            end.close()
    return [sockets[rank] for rank in sorted(sockets)]


def _for_worker(end: socket.socket) -> socket.socket:
    """Sets up a socket for a worker: it waits, and sends short messages at once."""
    end.settimeout(None)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def _attend(rank: Rank, supervisor: socket.socket) -> None:
    """Passes on what the rank says, in whole lines, and what it uses, until the supervisor hangs up."""
    rest, due, kills = b"", 0.0, processes.kernel_kills()
    with selectors.DefaultSelector() as selector, suppress(OSError):
        supervisor.settimeout(None)
        selector.register(supervisor, selectors.EVENT_READ)
        selector.register(rank.pipe, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(TELL_SECONDS):
                if key.fileobj is supervisor:
                    return
                chunk = rank.pipe.read(2**16)
                *lines, rest = (rest + (chunk or b"")).split(b"\n")
                rest = rest if len(rest) <= ranks.LONGEST_LINE else b""
                supervisor.sendall(b"".join(line + b"\n" for line in lines))
                if chunk == b"":
                    selector.unregister(rank.pipe)
                    _tell_the_end(rank, supervisor, kills)
            if time.monotonic() >= due and rank.process.returncode is None:
                due = time.monotonic() + TELL_SECONDS
                resident, peak = rank.process.memory()
                waited = rank.process.waited_seconds()
                _say(supervisor, event=HELD, resident=resident, peak=peak, waited=waited)


def _tell_the_end(rank: Rank, supervisor: socket.socket, kills: int) -> None:
    with suppress(subprocess.TimeoutExpired):
        rank.process.wait(ENDING_SECONDS)
    killed = processes.kernel_kills() > kills
    _say(supervisor, event=ENDED, code=rank.process.returncode, killed=killed)
    supervisor.shutdown(socket.SHUT_WR)


def _say(connection: socket.socket, **words: Any) -> None:
    connection.sendall(json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    main()
