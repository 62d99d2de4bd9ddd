"""Measures one cell and writes its shard. Every way to fail becomes a shard with a status and a reason.

    python -m measure.cell --job JSON --networks config/networks.yaml --manifest results/environments/E.json \
        --proof results/proofs/E.M-N.json --shard results/shards/... --log logs/shards/...
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import yaml

from environments import interpreter
from measure import gpu, interference, machine, placement, progress, software
from measure.supervise import Outcome, run_worker
from worker import networks

TIMED_REGION = ("forward", "loss", "backward", "update", "sync")
MEMORY_SHARE = 0.9
ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    """Command line. Exits with 0 when a shard was written, whatever its status."""
    options = _options()
    job = json.loads(options.job)
    cell = job["cell"]
    title = describe(cell)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if refused := placement.refusal(cell["platform"]):
        # Not a row: the cell has not failed, it is in the wrong place.
        options.log.parent.mkdir(parents=True, exist_ok=True)
        options.log.write_text(f"{refused}\n")
        sys.exit(refused)
    progress.announce(title)
    began, clock = datetime.now(UTC), time.monotonic()
    manifest = json.loads(options.manifest.read_text())
    proof = json.loads(options.proof.read_text())
    catalogue = yaml.load(options.networks.read_text(), Loader=yaml.CSafeLoader)
    spec = networks.specify(cell["network"], catalogue)
    surroundings = Surroundings(options.shard)
    shown = placement.visible_devices(cell["devices"]) if cell["device"] == "gpu" else {}
    devices = gpu.Watch(shown["CUDA_VISIBLE_DEVICES"].split(",")) if shown else None
    if manifest["status"] != "ok":
        outcome = Outcome(manifest["status"], manifest["reason"])
    elif proof["status"] != "ok":
        outcome = Outcome(proof["status"], proof["reason"])
    else:
        outcome = measure(job, spec, options.log, surroundings.look, shown, devices)
    surroundings.look()
    facts = column_values(cell, spec, outcome, manifest, catalogue) | (devices.columns() if devices else {})
    facts |= {
        "proof_id": proof.get("proof_id"),
        "machine_id": machine.identify(surroundings.machine),
        "workflow_commit": surroundings.workflow["commit"],
        "started_at": began,
    }
    footer = {
        "machine": surroundings.machine,
        "software": software.describe(cell, outcome, manifest),
        "workflow": surroundings.workflow,
        "seeds": surroundings.seeds,
        "job": job,
        "worker": outcome.events,
        "device_clocks": devices.clocks() if devices else None,
        "ended_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    from measure import shard

    try:
        shard.write(options.shard, facts, outcome.samples, footer)
    except OSError as error:
        sys.exit(f"The shard {options.shard} cannot be written ({error.strerror}): free some space and run again.")
    marked = " (disturbed: something else was at work)" if interference.disturbed(facts) else ""
    progress.report(title, result(outcome) + marked, time.monotonic() - clock)


class Surroundings:
    """What a shard tells besides the cell; looked at while the framework is imported, so that it costs no time."""

    def __init__(self, shard: Path) -> None:
        self.shard = shard
        self.machine: dict[str, Any] = {}
        self.workflow: dict[str, Any] = {}
        self.seeds: dict[str, int] = {}

    def look(self) -> None:
        """Describes the machine and the workflow, and imports what writes the shard; the second time, nothing."""
        if not self.machine:
            self.machine, self.workflow = machine.describe(), workflow()
            # pyarrow imports pandas when it makes its first array.
            import pandas  # noqa: F401

            from measure import shard  # noqa: F401
            from worker import data

            self.seeds = {"weights": data.SEED, "mini-batch": data.BATCH_SEED}
            if refused := stranger(self.shard, self.machine):
                sys.exit(refused)


def stranger(path: Path, here: dict[str, Any]) -> str | None:
    """Why this machine cannot measure the cell of a shard beside what lies there, as a sentence; None where it can.

    One shard of its platform tells, timed or trained: more than one kind of machine does not come about in this way.
    """
    from measure import shard

    if placement.entry(path.parent.name).get("equal_machines"):
        return None
    beside = path.parent.parent.parent.glob(f"*/{path.parent.name}/*.parquet")
    other = next((other for other in beside if other != path), None)
    try:
        there = machine.kind(shard.read(other)[1]["machine"]) if other else None
    except shard.ShardError:
        # The merge names it, with the command that helps.
        return None
    if there in (None, machine.kind(here)):
        return None
    folder = other.parent
    return (
        f"{folder} holds cells of another machine, {there}; this one is {machine.kind(here)}: move that folder to "
        f"{folder.with_name('NAME')} and add NAME to config/platforms.yaml and to 'platforms' of the grid. "
        "Nothing was measured."
    )


def measure(
    job: dict[str, Any],
    spec: dict[str, Any],
    log: Path,
    meanwhile: Callable[[], None],
    shown: dict[str, str],
    devices: gpu.Watch | None,
) -> Outcome:
    """Runs the worker of a cell whose environment stands and whose network is proven; `shown` are its GPUs."""
    cell, limits = job["cell"], job["limits"]
    memory = limits.get("memory_gib", available_gib(cell["platform"]) * MEMORY_SHARE)
    prefix = interpreter.prefix_of(cell["environment"])
    return run_worker(
        prefix,
        {
            "task": "measure",
            "adapter": job["adapter"],
            "spec": spec,
            "mode": cell["adapter_mode"],
            "batch": cell["batch"],
            "threads": cell["threads"],
            "device": cell["device"],
            "parameters": networks.count_parameters(spec),
            "sampling": job["sampling"],
        },
        machine.cpus_for(cell["threads"]),
        fill(job["variables"], cell["threads"], cell["adapter_mode"], prefix) | shown,
        limits["seconds"],
        int(memory * 2**30),
        log,
        meanwhile=meanwhile,
        watches=[devices] if devices else [],
    )


def available_gib(platform: str) -> float:
    """Memory of this machine, or what a cluster gives to a cell of it."""
    needs, total = placement.entry(platform), psutil.virtual_memory().total / 2**30
    return min(total, needs["memory_gib"]) if "cluster" in needs else total


def fill(variables: dict[str, str], threads: int, mode: str, prefix: Path) -> dict[str, str]:
    """The framework's environment variables for a thread count and a mode, in the environment in `prefix`."""
    return {name: value.format(threads=threads, mode=mode, prefix=prefix) for name, value in variables.items()}


