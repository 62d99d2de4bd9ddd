"""Measures one cell and writes its shard. Every way to fail becomes a shard with a status and a reason.

    python -m measure.cell --job JSON --networks config/networks.yaml --manifest results/environments/E.json \
        --proof results/proofs/E.M-N.json --shard results/shards/... --log logs/shards/...
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from steptime import machine, networks, project
from steptime.cells import software
from steptime.cells.surroundings import Surroundings
from steptime.environments import interpreter
from steptime.machine import gpu, interference, placement
from steptime.supervisor import progress
from steptime.supervisor.supervise import Outcome, Watch, run_worker

TIMED_REGION = ("forward", "loss", "backward", "update", "sync")
MEMORY_SHARE = 0.9


def main() -> None:
    """Command line. Exits with 0 when a shard was written, whatever its status."""
    attempt = Attempt(parse("Measure one cell and write its shard."))
    outcome = attempt.run({"task": "step", "sampling": attempt.job["sampling"]})
    clocks = attempt.devices.clocks() if attempt.devices else None
    footer = {"seeds": attempt.surroundings.seeds, "device_clocks": clocks}
    facts = attempt.columns(outcome, TIMED_REGION) | column_values(outcome)
    from steptime.cells import shard

    attempt.write(shard.write, facts, outcome, outcome.samples, footer, result(outcome))


def available_gib(platform: str) -> float:
    """Memory of this machine, or what a cluster gives to a cell of it."""
    needs, total = placement.entry(platform), machine.usable_bytes() / 2**30
    return min(total, needs["memory_gib"]) if "cluster" in needs else total


def fill(variables: dict[str, str], threads: int, mode: str, prefix: Path) -> dict[str, str]:
    """The framework's environment variables for a thread count and a mode, in the environment in `prefix`."""
    return {
        name: value.format(threads=threads, mode=mode, prefix=prefix)
        for name, value in variables.items()
    }


