"""A real SLURM on this one machine: munged, slurmctld and a slurmd for each node, in a folder of their own.

The GPUs are device files that nothing can compute on. What is started here is stopped here, and dies with this process.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from steptime.machine import placement

PACKAGES = ["slurmd", "slurmctld", "slurm-client", "munge"]
DAEMONS = ["munged", "slurmctld", "slurmd"]
PR_SET_PDEATHSIG = 1

# Every node has 2 CPUs; a node's GPUs by model. Several nodes share what this machine has, so placement can be tested
# here, and never timing.
NODES: dict[str, tuple[str, int]] = {
    "cpu1": ("", 0),
    "cpu2": ("", 0),
    "gtx980": ("gtx980", 1),
    "gtx1080": ("gtx1080", 1),
    "k80": ("k80", 2),
    "h200": ("h200", 1),
    "spare": ("", 0),
    "lost1": ("", 0),
    "lost2": ("", 0),
    "pair1": ("", 0),
    "pair2": ("", 0),
    "half1": ("", 0),
    "half2": ("", 0),
}
PARTITIONS = {
    "cpu": "cpu1,cpu2,spare",
    "gpu": "gtx980,gtx1080,k80,h200",
    "frail": "lost1,lost2",
    "pair": "pair1,pair2",
    "halves": "half1,half2",
}

# There is no accounting and there are no cgroups; a lost node is noticed after 5 s.
SETTINGS = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/run/munge/socket
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
EnforcePartLimits=ALL
KillWait=2
SlurmdTimeout=5
GresTypes=gpu
NodeName=DEFAULT Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=3000 State=UNKNOWN
"""


