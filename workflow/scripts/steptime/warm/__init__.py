"""Starts tables, figures and pages in processes that have loaded all: loading takes longer than making most of them."""

import json
import os
import socket
import subprocess

from steptime import run

# Relative to the folder that is worked in: a socket's address has 107 letters at most.
ADDRESS = f"{run.FOLDER}/warm"
PROGRAMS = ["artefacts.make", "merge.cells", "merge.repeats", "merge.statistics"]
PROGRAMS += ["page.page", "page.so_far", "page.summary"]
STARTED: list["subprocess.Popen[bytes]"] = []


def begin() -> None:
    """Starts `warm.serve`, which ends when its input does: with this process, however this ends."""
    command = [os.environ["STEPTIME_LAUNCH"], "warm.serve"]
    STARTED.append(subprocess.Popen(command, stdin=subprocess.PIPE))


def status_of(arguments: list[str]) -> int | None:
    """Runs a program in a process that has loaded all, and returns its exit status; None without such a process."""
    if arguments[0] not in PROGRAMS or not run.is_under_way():
        return None
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(ADDRESS)
            socket.send_fds(connection, [b"\0"], [0, 1, 2])
            connection.sendall(json.dumps(arguments).encode())
            connection.shutdown(socket.SHUT_WR)
            # Nothing comes of a process that was killed.
            return (connection.recv(1) or b"\1")[0]
    except OSError:
        return None
