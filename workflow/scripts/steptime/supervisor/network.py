"""Makes a network for the ranks of a cell with only the loopback interface, so that nobody else reaches their ports.

Some frameworks listen on every interface, whatever address they are given. Linux gives any user such a network, with a
user namespace (user_namespaces(7), network_namespaces(7)), unless the machine's owner forbids it.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
# netdevice(7).
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


@contextmanager
def made() -> Iterator[list[int]]:
    """Yields the open files of a new network, for `enter`, which lasts as long as they do; [] where there is none."""
    here, there = socket.socketpair()
    with here, ExitStack() as stack:
        maker = os.fork()
        if not maker:
            _make_and_wait(here, there)
        there.close()
        files = []
        if here.recv(1):
            for kind in ("user", "net"):
                files.append(os.open(f"/proc/{maker}/ns/{kind}", os.O_RDONLY))
                stack.callback(os.close, files[-1])
        here.close()
        os.waitpid(maker, 0)
        yield files


def enter(files: list[int]) -> None:
    """Moves this process, which must have one thread, into the network of these files of `made`. Raises OSError."""
    for file in files:
        _call("setns", file, 0)


def _make_and_wait(of_parent: socket.socket, own: socket.socket) -> None:
    """Makes the network, tells the parent, and ends when the parent has opened it or has ended."""
    with suppress(OSError):
        of_parent.close()
        user, group = os.geteuid(), os.getegid()
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNET)
        # The same user as before: what it writes is as it was.
        maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
        for name, text in maps.items():
            Path("/proc/self", name).write_text(text)
        with socket.socket() as anyone:
            fcntl.ioctl(anyone, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
        own.send(b".")
        own.recv(1)
    os._exit(0)


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
