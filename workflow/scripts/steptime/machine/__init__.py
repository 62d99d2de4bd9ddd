"""Describes the machine on which a cell runs, and chooses its CPUs. Small collectors, one per subject."""

import hashlib
import json
import math
import os
import platform
from pathlib import Path
from typing import Any

import psutil

from shared.processes import text
from steptime.machine import cgroups
from steptime.machine.gpu import gpus

CPUS = Path("/sys/devices/system/cpu")
# The setting that holds is in brackets: "always [madvise] never".
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# What decides the speed of products in float32, and in bfloat16.
INSTRUCTION_SETS = {"avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile"}


def describe() -> dict[str, Any]:
    """Returns everything that a reader may want to know of the machine, as plain data. `load` is of this moment."""
    return {
        "cpu": cpu(),
        "memory_bytes": psutil.virtual_memory().total,
        "huge_pages": (read_text(HUGE_PAGES) or "").partition("[")[2].partition("]")[0],
        "os": operating_system(),
        "kernel": platform.release(),
        "glibc": "-".join(platform.libc_ver()),
        "gpus": gpus(),
        "slurm": slurm(),
        "load": os.getloadavg()[0],
    }


def kind(description: dict[str, Any], device: str = "cpu") -> str:
    """Returns the words that are the same for machines that may share a column: CPU, instruction sets, on a GPU the
    GPUs.

    Not memory: each kernel keeps another part of it, and no step waits for memory that it does not use.
    """
    cpu = description["cpu"]
    sets = f" ({', '.join(cpu['instruction_sets'])})" if cpu.get("instruction_sets") else ""
    gpus = [gpu["model"] for gpu in description["gpus"]] if device == "gpu" else []
    return ", ".join([_model(cpu) + sets, *gpus])


def identify(description: dict[str, Any]) -> str:
    """Returns a short digest of what identifies a machine: its CPU and, where it has one, its id."""
    facts = [_model(description["cpu"]), read_text(Path("/etc/machine-id"))]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def own_id() -> str:
    """Returns the id of this machine, as rows have it."""
    return identify({"cpu": cpu()})


def cpu() -> dict[str, Any]:
    """Returns model, numbers of cores, instruction sets that decide float32 speed, frequency governor and limit."""
    lines = (read_text(Path("/proc/cpuinfo")) or "").split("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    flags = set(fields.get("flags", "").split())
    governor = CPUS / "cpu0/cpufreq"
    return {
        "model": fields.get("model name") or _part(fields),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(),
        "instruction_sets": sorted(flags & INSTRUCTION_SETS),
        "governor": read_text(governor / "scaling_governor"),
        "most_khz": read_text(governor / "cpuinfo_max_freq"),
        "virtual": "hypervisor" in flags,
    }


def _model(cpu: dict[str, Any]) -> str:
    return f"{cpu['model']} with {cpu['logical_cores']} logical cores"


def _part(fields: dict[str, str]) -> str:
    """Names an ARM processor, which has no model name: its architecture, and the numbers of its maker and model."""
    numbers = [fields[name] for name in ("CPU implementer", "CPU part") if name in fields]
    return " ".join([platform.processor() or platform.machine(), *numbers])


def operating_system() -> str:
    """Returns name and version of the distribution."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def slurm() -> dict[str, str] | None:
    """Returns job, node and GPUs that SLURM gave; None outside a job."""
    names = {"job": "SLURM_JOB_ID", "node": "SLURMD_NODENAME", "gpus": "SLURM_STEP_GPUS"}
    given = {key: os.environ[name] for key, name in names.items() if name in os.environ}
    return given if "job" in given else None


def usable_cpus() -> int:
    """Returns how many CPUs a cell may use here: those that it may run on, or fewer by a quota of control groups."""
    allowed, quota = len(os.sched_getaffinity(0)), cgroups.cpu_quota()
    return allowed if quota is None else max(1, min(allowed, math.floor(quota)))


def usable_bytes() -> int:
    """Returns how many bytes a cell may use here: the machine's memory, or less by a limit of control groups."""
    total, limit = psutil.virtual_memory().total, cgroups.memory_limit()
    return total if limit is None else min(total, limit)


def cpus_for(threads: int) -> list[int]:
    """Returns the CPUs for a cell: one of each core first, then their siblings; all when `threads` asks for more."""
    allowed = sorted(os.sched_getaffinity(0))
    return order_by_core({index: _siblings(index) for index in allowed})[:threads]


def cpus_of_ranks(threads: int, ranks: int) -> list[int]:
    """Returns the CPUs of several ranks, rank by rank, without common cores if there are enough."""
    chosen = cpus_for(threads * ranks)
    return chosen if ranks == 1 else sorted(chosen, key=lambda index: (_siblings(index), index))


def order_by_core(siblings: dict[int, tuple[int, ...]]) -> list[int]:
    """Returns CPU numbers so that no core comes twice before every core has come once.

    `siblings` has the CPUs of the same core for each CPU; those that may not be used are no keys.
    """
    ranks = {
        index: sum(other in siblings and other < index for other in group)
        for index, group in siblings.items()
    }
    return sorted(siblings, key=lambda index: (ranks[index], index))


def numbers(text: str) -> list[int]:
    """Returns the numbers of a kernel's list: '0-2,5' is [0, 1, 2, 5]."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _siblings(index: int) -> tuple[int, ...]:
    text = read_text(CPUS / f"cpu{index}/topology/thread_siblings_list")
    return tuple(numbers(text or str(index)))


def read_text(path: Path) -> str | None:
    """Returns the content of a file of the kernel's; None where there is none."""
    return text(path).strip() or None