def describe(cell: dict[str, Any]) -> str:
    """The cell in words."""
    threads = "1 thread" if cell["threads"] == 1 else f"{cell['threads']} threads"
    repeat = f", repeat {cell['repeat']}" if cell["repeat"] > 1 else ""
    return (
        f"{cell['environment']} {cell['adapter_mode']}, {cell['network']}, batch {cell['batch']}, {threads}, "
        f"{cell['platform']}{repeat}"
    )


def result(outcome: Outcome) -> str:
    """What came out of a cell, in words: the median with its interval or range, or the status with its reason."""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.reason}"
    from worker.statistics import ENOUGH, median, median_interval

    values = [seconds for _, seconds in outcome.samples]
    low, high = median_interval(values)
    middle = median(values)
    spread = f"{50 * (high - low) / middle:.1f} %"
    width = f"±{spread}, {len(values)} samples" if len(values) >= ENOUGH else f"{len(values)} samples within ±{spread}"
    return f"{middle:.4g} s per mini-batch, {width}"


def column_values(
    cell: dict[str, Any],
    spec: dict[str, Any],
    outcome: Outcome,
    manifest: dict[str, Any],
    catalogue: dict[str, Any],
) -> dict[str, Any]:
    """The shard's constant columns that follow from the cell, its specification and what the worker said."""
    warmup, done = (outcome.events.get(name, {}) for name in ("warmup", "done"))
    return columns_of_worker(cell, spec, outcome, catalogue, TIMED_REGION) | {
        "warmup_steps": warmup.get("steps"),
        "cpu_seconds": done.get("cpu_seconds"),
        "wall_seconds": done.get("wall_seconds"),
        "first_loss": warmup.get("first_loss"),
        "last_loss": done.get("last_loss"),
        "environment_digest": manifest["digest"],
    }


def columns_of_worker(
    cell: dict[str, Any],
    spec: dict[str, Any],
    outcome: Outcome,
    catalogue: dict[str, Any],
    timed_region: tuple[str, ...],
) -> dict[str, Any]:
    """The constant columns that a cell that is timed and one that is trained have in common."""
    ready, done = (outcome.events.get(name, {}) for name in ("ready", "done"))
    base = cell["network"]
    while "variant_of" in catalogue[base]:
        base = catalogue[base]["variant_of"]
    wall, used = done.get("wall_seconds"), done.get("cpu_seconds")
    disturbed = interference.between(*outcome.snapshots, wall, used, psutil.cpu_count()) if wall else {}
    return (
        cell
        | disturbed
        | {
            "network": base,
            "variant": "" if base == cell["network"] else cell["network"],
            "framework_version": ready.get("versions", {}).get("framework_version"),
            "status": outcome.status,
            "reason": outcome.reason,
            "parameters": ready.get("parameters"),
            "flops_per_step": networks.flops_per_step(spec, cell["batch"]),
            "timed_region": ",".join(timed_region),
            "import_seconds": ready.get("import_seconds"),
            "build_seconds": ready.get("build_seconds"),
            "peak_memory_bytes": outcome.peak_memory_bytes,
            "effective_threads": used / wall if wall else None,
            "waiting_threads": done["waited_seconds"] / wall if wall else None,
            "involuntary_switches": done.get("involuntary_switches"),
        }
    )


def workflow() -> dict[str, Any]:
    """The workflow's commit, with "-dirty" when the checkout differs from it, and what differs.

    None for both outside a git checkout. New files count, but for those that git is told to ignore.
    """
    try:
        described, changed = (
            subprocess.run(["git", *command], capture_output=True, text=True, check=True, cwd=ROOT).stdout
            for command in (["rev-parse", "--show-prefix", "--short=12", "HEAD"], ["status", "--porcelain"])
        )
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "changed": None}
    prefix, commit = described.splitlines()
    # A checkout without git's folder, in the work tree of something else.
    if prefix:
        return {"commit": None, "changed": None}
    files = [line[3:] for line in changed.splitlines()]
    return {"commit": commit + ("-dirty" if files else ""), "changed": files}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure one cell and write its shard.")
    parser.add_argument("--job", required=True, help="the cell and how to measure it, as JSON")
    for name, text in {
        "networks": "config/networks.yaml",
        "manifest": "manifest of the environment",
        "proof": "proof of the network in the environment",
        "shard": "the Parquet file to write",
        "log": "what the framework prints",
    }.items():
        parser.add_argument(f"--{name}", required=True, type=Path, help=text)
    return parser.parse_args()


if __name__ == "__main__":
    main()
    # To take pandas and pyarrow down would cost the next cell a fifth of a second.
    sys.stderr.flush()
    os._exit(0)
