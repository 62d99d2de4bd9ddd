"""Waits for the programs of a run that are to start with all loaded, and forks a process for each of them.

It loads nothing until the first of them comes.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from steptime.__main__ import said_in_words
from steptime.warm import ADDRESS, PROGRAMS

# What some of the programs load only where they need it.
BESIDES = ("artefacts.papers.findings", "page.screen", "render.figures")


def main() -> None:
    """Serves until the input ends; each program's process ends in here, too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nobody waits for a process that has ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    Path(ADDRESS).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.bind(ADDRESS)
        waiting.listen(64)
        while waiting in select.select([waiting, sys.stdin], [], [])[0]:
            connection, _ = waiting.accept()
            with connection:
                for name in (*PROGRAMS, *BESIDES):
                    importlib.import_module(f"steptime.{name}")
                gc.freeze()
                if os.fork() == 0:
                    _answer(connection)
    # A socket would stop whoever copies the project's folder.
    Path(ADDRESS).unlink(missing_ok=True)


def _answer(connection: socket.socket) -> None:
    """Runs a program in a process of its own, and sends its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if number := os.fork():
        _, status = os.waitpid(number, 0)
        # The other end may be gone, as after Ctrl-C.
        with suppress(OSError):
            connection.send(bytes([os.waitstatus_to_exitcode(status) & 255]))
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _, streams, *_ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as file:
        sys.argv = json.load(file)
    connection.close()
    for own, stream in enumerate(streams):
        os.dup2(stream, own)
        os.close(stream)
    with said_in_words(sys.argv[0]):
        importlib.import_module(f"steptime.{sys.argv[0]}").main()
    sys.stderr.flush()
    # To take down what was loaded would take as long as many a table.
    os._exit(0)


if __name__ == "__main__":
    main()
