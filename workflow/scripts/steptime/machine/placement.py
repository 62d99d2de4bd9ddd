"""Whether a machine is of the platform that a cell is for: a cell in the wrong place must never become a number.

What a platform needs is its entry in config/platforms.yaml, or in the user's own file of platforms.
"""

import os
import subprocess
import time
from typing import Any

from steptime import machine
from steptime.machine import interference
from steptime.plan import run

MOST_FOREIGN_CPUS = 0.5
LOAD_SECONDS = 0.5
# The one seam for test clusters, whose GPUs are files that NVML cannot see: SLURM's word is taken for them.
GPUS_BY_SLURM = "STEPTIME_GPUS_BY_SLURM"


def entry(platform: str) -> dict[str, Any]:
    """What the configuration of the run says of a platform; nothing where the program is not part of a run."""
    return run.facts().get("platforms", {}).get(platform, {})


def refusal(platform: str) -> str | None:
    """Why this machine cannot measure the platform, as a sentence; None where it can.

    In a SLURM job, which has its node to itself, nobody else may be at work either.
    """
    needs = entry(platform)
    lacks = lacking(needs)
    if not lacks and "SLURM_JOB_ID" in os.environ:
        lacks = disturbance(needs.get("cluster", {}).get("foreign_cpus", MOST_FOREIGN_CPUS))
    if not lacks:
        return None
    return (
        f"This machine ({name()}) is not the platform '{platform}': {lacks}. Nothing was measured."
    )


def lacking(needs: dict[str, Any]) -> str | None:
    """The first thing that the platform needs and this machine does not have; None where it has everything."""
    if "cpu" in needs and not _has_words(model := machine.cpu()["model"], needs["cpu"]):
        return f"its processor is '{model}', and '{needs['cpu']}' is needed"
    if needs.get("device") == "gpu" or "gpu" in needs:
        models = gpu_models()
        fitting = [
            model for model in models if "gpu" not in needs or _is_model(model, needs["gpu"])
        ]
        if len(fitting) < needs.get("devices", 1):
            wanted = f"{needs.get('devices', 1)} x {needs.get('gpu', 'a GPU')}"
            return f"its GPUs are {', '.join(models) or 'none'}, and {wanted} is needed"
    cores = machine.usable_cpus()
    if cores < needs.get("cores", 1):
        return f"{cores} logical CPUs may be used, and {needs['cores']} are needed"
    gib = machine.usable_bytes() / 2**30
    if gib < needs.get("memory_gib", 0):
        return f"it has {gib:.1f} GiB of memory, and {needs['memory_gib']} are needed"
    return None


def disturbance(most_foreign_cpus: float) -> str | None:
    """What others do on this node right now: CPUs kept busy, programs on the GPUs; None where it is quiet."""
    before, used, began = interference.snapshot(), time.process_time(), time.monotonic()
    time.sleep(LOAD_SECONDS)
    wall, used = time.monotonic() - began, time.process_time() - used
    foreign = interference.between(before, interference.snapshot(), wall, used)["foreign_cpus"]
    if foreign > most_foreign_cpus:
        return (
            f"others keep {foreign:.1f} of its CPUs busy, and a cell must have its node to itself"
        )
    if busy := machine.busy_gpus():
        return f"other programs are at work on its GPU {', '.join(map(str, busy))}"
    return None


def name() -> str:
    """The node's name where SLURM gave the node, this host's otherwise."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def gpu_models() -> list[str]:
    """Model of every GPU that this machine or job has."""
    if GPUS_BY_SLURM in os.environ:
        return _gpus_by_slurm(os.environ["SLURM_JOB_ID"])
    return [gpu["model"] for gpu in machine.gpus()]


def visible_devices(count: int) -> dict[str, str]:
    """The variables that show a worker the first `count` GPUs of those that this process may use.

    In the order of their slots, as NVML counts; CUDA's own order begins with the fastest.
    """
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = given.split(",") if given else [str(number) for number in range(count)]
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(devices[:count])}


def _gpus_by_slurm(job: str) -> list[str]:
    """The types in GRES=gpu:k80:2(IDX:0-1) of the job's nodes."""
    shown = subprocess.run(
        ["scontrol", "-d", "show", "job", job], capture_output=True, text=True, check=True
    ).stdout
    granted = [
        word.split("(")[0].split(":") for word in shown.split() if word.startswith("GRES=gpu:")
    ]
    return [parts[1] for parts in granted for _ in range(int(parts[2]))]


def _has_words(text: str, wanted: str) -> bool:
    """Whether the words stand in the text one after another, whole: "v3" is not in "v30"."""
    return f" {' '.join(wanted.split())} ".casefold() in f" {' '.join(text.split())} ".casefold()


def _is_model(model: str, wanted: str) -> bool:
    """Whether it is this very model: a GTX 1080 Ti is no GTX 1080. Newer drivers write "NVIDIA" before the name."""
    return model.casefold().removeprefix("nvidia ") == wanted.casefold().removeprefix("nvidia ")
