"""Checks that a machine is of the platform that a cell is for: a cell in the wrong place must never become a number.

A platform's needs are its entry in config/platforms.yaml, or in the user's own file of platforms.
"""

import os
import subprocess
import time
from typing import Any

from steptime import machine, run
from steptime.machine import gpu, interference

MOST_FOREIGN_CPUS = 0.5
LOAD_SECONDS = 0.5
# The one seam for test clusters, whose GPUs are files that NVML cannot see: SLURM's word is taken for them.
GPUS_BY_SLURM = "STEPTIME_GPUS_BY_SLURM"


def entry(platform: str) -> dict[str, Any]:
    """Returns the entry of a platform in the run's configuration; {} where the program is not part of a run."""
    return run.facts().get("platforms", {}).get(platform, {})


def nodes_of(needs: dict[str, Any], devices: int) -> int:
    """Returns how many nodes of a platform with this entry a cell on so many devices has."""
    return needs.get("cluster", {}).get("nodes", 1) if devices > 1 else 1


def refusal(platform: str) -> str | None:
    """Says why this machine cannot measure the platform: it is another, or others are at work on it; or None."""
    needs = entry(platform)
    lacks = lacking(needs)
    if not lacks and "SLURM_JOB_ID" in os.environ:
        lacks = disturbance(needs.get("cluster", {}).get("foreign_cpus", MOST_FOREIGN_CPUS))
        lacks = lacks or at_work([each["uuid"] for each in machine.gpus()])
    elif not lacks and needs.get("device") == "gpu":
        lacks = at_work([each["uuid"] for each in fitting_gpus(needs)[: needs.get("devices", 1)]])
    here = f"This machine ({name()})"
    return lacks and f"{here} is not the platform '{platform}': {lacks}. Nothing was measured."


def lacking(needs: dict[str, Any]) -> str | None:
    """Names the first thing that the platform needs and this machine lacks; None where it has everything."""
    if "cpu" in needs and not _has_words(model := machine.cpu()["model"], needs["cpu"]):
        return f"its processor is '{model}', and '{needs['cpu']}' is needed"
    if needs.get("device") == "gpu" or "gpu" in needs:
        if len(fitting_gpus(needs)) < needs.get("devices", 1):
            models = ", ".join(each["model"] for each in own_gpus()) or "none"
            if len(own_gpus()) < len(machine.gpus()):
                models += ", of those that CUDA_VISIBLE_DEVICES names"
            wanted = f"{needs.get('devices', 1)} x {needs.get('gpu', 'a GPU')}"
            return f"its GPUs are {models}, and {wanted} is needed"
    cores = machine.usable_cpus()
    if cores < needs.get("cores", 1):
        return f"{cores} logical CPUs may be used, and {needs['cores']} are needed"
    gib = machine.usable_bytes() / 2**30
    if gib < needs.get("memory_gib", 0):
        return f"it has {gib:.1f} GiB of memory, and {needs['memory_gib']} are needed"
    return None


def is_here(needs: dict[str, Any]) -> bool:
    """Tells whether this machine itself, and no cluster's, is a platform with this entry."""
    return "cluster" not in needs and lacking(needs) is None


def disturbance(most_foreign_cpus: float) -> str | None:
    """Says what others do on this node right now: CPUs kept busy, programs on the GPUs; None where it is quiet."""
    before, used, began = interference.snapshot(), time.process_time(), time.monotonic()
    time.sleep(LOAD_SECONDS)
    wall, used = time.monotonic() - began, time.process_time() - used
    foreign = interference.between([before, interference.snapshot()], wall, used)["foreign_cpus"]
    if foreign <= most_foreign_cpus:
        return None
    return f"others keep {foreign:.1f} of its CPUs busy, and a cell must have its node to itself"


def at_work(uuids: list[str]) -> str | None:
    """Says who else is at work on these GPUs right now; None where they are free."""
    if others := gpu.at_work(uuids):
        names = ", ".join(map(str, others))
        return f"other programs are at work on its GPUs (process {names}), and a cell must have them to itself"
    return None


def name() -> str:
    """Returns the node's name in a SLURM job, this host's elsewhere."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def own_gpus() -> list[dict[str, Any]]:
    """Returns the GPUs that this process or job may use."""
    if GPUS_BY_SLURM in os.environ:
        return _gpus_by_slurm(os.environ["SLURM_JOB_ID"])
    return gpu.given(machine.gpus())


def fitting_gpus(needs: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the GPUs that this process may use and that are of the platform's model."""
    known = own_gpus()
    return [each for each in known if "gpu" not in needs or _is_model(each["model"], needs["gpu"])]


def capability(needs: dict[str, Any]) -> float | None:
    """Returns the lowest compute capability of the GPUs here that fit a platform; None where it is not known."""
    told = [each.get("compute_capability") for each in fitting_gpus(needs)]
    return min((major + minor / 10 for major, minor in filter(None, told)), default=None)


def visible_devices(needs: dict[str, Any], count: int) -> dict[str, str]:
    """Returns the variables that show a worker the first `count` fitting GPUs, by UUID, as in any container."""
    uuids = [each["uuid"] for each in fitting_gpus(needs)[:count]]
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(uuids)}


def _gpus_by_slurm(job: str) -> list[dict[str, Any]]:
    """Returns the GPUs of a job, such as GRES=gpu:k80:2(IDX:0-1), by their type; numbers replace UUIDs."""
    shown = subprocess.check_output(["scontrol", "-d", "show", "job", job], text=True)
    granted = [word.partition("(")[0] for word in shown.split() if word.startswith("GRES=gpu:")]
    parts = [each.split(":") for each in granted]
    models = [model for _, model, count in parts for _ in range(int(count))]
    return [{"model": model, "uuid": str(index)} for index, model in enumerate(models)]


def _has_words(text: str, wanted: str) -> bool:
    """Tells whether a text has these words in succession, whole: "v3" is not in "v30"."""
    return f" {' '.join(wanted.split())} ".casefold() in f" {' '.join(text.split())} ".casefold()


def _is_model(model: str, wanted: str) -> bool:
    """Tells whether it is this very model: a GTX 1080 Ti is no GTX 1080. New drivers write "NVIDIA" before it."""
    return model.casefold().removeprefix("nvidia ") == wanted.casefold().removeprefix("nvidia ")
