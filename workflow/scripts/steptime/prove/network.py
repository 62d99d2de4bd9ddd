"""Proves that a framework trains the specified network: its narrow version, in the worker, against the golden run.

A proof that fails is a result: its file says so, and every cell of it becomes a row with that status and reason.
"""

import argparse
import importlib
import json
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared.grouping import groups as groups_of
from shared.narrow import BATCH
from shared.precisions import USUAL
from steptime import machine, networks, project
from steptime.atomic import write_json
from steptime.cells import measure
from steptime.cells.measure import MEMORY_SHARE, fill
from steptime.environments import interpreter
from steptime.machine import placement
from steptime.networks import written
from steptime.outcome import Outcome
from steptime.plan import digests
from steptime.prove import compare, golden, turns
from steptime.say import doing, say
from steptime.supervisor.supervise import Watch, run_worker
from steptime.tasks import TASKS, that_proves

# Theano compiles a narrow ResNet-50 for minutes where it has no cache and the machine is busy.
LIMIT_SECONDS = 1800
THREADS = 1


def main() -> None:
    """Runs the command line; exits with 0 when a verdict was written."""
    parser = argparse.ArgumentParser(description="Prove a network in an environment.")
    parser.add_argument("--job", required=True, type=json.loads, help="what to prove, as JSON")
    for name in ("networks", "manifest", "proof", "details", "log"):
        kind = project.path if name == "networks" else Path
        parser.add_argument(f"--{name}", required=True, type=kind)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    job, manifest = options.job, json.loads(options.manifest.read_text())
    doing(f"proving {job['network']} in {job['environment']} {job['mode']}")
    if manifest["status"] == "ok":
        catalogue = written.of_run(options.networks)
        try:
            spec = networks.specify(job["network"], catalogue, narrow=True)
            verdict, details = prove(job, spec, manifest["digest"], options.log)
        except Exception as error:
            if isinstance(error, OSError):
                raise
            # A row as any other: what raises here costs no other cell its time.
            options.log.parent.mkdir(parents=True, exist_ok=True)
            with options.log.open("a") as file:
                traceback.print_exception(error, file=file)
            reason = f"its proof ended with {type(error).__name__}: {' '.join(str(error).split())}"
            verdict = {"status": "crashed", "reason": reason}
            details = {}
    else:
        verdict = {"status": manifest["status"], "reason": manifest["reason"]}
        details = {}
    facts = {name: job[name] for name in ("environment", "mode", "network")}
    # What planning holds against what is asked for: a proof that was carried here may be of another adapter.
    facts |= {name: job[name] for name in ("network_digest", "worker_digest", "proof_digest")}
    facts["variables"] = digests.digest(job["variables"])
    facts |= {name: job[name] for name in ("devices", "exchange", "task") if name in job}
    facts["environment_digest"] = manifest["digest"]
    # The details hold measured numbers, which differ from run to run: not in the file that decides what is timed again.
    write_json(options.details, facts | verdict | {"details": details})
    write_json(options.proof, facts | verdict)
    title = f"{job['environment']} {job['mode']}, {job['network']}"
    title += f", {job['devices']} devices, {job['exchange']}" if "devices" in job else ""
    title += f", {job['task']}" if "task" in job else ""
    if verdict["status"] != "ok":
        say(f"    {title} is not timed: {verdict['status']}: {verdict['reason']}")


