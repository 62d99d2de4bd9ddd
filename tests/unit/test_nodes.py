"""Ranks on several nodes: what the supervisor and the tasks do, by a stand-in srun that starts tasks on this machine.

On a real SLURM they are started in tests/slurm.
"""

import json
import os
import re
import signal
import sys
import time
from contextlib import suppress

import psutil
import pytest
from test_ranks import SAMPLING, SCRIPTS, stand_in

from steptime import networks, run
from steptime.prove import network
from steptime.supervisor import nodes, supervise
from worker.usage import kernel_counters

__all__ = ["stand_in"]
# Two tasks of a stand-in srun, each "on" a node of its own.
SRUN = """#!{python}
import os, subprocess, sys
wanted = dict(word[2:].split("=") for word in sys.argv[1:] if word.startswith("--") and "=" in word)
command = sys.argv[1 + next(n for n, word in enumerate(sys.argv[1:]) if not word.startswith("-")):]
count, each = int(wanted["ntasks"]), int(wanted["ntasks-per-node"])
assert not [name for name in os.environ if name.startswith("SLURM_") and name != "SLURM_JOB_ID"]
tasks = []
for number in range(count):
    own = dict(SLURM_PROCID=number, SLURM_LOCALID=number % each, SLURMD_NODENAME="node%d" % (number // each))
    given = dict(os.environ, **{{name: str(value) for name, value in own.items()}})
    tasks.append(subprocess.Popen(command, env=given))
sys.exit(max(task.wait() for task in tasks))
"""
NODE = {
    "device": "cpu",
    "cores": 2,
    "memory_gib": 0.1,
    "cluster": {"nodes": 2, "foreign_cpus": 1000},
}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Two nodes of a cluster by stand-ins for SLURM's commands: this machine, twice."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {
        "srun": SRUN.format(python=sys.executable),
        "scontrol": "#!/bin/sh\necho NodeName=$3 NodeAddr=127.0.0.1\n",
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(SCRIPTS),
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
        "SLURMD_NODENAME": "node0",
    }.items():
        monkeypatch.setenv(name, value)
    run.begin(platforms={"pair": NODE})
    return folder


def timed(job, tmp_path, mode="right", seconds=60.0, devices=2, limit=2**40, platform="pair"):
    """The outcome of a cell on two nodes."""
    asked = network.worker_job(job | {"mode": mode, "devices": devices}, networks.tiny("dense"))
    return supervise.run_worker(
        tmp_path / "environments/stand-in-1.0",
        asked | {"task": "step", "sampling": SAMPLING},
        [],
        job["variables"],
        *(seconds, limit, tmp_path / "logs/log"),
        launch=nodes.launch(platform, 2, threads=1),
    )


