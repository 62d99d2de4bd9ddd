"""Whom MPICH asks about its processes: a process manager for ranks that the supervisor has started, and no mpiexec.

MPICH speaks PMI-1 with it, a line a message: `cmd=NAME key=value ...`. It is told how many ranks there are, that all
are of one node, and what another one has put down. The manager is a process beside rank 0. It listens at a file in the
folder in which ranks meet (see `worker.ranks`), and at no port.
"""

import os
import select
import socket
import time

from . import ranks

WAIT_SECONDS = 0.01
# Of the names and values that are put down.
MAXIMA = "kvsname_max=256 keylen_max=64 vallen_max=1024"
NAME = "ranks"
# Nodes from the first on, how many, and how many ranks there are on each.
MAPPING = "(vector,(0,1,{}))"


def join(job):
    """Tells MPICH who this rank is, before it is loaded; what must stay open. Raises Unsupported, OSError."""
    ranks.require_own_network("MPICH")
    manager = job.rank == 0 and ranks.start("from worker import mpi; mpi.manage()")
    link = socket.socket(socket.AF_UNIX)
    while True:
        try:
            link.connect(_place())
            break
        except (FileNotFoundError, ConnectionRefusedError):
            if manager and manager.poll() is not None:
                raise
            time.sleep(WAIT_SECONDS)
    os.environ.update(PMI_FD=str(link.fileno()), PMI_RANK=str(job.rank), PMI_SIZE=str(job.ranks))
    return link


def manage():
    """Answers all ranks until they have ended."""
    count = len(ranks.endpoints())
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(_place())
        server.listen(count)
        links = [server.accept()[0] for _ in range(count)]
    heard = {link: link.makefile() for link in links}
    values, waiting = {"PMI_process_mapping": MAPPING.format(count)}, []
    while links:
        for link in select.select(links, [], [])[0]:
            # Who has asked waits for the answer: there is never more than a line.
            words = dict(word.split("=", 1) for word in heard[link].readline().split())
            if not words:
                links.remove(link)
            elif words["cmd"] == "put":
                values[words["key"]] = words["value"]
                _say(link, "put_result rc=0")
            elif words["cmd"] == "get":
                known = words["key"] in values
                found = "rc=0 value=" + values[words["key"]] if known else "rc=-1"
                _say(link, "get_result " + found)
            elif words["cmd"] == "barrier_in":
                waiting.append(link)
                if len(waiting) == count:
                    for each in waiting:
                        _say(each, "barrier_out")
                    waiting = []
            else:
                _say(link, _ANSWERS[words["cmd"]].format(count))


_ANSWERS = {
    "init": "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "maxes " + MAXIMA,
    "get_appnum": "appnum appnum=0",
    "get_my_kvsname": "my_kvsname kvsname=" + NAME,
    "get_universe_size": "universe_size size={}",
    "finalize": "finalize_ack",
}


def _say(link, words):
    link.sendall("cmd={}\n".format(words).encode())


def _place():
    """Returns a path of the file that is short enough for a socket, however long that of the folder is."""
    if not _FOLDER:
        _FOLDER.append(os.open(os.environ["STEPTIME_MEETING"], os.O_RDONLY))
    return "/proc/self/fd/{}/mpi".format(_FOLDER[0])


_FOLDER = []