class Cluster:
    """The daemons and the folder that they live in."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.daemons: dict[str, subprocess.Popen] = {}

    def variables(self) -> dict[str, str]:
        """Variables with which SLURM's commands find this cluster, and cells believe SLURM about GPUs."""
        return {
            "PATH": f"{self.base}/bin:{os.environ['PATH']}",
            "SLURM_CONF": f"{self.base}/slurm.conf",
            placement.GPUS_BY_SLURM: "1",
        }

    def ask(self, *command: str) -> str:
        """What one of SLURM's commands prints."""
        return subprocess.run(
            command, env=os.environ | self.variables(), capture_output=True, text=True, timeout=120
        ).stdout

    def queue(self, columns: str) -> list[list[str]]:
        """The columns of `squeue` for every job that waits or runs."""
        return [
            line.split()
            for line in self.ask("squeue", "-h", "-t", "PD,R", "-o", columns).splitlines()
        ]

    def busy_nodes(self) -> list[str]:
        """The node of each running job."""
        return self.ask("squeue", "-h", "-t", "R", "-o", "%N").split()

    def measuring(self, *nodes: str) -> list[str]:
        """Those of the nodes on which a cell has begun."""
        return [
            node for node in nodes if any(map(_measures, self._processes(SLURMD_NODENAME=node)))
        ]

    def ranks(self, node: str) -> list[psutil.Process]:
        """The workers that tasks have started on a node."""
        found = []
        for task in self._processes(SLURMD_NODENAME=node):
            with suppress(psutil.Error):
                if "supervisor.task" in task.cmdline():
                    found += task.children()
        return found

    def start(self) -> None:
        """Starts everything and waits until each node is idle."""
        for folder in (
            "run/munge",
            "log",
            "state",
            "dev",
            "bin",
            *(f"spool/{node}" for node in NODES),
        ):
            (self.base / folder).mkdir(parents=True)
        (self.base / "run/munge").chmod(0o700)
        self._write()
        munge = self.base / "run/munge"
        self._spawn(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.base}/munge.key",
            *(
                f"--{kind}={munge}/{kind.split('-')[0]}"
                for kind in ("socket", "pid-file", "log-file", "seed-file")
            ),
        )
        wait(lambda: (munge / "socket").exists(), "munged does not start")
        self._spawn("slurmctld", "-D", "-c")
        for node in NODES:
            self._spawn("slurmd", "-D", "-N", node)
        wait(self._all_idle, "the nodes do not come up")

    def lose(self, node: str) -> None:
        """Ends a node as a power cut would: its daemon and all that runs on it, at once."""
        daemon = self.daemons[f"slurmd {node}"]
        daemon.kill()
        daemon.wait()
        for process in self._processes(SLURMD_NODENAME=node):
            with suppress(psutil.Error):
                if "slurmstepd" in (parent := process.parent()).name():
                    parent.kill()
                process.kill()

    def stop(self) -> None:
        """Cancels every job and ends the daemons, and what may be left of both."""
        if "slurmctld" in self.daemons:
            self.ask("scancel", "--user=root")
            deadline = time.monotonic() + 20
            while self.ask("squeue", "-h") and time.monotonic() < deadline:
                time.sleep(0.2)
        for daemon in self.daemons.values():
            daemon.terminate()
        for daemon in self.daemons.values():
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(5)
            daemon.kill()
        for process in self._processes(SLURM_CONF=f"{self.base}/slurm.conf"):
            with suppress(psutil.Error):
                process.kill()

    def _processes(self, **variables: str) -> list[psutil.Process]:
        """The processes, and none but them, that have these variables."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if variables.items() <= process.environ().items() and process.pid != os.getpid():
                    found.append(process)
        return found

    def _all_idle(self) -> bool:
        return self.ask("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * len(NODES)

    def _write(self) -> None:
        ports = free_ports(1 + len(NODES))
        host = socket.gethostname()
        lines, gpus = (
            [SETTINGS.format(host=host, ports=ports, base=self.base)],
            ["AutoDetect=off\n"],
        )
        for port, (node, (model, count)) in zip(ports[1:], NODES.items(), strict=True):
            feature = f"Feature={node}" + (f" Gres=gpu:{model}:{count}" if count else "")
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {feature}\n"
            )
            if count:
                gpus.append(
                    f"NodeName={node} Name=gpu Type={model} File={self.base}/dev/nvidia[0-{count - 1}]\n"
                )
        lines += [
            f"PartitionName={name} Nodes={nodes} State=UP\n" for name, nodes in PARTITIONS.items()
        ]
        (self.base / "slurm.conf").write_text("".join(lines))
        (self.base / "gres.conf").write_text("".join(gpus))
        for number in range(2):
            (self.base / f"dev/nvidia{number}").symlink_to("/dev/null")
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        # Inside a job, the plugin drops SLURM_CONF before it calls srun; a cluster has its file in the default place.
        srun = self.base / "bin/srun"
        srun.write_text(
            f'#!/bin/sh\nSLURM_CONF={self.base}/slurm.conf exec {shutil.which("srun")} "$@"\n'
        )
        srun.chmod(0o755)

    def _spawn(self, *command: str) -> None:
        with (self.base / "log/started").open("a") as log:
            self.daemons[
                f"{command[0]} {command[-1]}" if command[0] == "slurmd" else command[0]
            ] = subprocess.Popen(
                command,
                env=os.environ | self.variables(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )


def _measures(process: psutil.Process) -> bool:
    """Whether a process measures a cell; one that has just ended does not."""
    with suppress(psutil.Error):
        return "cells.measure" in process.cmdline()
    return False


def wait(condition: Callable[[], object], failure: str, seconds: float = 120) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, failure
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [entry.getsockname()[1] for entry in sockets]
    for entry in sockets:
        entry.close()
    return ports


def missing() -> str | None:
    """Why there can be no SLURM here, after an attempt to install it; None where there is one."""
    if os.geteuid() != 0:
        return "SLURM's daemons are started by root only"
    if not all(map(shutil.which, DAEMONS)):
        # Where systemd runs, an installation would start the daemons.
        if not shutil.which("apt-get") or Path("/run/systemd/system").exists():
            return f"there is no SLURM here: install {' '.join(PACKAGES)}"
        settings = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(
                ["timeout", "300", "apt-get", "-qq", *command],
                env=settings,
                capture_output=True,
                text=True,
            )
        if done.returncode != 0:
            said = done.stderr.strip() or "apt-get hangs"
            return f"{' '.join(PACKAGES)} cannot be installed: {said.splitlines()[-1]}"
    return None
