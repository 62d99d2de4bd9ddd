"""Finds the largest mini-batch that a network can be trained with in a framework under a limit of memory.

Each trial is a worker that takes a few steps of the network; the supervisor ends it when its memory passes the limit.
The limit is of resident memory, the framework's own code included; on a GPU, of the GPU's own memory. What is found is
right to a STEP of it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steptime import machine, networks, project
from steptime.atomic import write_json
from steptime.cells.measure import MEMORY_SHARE, fill, worker_job
from steptime.environments import interpreter
from steptime.machine import gpu, placement
from steptime.reading import read_yaml
from steptime.records import Job
from steptime.say import say
from steptime.supervisor.supervise import Outcome, run_worker

# The share of a mini-batch to which it is found, and by how much it grows at most where nothing is known yet.
STEP = 16
GROWTH = 64
MOST = 2**20
# A few steps: no time is read off them.
SAMPLING = {"budget_seconds": 0.001, "precision": 1.0, "least_samples": 1}
# What a training that has its memory may end in.
HELD = ("ok", "diverged", "not_equivalent")

# Whether a mini-batch was held, and the bytes that it took.
Trial = tuple[bool, int]


def main() -> None:
    """Command line. Exits with 0 when the file was written, whatever was found."""
    parser = argparse.ArgumentParser(description="Find the largest mini-batch under a limit.")
    parser.add_argument("--job", required=True, type=json.loads, help="cell and limits, as JSON")
    parser.add_argument("--networks", required=True, type=project.path)
    for name in ("manifest", "proof", "output", "log"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    options = parser.parse_args()
    job: Job = options.job
    if refused := placement.refusal(job["cell"]["platform"]):
        sys.exit(refused)
    made = [json.loads(path.read_text()) for path in (options.manifest, options.proof)]
    failed = [each for each in made if each["status"] != "ok"]
    catalogue = read_yaml(options.networks)
    found = (
        {"status": failed[0]["status"], "reason": failed[0]["reason"], "tried": {}, "largest": None}
        if failed
        else find(job, networks.specify(job["cell"]["network"], catalogue), options.log)
    )
    content = {**job["cell"], "memory_gib": job["limits"]["memory_gib"], **found}
    write_json(options.output, content)


def find(job: Job, spec: dict[str, Any], log: Path) -> dict[str, Any]:
    """The largest mini-batch, {tried: bytes that each took, or null where it was too much}, status and reason."""
    cell, limits = job["cell"], job["limits"]
    limit, tried = int(limits["memory_gib"] * 2**30), {}
    prefix = interpreter.prefix_of(cell["environment"])

    needs = placement.entry(cell["platform"])
    shown = placement.visible_devices(needs, 1) if cell["device"] == "gpu" else {}
    most = int(machine.usable_bytes() * MEMORY_SHARE) if shown else limit

    def trial(batch: int) -> Trial:
        devices = gpu.Watch(shown["CUDA_VISIBLE_DEVICES"].split(",")) if shown else None
        outcome = run_worker(
            prefix,
            worker_job(job, spec) | {"batch": batch, "sampling": SAMPLING, "reference": None},
            machine.cpus_for(cell["threads"]),
            fill(job["variables"], cell["threads"], cell["mode"], prefix, cell["precision"])
            | shown,
            limits["seconds"],
            most,
            log,
            watches=[devices] if devices else [],
        )
        if devices:
            # The GPU's memory in place of the host's.
            if outcome.status == "crashed" and gpu.was_full(outcome.reason):
                outcome.status = "out_of_memory"
            if devices.peak is None:
                raise _Failed("crashed: NVML does not tell the GPU's memory")
            outcome.peak_memory_bytes = devices.peak
        held = _held(outcome, limit)
        tried[batch] = outcome.peak_memory_bytes if held else None
        say(f"    {cell['environment']}, {cell['network']}: {batch} {'held' if held else 'not'}")
        return held, outcome.peak_memory_bytes or 0

    try:
        largest, reason = search(trial, cell["batch"], limit), ""
    except _Failed as failure:
        largest, reason = None, str(failure)
    status = reason.partition(":")[0] or "ok"
    return {"status": status, "reason": reason, "tried": tried, "largest": largest}


class _Failed(Exception):
    """A trial that ended for another reason than memory; the text is its status and reason."""


def _held(outcome: Outcome, limit: int) -> bool:
    if outcome.status == "out_of_memory":
        return False
    if outcome.status not in HELD:
        raise _Failed(f"{outcome.status}: {outcome.reason}")
    # The supervisor looks twice a second: what rose and fell in between stands in the kernel's high-water mark.
    return (outcome.peak_memory_bytes or 0) <= limit


def search(trial: Callable[[int], Trial], start: int, limit: int) -> int:
    """The largest mini-batch that `trial` holds, to a STEP of it; 0 where it holds none.

    The next trial is where a line through the last two that were held meets the limit, or double, or the middle.
    """
    held: list[tuple[int, int]] = []
    low, high, batch = 0, MOST, start
    while high - low > max(1, low // STEP):
        fits, taken = trial(batch)
        if fits:
            low = batch
            held = [*held[-1:], (batch, taken)]
        else:
            high = batch
        step = max(1, low // STEP)
        guess = 2 * low if high == MOST else (low + high) // 2
        if len(held) == 2 and held[1][1] > held[0][1]:
            (one, small), (other, large) = held
            line = other + (limit - large) * (other - one) // (large - small)
            if high == MOST or low < line < high:
                guess = min(line, GROWTH * low)
        batch = min(max(guess, low + step), max(high - step, low + 1))
    return low


if __name__ == "__main__":
    main()