def left_of(tmp_path):
    """Processes of a cell, which know its folder."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.pid != os.getpid() and str(tmp_path) in " ".join(each.environ().values()):
                found.append(each)
    return found


def left(tmp_path):
    """What is left of a cell: processes, and files beside its log."""
    return left_of(tmp_path), sorted(path.name for path in (tmp_path / "logs").iterdir())


@pytest.mark.parametrize("devices", [2, 4])
def test_ranks_on_two_nodes_take_steps_together(stand_in, cluster, tmp_path, devices):
    outcome = timed(stand_in, tmp_path, devices=devices)
    assert outcome.status == "ok" and outcome.samples, outcome
    assert [rank["node"] for rank in outcome.ranks] == sorted(["node0", "node1"] * (devices // 2))
    # Nodes of a real cluster have CPUs of their own; those of one node are disjoint here too.
    of_first = [rank["cpus"] for rank in outcome.ranks if rank["node"] == "node0"]
    if len(os.sched_getaffinity(0)) >= devices // 2:
        assert len({cpu for cpus in of_first for cpu in cpus}) == devices // 2
    assert all(rank["blocks"] for rank in outcome.ranks[1:])
    assert outcome.peak_memory_bytes > devices * 10 * 2**20
    assert "--- rank 1" in (tmp_path / "logs/log").read_text()
    assert left(tmp_path) == ([], ["log"])


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("killed", "crashed", "rank 1: the worker was ended by SIGKILL"),
        ("raises", "crashed", "rank 1: ValueError: of my own"),
        ("hangs", "timeout", "not done after 4 s"),
        ("apart", "not_equivalent", "rank 1 has other weights"),
    ],
)
def test_a_rank_on_another_node_ends_all_with_its_reason(
    stand_in, cluster, tmp_path, mode, status, words
):
    outcome = timed(stand_in, tmp_path, mode, seconds=4 if mode == "hangs" else 60)
    assert outcome.status == status and words in outcome.reason, outcome
    assert left(tmp_path) == ([], ["log"])


def test_memory_is_limited_on_each_node(stand_in, cluster, tmp_path):
    # On a crowded machine one look may come before the second rank has all of its memory.
    both = max(timed(stand_in, tmp_path).peak_memory_bytes for _ in range(3))
    assert timed(stand_in, tmp_path, limit=int(0.75 * both)).status == "ok"
    outcome = timed(stand_in, tmp_path, "hangs", limit=2**20)
    assert outcome.status == "out_of_memory", outcome
    assert re.search("GiB on node[01], above the limit", outcome.reason), outcome
    assert left(tmp_path) == ([], ["log"])


def test_nothing_is_left_of_a_supervisor_that_is_killed(stand_in, cluster, tmp_path):
    supervisor = os.fork()
    if not supervisor:
        timed(stand_in, tmp_path, "hangs")
        os._exit(0)
    began = time.monotonic()
    while sum("worker" in each.cmdline() for each in left_of(tmp_path)) < 2:
        assert time.monotonic() < began + 600, "no two ranks start"
        time.sleep(0.1)
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    while left_of(tmp_path):
        assert time.monotonic() < began + 600, left_of(tmp_path)
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("planted", "sentence"),
    [
        (("srun", "echo srun: error: Job has expired; exit 1"), "ranks: srun: error: Job has exp"),
        (("scontrol", "echo NodeAddr=192.0.2.1"), "'192.0.2.1', which SLURM knows node0 by, is no"),
        (("cpu", "an i860"), r"(node1) is not the platform 'pair': its processor is"),
    ],
)
def test_what_is_the_clusters_fault_is_a_sentence_and_no_row(
    stand_in, cluster, tmp_path, planted, sentence
):
    name, text = planted
    if name == "cpu":
        run.begin(platforms={"pair": NODE | {"cpu": text}})
    else:
        (cluster / name).write_text(f"#!/bin/sh\n{text}\n")
    with pytest.raises(SystemExit, match=re.escape(sentence)):
        timed(stand_in, tmp_path)
    assert sentence in (tmp_path / "logs/log").read_text()
    assert left(tmp_path) == ([], ["log"])


def test_weights_in_memory_in_common_are_of_one_node(stand_in, cluster, tmp_path):
    outcome = timed(stand_in | {"adapter": "stand_in.apart", "exchange": "async"}, tmp_path)
    assert outcome.status == "unsupported" and outcome.reason.endswith("are of one node"), outcome


def test_what_a_task_says_is_no_event_of_its_worker(tmp_path):
    end, pipe = os.pipe()
    events = [*supervise.BEGINNINGS, *supervise.ENDS, "ready", "sample", "proven", "done"]
    task = [
        {"event": nodes.HELD, "resident": 5},
        {"event": nodes.ENDED, "code": 3, "killed": False},
    ]
    fields = {"steps": 1, "seconds": 0.5, "stopped": "epochs", "kernel": kernel_counters()}
    said = [*task, *({"event": name} | fields for name in events)]
    os.write(pipe, "".join(json.dumps(words) + "\n" for words in said).encode())
    os.close(pipe)
    with os.fdopen(end, "rb") as heard:
        rank = nodes.TaskRank(1, nodes.Task(7), [0], heard, tmp_path / "log", "node1")
        assert [name for name, _ in rank.read()] == events
    assert rank.process.returncode == 3 and rank.process.memory()[0] == 5
