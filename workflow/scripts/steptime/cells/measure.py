"""Measures one cell, whatever its task, and writes its shard: each failure is a row with a status and a reason."""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shared.precisions import PRECISIONS, USUAL, marked
from steptime import machine, networks, project, run
from steptime.cells import mixed, software
from steptime.datasets import DatasetError
from steptime.environments import interpreter
from steptime.machine import gpu, interference, placement
from steptime.networks import written
from steptime.outcome import Outcome
from steptime.plain import plural
from steptime.plan import digests, interim
from steptime.plan.cell import key_of
from steptime.reading import read_yaml
from steptime.records import Footer, Job, Manifest, Proof
from steptime.run import progress
from steptime.say import doing, say
from steptime.supervisor import nodes, resources
from steptime.supervisor.ranks import HERE
from steptime.supervisor.supervise import run_worker
from steptime.tasks import TASKS

MEMORY_SHARE = 0.9
# Widths of the columns of a run's lines: environment, network, numbers.
WIDTHS = (15, 8, 9)


def main() -> None:
    """Runs the command line; exits with 0 when a shard was written, whatever its status."""
    parser = argparse.ArgumentParser(description="Measure one cell and write its shard.")
    parser.add_argument("--job", required=True, help="the cell and what to do with it, as JSON")
    parser.add_argument("--networks", required=True, type=project.path)
    for name in ("manifest", "proof", "shard", "log"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    for name in ("images", "reference"):
        parser.add_argument(f"--{name}", nargs="*", default=[], type=Path)
    cell_run = CellRun(parser.parse_args())
    cell_run.write(cell_run.run())


def fill(
    variables: dict[str, str], threads: int, mode: str, prefix: Path, precision: str = USUAL
) -> dict[str, str]:
    """Returns the framework's environment variables for threads, mode and precision, in the environment in `prefix`."""
    known = {"threads": threads, "mode": mode, "prefix": prefix}
    filled = {name: value.format(**known) for name, value in variables.items()}
    return filled | PRECISIONS[precision].variables


def describe(job: Job, varied: Collection[str]) -> str:
    """Names the cell of a job in words, with its mode and platform where the run has several."""
    cell = job["cell"]
    way = f" {cell['mode']}" if "mode" in varied else ""
    words = [
        f"{cell['environment']}{way}{marked(cell['precision'], ' ')}".ljust(WIDTHS[0]),
        TASKS[cell["task"]].title.format(cell["network"]).ljust(WIDTHS[1]),
        f"batch {cell['batch']}".ljust(WIDTHS[2]),
        plural(cell["threads"], "thread").ljust(WIDTHS[2]),
    ]
    if cell["devices"] > 1:
        words[-1] = f"{cell['devices']} devices of {words[-1].rstrip()}, {cell['exchange']}"
    words += [cell["platform"]] if "platform" in varied else []
    return "  ".join(words)


def worker_job(job: Mapping[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the job of a worker for a cell whose network has the specification `spec`."""
    cell = job["cell"]
    axes = ("task", "mode", "precision", "batch", "threads", "device", "exchange")
    return {name: cell[name] for name in axes} | {
        "adapter": job["adapter"],
        "spec": spec,
        "rank": 0,
        "ranks": cell["devices"],
        "parameters": networks.count_parameters(spec),
    }


class CellRun:
    """One cell on its way from the command line to its shard."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Ends the program with a sentence where the machine is not the cell's platform, or images are broken."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.options = options
        self.job: Job = json.loads(options.job)
        self.cell, varied = self.job["cell"], run.facts().get("varied", [])
        self.title = describe(self.job, varied)
        self.task = TASKS[self.cell["task"]]
        if refused := placement.refusal(self.cell["platform"]):
            # Not a row: the cell has not failed, it is in the wrong place.
            options.log.parent.mkdir(parents=True, exist_ok=True)
            options.log.write_text(f"{refused}\n")
            sys.exit(refused)
        doing(f"waiting to measure {' '.join(self.title.split())}")
        self.began, self.clock = datetime.now(UTC), time.monotonic()
        self.manifest: Manifest = json.loads(options.manifest.read_text())
        self.proof: Proof = json.loads(options.proof.read_text())
        self.catalogue = written.of_run(options.networks)
        self.spec = networks.specify(self.cell["network"], self.catalogue)
        self.images = self._check_images() if self.task.needs_images else {}
        # What the shard tells besides the cell: it is looked at while the framework is imported, which costs no time.
        self.machine: dict[str, Any] = {}
        self.workflow: dict[str, Any] = {}
        self.needs = placement.entry(self.cell["platform"])
        self.shown: dict[str, str] = {}
        self.devices: gpu.Watch | None = None
        if self.cell["device"] == "gpu":
            self.shown = placement.visible_devices(self.needs, self.cell["devices"])
            self.devices = gpu.Watch(self.shown["CUDA_VISIBLE_DEVICES"].split(","))
        self.used = resources.Watch(self.devices, notes=self.task.is_watched)

    def run(self) -> Outcome:
        """Runs the worker, where its environment was made and its network is proven."""
        cell, installed = self.cell, self.manifest.get("packages")
        lacking = [made for made in (self.manifest, self.proof) if made["status"] != "ok"]
        single = networks.single_values(self.spec, cell["batch"] // cell["devices"])
        if lacking:
            outcome = Outcome(lacking[0]["status"], lacking[0]["reason"])
        elif single and "backward" in self.task.timed_region:
            outcome = Outcome("unsupported", single)
        elif installed and (changed := software.changed(cell, self.manifest)):
            outcome = Outcome("install_failed", changed)
        else:
            outcome = self._run_worker()
            if installed and outcome.status == "ok":
                if changed := software.imported_another(cell, outcome, self.manifest):
                    outcome.status, outcome.reason = "install_failed", changed
        self.describe_machine()
        if self.devices and outcome.status == "crashed" and gpu.was_full(outcome.reason):
            outcome.status = "out_of_memory"
        return outcome

    def describe_machine(self) -> None:
        """Describes machine and workflow, once, and imports what will write the shard."""
        if not self.machine:
            doing(f"measuring {' '.join(self.title.split())}")
            self.machine, self.workflow = machine.describe(), software.workflow()
            # pyarrow imports pandas when it makes its first array.
            import pandas  # noqa: F401

            if refused := mixed.stranger(self.options.shard, self.machine):
                sys.exit(refused)

    def write(self, outcome: Outcome) -> None:
        """Writes the shard and reports what came out."""
        from steptime.cells import shard

        facts = self._columns(outcome) | self.task.read(self.job, self.spec, outcome)
        facts |= self.images.get("columns", {})
        try:
            rows = self.task.rows.of(outcome)
            shard.write(self.options.shard, facts, rows, self._footer(outcome))
        except shard.Unfit as error:
            if not outcome.events:
                raise
            # With nothing of what the worker said.
            reason = f"what the worker said fits no row: {error}"
            return self.write(Outcome("crashed", reason, span=outcome.span))
        except OSError as error:
            sys.exit(
                f"The shard {self.options.shard} cannot be written ({error.strerror}): free some space and run again."
            )
        try:
            self._tell(outcome, facts)
        except Exception as error:
            # Its shard is whole.
            say(f"    {self.title}: {type(error).__name__}: {error}")

    def _tell(self, outcome: Outcome, facts: dict[str, Any]) -> None:
        """Prints what came out, and leaves a note for the rule where a page is to be made now."""
        shown = run.facts().get("shown", {}).get("cells", [])
        marked = "  disturbed" if interference.disturbed(facts) else ""
        progress.report(
            self.title,
            self.task.result(outcome) + marked,
            time.monotonic() - self.clock,
            progress.stages_of(self.cell, shown),
            key_of(self.cell),
        )
        if ended := progress.ended():
            progress.DUE.write_text(ended)

    def _footer(self, outcome: Outcome) -> Footer:
        from shared import data

        energy_by = {"processor_energy": self.used.counter.state}
        energy_by |= {"gpu_energy": self.devices.facts()["energy_by"]} if self.devices else {}
        footer: Footer = {
            "machine": self.machine | energy_by,
            "software": software.describe(self.cell, outcome, self.manifest),
            "workflow": self.workflow,
            "seeds": {"weights": data.SEED, "mini-batch": data.BATCH_SEED},
            "devices": self.devices.facts() if self.devices else None,
            "job": self.job,
            "worker": outcome.events,
            "reference": digests.file_digest(*self.options.reference),
        }
        if outcome.ranks:
            footer["ranks"] = outcome.used_by_ranks()
        planned = run.facts().get("looks", [])
        if self.task.is_compared and interim.is_further(planned, self.cell["repeat"]):
            # Comparisons with these rows must pay for the analyses that chose them.
            footer["looks"] = planned
        if self.task.is_watched:
            footer["resources"] = self.used.series()
        return footer

    def _check_images(self) -> dict[str, Any]:
        """Returns what the worker is given of a data set, and the column that says which images these are."""
        from steptime.datasets import whole

        train, test = self.options.images
        known = read_yaml(project.path("config/datasets.yaml"))
        try:
            checked = whole.check(known.get(self.cell["dataset"], {}), train, test)
        except DatasetError as error:
            sys.exit(str(error))
        return {
            "asked": {"images": {"train": str(train.absolute()), "test": str(test.absolute())}},
            "columns": {"dataset_sha256": checked},
        }

    def _run_worker(self) -> Outcome:
        cell, limits, available = self.cell, self.job["limits"], machine.usable_bytes() / 2**30
        if "cluster" in self.needs:
            available = min(available, self.needs["memory_gib"])
        memory = limits.get("memory_gib", available * MEMORY_SHARE)
        launch = HERE
        if (count := placement.nodes_of(self.needs, cell["devices"])) > 1:
            launch = nodes.launch(cell["platform"], count, cell["threads"])
        prefix = interpreter.prefix_of(cell["environment"])
        variables, several = self.job["variables"], cell["devices"] > 1
        masks = {} if several else networks.masks.of_network(self.spec, cell["batch"])
        is_shown = key_of(cell) in run.facts().get("shown_by", {})
        return run_worker(
            prefix,
            {
                **worker_job(self.job, self.spec),
                "reference": next((str(path.absolute()) for path in self.options.reference), None),
                # The same code runs on the same numbers: what costs two more trainers is shown once.
                "gradients": cell["repeat"] == 1 and not is_shown,
                "masks": masks,
                **self.job["asked"],
                **self.images.get("asked", {}),
            },
            machine.cpus_of_ranks(cell["threads"], cell["devices"]),
            fill(variables, cell["threads"], cell["mode"], prefix, cell["precision"]) | self.shown,
            limits["seconds"],
            int(memory * 2**30),
            self.options.log,
            meanwhile=self.describe_machine,
            watches=[*([self.devices] if self.devices else []), self.used],
            launch=launch,
        )

    def _columns(self, outcome: Outcome) -> dict[str, Any]:
        """Returns the constant columns that cells of all tasks have in common."""
        cell = self.cell
        ready, proven, done = (outcome.events.get(name, {}) for name in ("ready", "proven", "done"))
        base = cell["network"]
        while "variant_of" in self.catalogue[base]:
            base = self.catalogue[base]["variant_of"]
        wall, used = done.get("wall_seconds"), done.get("cpu_seconds", 0.0)
        waited = done.get("waited_seconds")
        used_here = used
        first, *others = outcome.used_by_ranks() or [{}]
        for rank in others:
            # The worker itself has reported the first rank's.
            used += rank.get("cpu_seconds", 0.0)
            if rank.get("node") == first.get("node"):
                used_here += rank.get("cpu_seconds", 0.0)
            if waited is not None:
                waited += rank["waited_seconds"] or 0.0
        ranks = cell["devices"]
        disturbed: dict[str, Any] = {}
        if wall and not self.task.is_slowed:
            disturbed = interference.between(outcome.snapshots, wall, used_here)
        facts = {
            "network": base,
            "variant": "" if base == cell["network"] else cell["network"],
            "optimiser": self.spec["optimiser"]["name"],
            "framework_version": ready.get("versions", {}).get("framework_version"),
            "status": outcome.status,
            "reason": outcome.reason,
            "parameters": ready.get("parameters"),
            "flops_per_step": self.task.operations(self.spec, cell["batch"]),
            "timed_region": ",".join(self.task.region(cell["devices"])),
            "import_seconds": ready.get("import_seconds"),
            "build_seconds": ready.get("build_seconds"),
            "ready_seconds": outcome.ready_seconds,
            "peak_memory_bytes": outcome.peak_memory_bytes,
            "effective_threads": used / wall / ranks if wall else None,
            "waiting_threads": waited / wall / ranks if wall and waited is not None else None,
            "involuntary_switches": done.get("involuntary_switches"),
            "host_energy_joules": self.used.host_joules(),
            "proof_id": self.proof.get("proof_id"),
            **{f"proven_{name}": proven.get(name) for name in ("loss", "change", "gradients")},
            "proof_digest": self.proof.get("proof_digest"),
            "environment_digest": self.manifest["digest"],
            "network_digest": self.job.get("network_digest"),
            "worker_digest": self.job.get("worker_digest"),
            "sampling_digest": digests.digest(self.job["asked"]),
            "machine_id": machine.identify(self.machine),
            "workflow_commit": self.workflow["commit"],
        }
        took = timedelta(seconds=time.monotonic() - self.clock)
        span = outcome.span or (self.began, self.began + took)
        facts |= {"started_at": span[0], "ended_at": span[1]}
        if outcome.ranks:
            facts |= outcome.exchanged()
        used_gpus = self.devices.columns() if self.devices else {}
        held = [each.get("throttled_seconds") for each in (disturbed, used_gpus)]
        throttled = max((seconds for seconds in held if seconds is not None), default=None)
        return cell | disturbed | facts | used_gpus | {"throttled_seconds": throttled}


if __name__ == "__main__":
    main()
    # To take pandas and pyarrow down would cost the next cell a fifth of a second.
    sys.stderr.flush()
    os._exit(0)