def prove(job: dict[str, Any], spec: dict[str, Any], digest: str, log: Path) -> tuple[dict, dict]:
    """Returns the verdict {status, reason, proof_id} and the numbers behind it.

    Ranks that do not wait for one another are proven in two parts: one rank alone, as on one device, and then all of
    them in turns. So are groups of ranks, where one group alone is proven as ranks that wait. A task other than
    training steps is judged by the module that its record names.
    """
    asked, task = worker_job(job, spec), TASKS[job["task"]] if "task" in job else None
    ranks, device = asked["ranks"], asked["device"]
    groups = groups_of(ranks, asked["exchange"])
    members = len(groups[0])
    first = asked | {"ranks": members, "batch": BATCH * members}
    proof_of = {"task": task.proof if task else "proof"}
    proof_of |= {"proves": task.name if task else that_proves(spec)}
    outcome, measured = _collected(job, first | proof_of, log)
    if outcome.status != "ok":
        return {"status": outcome.status, "reason": outcome.reason}, {}
    if task:
        proof = importlib.import_module(f"steptime.prove.{task.proof}").judge(first, measured)
    else:
        proof = compare.judge(spec, golden.expect(spec, first["batch"], members), measured)
    if proof.passed and len(groups) > 1:
        outcome, measured = _collected(job, asked | {"task": "turns"}, log)
        if outcome.status != "ok":
            return {"status": outcome.status, "reason": outcome.reason}, {}
        apart = turns.judge(spec, asked["batch"], groups, measured)
        proof = replace(apart, details=proof.details | apart.details)
    place = f"{ranks} x {device}, {asked['exchange']}" if ranks > 1 else device
    # What no framework could train is no fault of this one.
    is_known = proof.passed or task
    diverges = "" if is_known else golden.untrainable(spec, first["batch"], members)
    known = compare.proof_id(spec, job["mode"], place, digest, job["worker_digest"], proof)
    status = "ok" if proof.passed else "diverged" if diverges else "not_equivalent"
    return {"status": status, "reason": diverges or proof.reason, "proof_id": known}, proof.details


def _collected(job: dict[str, Any], asked: dict[str, Any], log: Path) -> tuple[Outcome, dict]:
    """Runs a worker that collects the numbers for a proof; returns how it has ended, and the numbers."""
    with tempfile.TemporaryDirectory() as folder:
        collected = Path(folder).absolute() / "collected.npz"
        masks = networks.masks.of_network(asked["spec"], asked["batch"])
        # Proofs run side by side: one CPU for each would be the same one for all.
        threads = THREADS if asked["ranks"] > 1 else machine.usable_cpus()
        cpus = machine.cpus_of_ranks(threads, asked["ranks"])
        outcome = run(job, asked | {"masks": masks, "output": str(collected)}, log, cpus)
        return outcome, compare.read(collected) if outcome.status == "ok" else {}


def run(
    job: dict[str, Any],
    asked: dict[str, Any],
    log: Path,
    cpus: list[int],
    seconds: float = LIMIT_SECONDS,
    watches: Sequence[Watch] = (),
) -> Outcome:
    """Runs a worker in the environment of a proof's job and with its variables; returns how it has ended."""
    prefix = interpreter.prefix_of(job["environment"])
    # Whichever GPU: each cell proves itself once more on its own.
    shown = placement.visible_devices({}, asked["ranks"]) if asked["device"] == "gpu" else {}
    given = fill(job["variables"], asked["threads"], job["mode"], prefix, asked["precision"])
    most = int(machine.usable_bytes() * MEMORY_SHARE)
    return run_worker(prefix, asked, cpus, given | shown, seconds, most, log, watches=watches)


def job_of(environment: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Returns the job of a proof outside of a run, in the first mode of an environment with this entry."""
    return {
        "environment": environment,
        "adapter": entry["adapter"],
        "mode": entry["modes"][0],
        "device": entry["device"],
        "variables": entry.get("variables", {}),
        "worker_digest": "",
    }


def worker_job(job: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a worker's job for a small network, whose task is that of a proof unless the caller changes it."""
    ranks = job.get("devices", 1)
    # Each rank has as many samples as one alone: batch normalisation takes the statistics of each share.
    axes = {"batch": BATCH * ranks, "threads": THREADS, "devices": ranks, "task": "proof"}
    usual = {"precision": USUAL, "device": "cpu", "exchange": ""}
    return measure.worker_job({**job, "cell": usual | job | axes}, spec)


if __name__ == "__main__":
    main()
