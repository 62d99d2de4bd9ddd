"""Asks a framework's own profiler which of its operators take the time of a network's steps."""

from pathlib import Path
from typing import Any

from shared.precisions import USUAL
from steptime import machine, networks
from steptime.cells import measure
from steptime.plan.configuration import Configuration
from steptime.prove import network as proving
from steptime.say import doing

LIMIT_SECONDS = 600
NAMED = 5


def said(known: Configuration, environment: str, label: str, network: str, log: Path) -> str:
    """Names the operators of a network that take most time, by the profiler of the framework in an environment here."""
    doing(f"profiling {network} in {environment}")
    job = proving.job_of(environment, known.entry_of(environment))
    cpus = machine.cpus_of_ranks(machine.usable_cpus(), 1)
    cell = {"task": "profile", "precision": USUAL, "device": "cpu", "devices": 1, "exchange": ""}
    cell |= {
        "mode": job["mode"],
        "threads": len(cpus),
        "batch": networks.resolve(network, known.networks)["batch"],
    }
    asked = measure.worker_job({**job, "cell": cell}, known.specify(network))
    # The steps that it looks at are those of this task.
    asked["proves"] = "step"
    log.parent.mkdir(parents=True, exist_ok=True)
    outcome = proving.run(job, asked, log, cpus, LIMIT_SECONDS)
    if outcome.status != "ok":
        return f"{label} is not profiled: {outcome.reason}."
    found = outcome.events["profiled"]["operators"]
    dearest: list[list[Any]] = sorted(found, key=lambda each: -each[2])[:NAMED]
    total = sum(seconds for *_, seconds in found)
    shown = [(name, f"{seconds / total:.2f}") for name, _, seconds in dearest]
    shares = ", ".join(f"{name} {share}" for name, share in shown if float(share))
    return f"{label}, by its own profiler, of what its operators take: {shares}."