def describe(job: dict[str, Any]) -> str:
    """The cell of a job in words."""
    cell = job["cell"]
    threads = "1 thread" if cell["threads"] == 1 else f"{cell['threads']} threads"
    repeat = f", repeat {cell['repeat']}" if cell["repeat"] > 1 else ""
    trained = f", trained on {job['dataset']}" if "dataset" in job else ""
    return (
        f"{cell['environment']} {cell['adapter_mode']}, {cell['network']}, batch {cell['batch']}, {threads}, "
        f"{cell['platform']}{repeat}{trained}"
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
    width = (
        f"±{spread}, {len(values)} samples"
        if len(values) >= ENOUGH
        else f"{len(values)} samples within ±{spread}"
    )
    return f"{middle:.4g} s per mini-batch, {width}"


def column_values(outcome: Outcome) -> dict[str, Any]:
    """The constant columns of a timed cell alone."""
    warmup, done = (outcome.events.get(name, {}) for name in ("warmup", "done"))
    return {
        "warmup_steps": warmup.get("steps"),
        "cpu_seconds": done.get("cpu_seconds"),
        "wall_seconds": done.get("wall_seconds"),
        "first_loss": warmup.get("first_loss"),
        "last_loss": done.get("last_loss"),
    }


def parse(description: str, **others: str) -> argparse.Namespace:
    """The command line of a program for a cell; `others` are files that it names besides."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--job", required=True, help="the cell and what to do with it, as JSON")
    for name, text in {
        "networks": "config/networks.yaml",
        "manifest": "manifest of the environment",
        "proof": "proof of the network in the environment",
        **others,
        "shard": "the Parquet file to write",
        "log": "what the framework prints",
    }.items():
        kind = project.path if name == "networks" else Path
        parser.add_argument(f"--{name}", required=True, type=kind, help=text)
    return parser.parse_args()


class Attempt:
    """One cell, timed or trained, on its way from the command line to its shard."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Ends the program with a sentence on a machine that is not the cell's platform."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.options, self.job = options, json.loads(options.job)
        self.cell, self.title = self.job["cell"], describe(self.job)
        if refused := placement.refusal(self.cell["platform"]):
            # Not a row: the cell has not failed, it is in the wrong place.
            options.log.parent.mkdir(parents=True, exist_ok=True)
            options.log.write_text(f"{refused}\n")
            sys.exit(refused)
        progress.announce(self.title)
        self.began, self.clock = datetime.now(UTC), time.monotonic()
        self.manifest = json.loads(options.manifest.read_text())
        self.proof = json.loads(options.proof.read_text())
        self.catalogue = yaml.load(options.networks.read_text(), Loader=yaml.CSafeLoader)
        self.spec = networks.specify(self.cell["network"], self.catalogue)
        self.surroundings = Surroundings(options.shard)
        self.shown = (
            placement.visible_devices(self.cell["devices"]) if self.cell["device"] == "gpu" else {}
        )
        self.devices = (
            gpu.Watch(self.shown["CUDA_VISIBLE_DEVICES"].split(",")) if self.shown else None
        )

    def run(self, asked: dict[str, Any], *watches: Watch) -> Outcome:
        """Runs the worker, `asked` for that, where its environment stands and its network is proven."""
        lacking = [made for made in (self.manifest, self.proof) if made["status"] != "ok"]
        outcome = (
            Outcome(lacking[0]["status"], lacking[0]["reason"])
            if lacking
            else self._run(asked, watches)
        )
        self.surroundings.look()
        return outcome

    def _run(self, asked: dict[str, Any], watches: tuple[Watch, ...]) -> Outcome:
        cell, limits = self.cell, self.job["limits"]
        memory = limits.get("memory_gib", available_gib(cell["platform"]) * MEMORY_SHARE)
        prefix = interpreter.prefix_of(cell["environment"])
        return run_worker(
            prefix,
            {
                "adapter": self.job["adapter"],
                "spec": self.spec,
                "mode": cell["adapter_mode"],
                "precision": "float32",
                "batch": cell["batch"],
                "threads": cell["threads"],
                "device": cell["device"],
                "rank": 0,
                "ranks": 1,
                "exchange": "",
                "parameters": networks.count_parameters(self.spec),
                **asked,
            },
            machine.cpus_for(cell["threads"]),
            fill(self.job["variables"], cell["threads"], cell["adapter_mode"], prefix) | self.shown,
            limits["seconds"],
            int(memory * 2**30),
            self.options.log,
            meanwhile=self.surroundings.look,
            watches=[*([self.devices] if self.devices else []), *watches],
        )

    def columns(self, outcome: Outcome, timed_region: tuple[str, ...]) -> dict[str, Any]:
        """The constant columns that timed and trained cells have in common."""
        cell = self.cell
        ready, done = (outcome.events.get(name, {}) for name in ("ready", "done"))
        base = cell["network"]
        while "variant_of" in self.catalogue[base]:
            base = self.catalogue[base]["variant_of"]
        wall, used = done.get("wall_seconds"), done.get("cpu_seconds")
        waited = done.get("waited_seconds")
        disturbed = interference.between(*outcome.snapshots, wall, used) if wall else {}
        facts = {
            "network": base,
            "variant": "" if base == cell["network"] else cell["network"],
            "framework_version": ready.get("versions", {}).get("framework_version"),
            "status": outcome.status,
            "reason": outcome.reason,
            "parameters": ready.get("parameters"),
            "flops_per_step": networks.flops_per_step(self.spec, cell["batch"]),
            "timed_region": ",".join(timed_region),
            "import_seconds": ready.get("import_seconds"),
            "build_seconds": ready.get("build_seconds"),
            "peak_memory_bytes": outcome.peak_memory_bytes,
            "effective_threads": used / wall if wall else None,
            "waiting_threads": waited / wall if wall and waited is not None else None,
            "involuntary_switches": done.get("involuntary_switches"),
            "proof_id": self.proof.get("proof_id"),
            "environment_digest": self.manifest["digest"],
            "machine_id": machine.identify(self.surroundings.machine),
            "workflow_commit": self.surroundings.workflow["commit"],
            "started_at": outcome.span[0] if outcome.span else self.began,
        }
        return cell | disturbed | facts | (self.devices.columns() if self.devices else {})

    def write(
        self,
        write: Callable[..., None],
        facts: dict[str, Any],
        outcome: Outcome,
        rows: list[Any],
        footer: dict[str, Any],
        said: str,
    ) -> None:
        """Writes the shard by `write` and reports what is `said` of it; `footer` is what it has of its own."""
        footer |= {
            "machine": self.surroundings.machine,
            "software": software.describe(self.cell, outcome, self.manifest),
            "workflow": self.surroundings.workflow,
            "job": self.job,
            "worker": outcome.events,
            "ended_at": (outcome.span[1] if outcome.span else datetime.now(UTC)).isoformat(
                timespec="milliseconds"
            ),
        }
        try:
            write(self.options.shard, facts, rows, footer)
        except OSError as error:
            sys.exit(
                f"The shard {self.options.shard} cannot be written ({error.strerror}): free some space and run again."
            )
        marked = " (disturbed: something else was at work)" if interference.disturbed(facts) else ""
        progress.report(self.title, said + marked, time.monotonic() - self.clock)


if __name__ == "__main__":
    main()
    # To take pandas and pyarrow down would cost the next cell a fifth of a second.
    sys.stderr.flush()
    os._exit(0)
