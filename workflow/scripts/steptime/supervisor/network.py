"""A network for the ranks of a cell that has the loopback interface alone, so that nobody else reaches what they open.

Some frameworks listen on every interface, whatever address they are given. Linux gives any user such a network, with a
user namespace (user_namespaces(7), network_namespaces(7)), unless the machine's owner forbids it.
"""

import ctypes
import fcntl
import os
import socket
import struct
from functools import cache
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
# netdevice(7).
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


@cache
def possible() -> bool:
    """Whether this machine gives such a network."""
    child = os.fork()
    if not child:
        try:
            make()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def make() -> None:
    """Gives this process, which has one thread, a network of its own. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER | CLONE_NEWNET)
    # The same user as before: what it writes is as it was.
    for name, text in {
        "setgroups": "deny",
        "uid_map": f"{user} {user} 1",
        "gid_map": f"{group} {group} 1",
    }.items():
        Path("/proc/self", name).write_text(text)
    with socket.socket() as anyone:
        fcntl.ioctl(anyone, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def enter(pid: int) -> None:
    """Takes this process into the network of another one that has called `make`. Raises OSError."""
    for kind in ("user", "net"):
        file = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
        _call("setns", file, 0)
        os.close(file)


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
