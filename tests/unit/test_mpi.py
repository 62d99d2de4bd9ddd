"""Whom MPICH asks about its processes: each rank learns what the others have put down, and none waits alone."""

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from worker import contract, mpi

SCRIPTS = Path(__file__).parents[2] / "workflow/scripts"


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """Where a manager of two ranks listens, in a folder whose path is too long for a socket."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setenv("STEPTIME_MEETING", str(folder))
    monkeypatch.setenv("STEPTIME_ENDPOINTS", "127.0.0.1:1,127.0.0.1:2")
    monkeypatch.setenv("STEPTIME_NETWORK", "own")
    monkeypatch.setattr(mpi, "_FOLDER", [])
    monkeypatch.chdir(SCRIPTS)
    for name in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):
        # Put back afterwards.
        monkeypatch.setenv(name, "")
    started = []

    def start(code):
        started.append(subprocess.Popen([sys.executable, "-c", code]))
        return started[-1]

    monkeypatch.setattr(mpi.ranks, "start", start)
    yield started
    for process in started:
        process.kill()
        process.wait()


def joined(rank):
    return mpi.join(SimpleNamespace(rank=rank, ranks=2))


def said(link, words):
    link.sendall(f"cmd={words}\n".encode())
    return link.recv(1024).decode()


def test_ranks_learn_of_one_another_and_the_manager_ends_with_them(manager, monkeypatch):
    first, second = joined(0), joined(1)
    for link in (first, second):
        assert said(link, "init pmi_version=1 pmi_subversion=1").endswith(" rc=0\n")
        assert said(link, "get_universe_size") == "cmd=universe_size size=2\n"
    assert said(first, "get kvsname=ranks key=PMI_process_mapping").endswith("(vector,(0,1,2))\n")
    assert said(first, "put kvsname=ranks key=card value=a=b$c") == "cmd=put_result rc=0\n"
    first.sendall(b"cmd=barrier_in\n")
    first.settimeout(0.2)
    with pytest.raises(socket.timeout):
        first.recv(1024)
    assert said(second, "barrier_in") == "cmd=barrier_out\n" == first.recv(1024).decode()
    assert said(second, "get kvsname=ranks key=card") == "cmd=get_result rc=0 value=a=b$c\n"
    assert said(second, "get kvsname=ranks key=another") == "cmd=get_result rc=-1\n"
    first.close()
    assert said(second, "finalize") == "cmd=finalize_ack\n"
    second.close()
    assert manager[0].wait(10) == 0


def test_ranks_that_others_could_reach_are_refused(manager, monkeypatch):
    monkeypatch.setenv("STEPTIME_NETWORK", "nodes")
    with pytest.raises(contract.Unsupported, match="MPICH listens on every interface"):
        joined(1)
