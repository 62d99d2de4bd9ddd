"""What jobs get: their turn, CPUs and memory on this machine, and resources of a cluster."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from steptime import machine, networks
from steptime.flow.planned import Planned
from steptime.machine import placement

# What SLURM has as an option of its own; the keys are those of `cluster` in config/platforms.yaml.
OPTIONS = {
    "partition": "slurm_partition",
    "account": "slurm_account",
    "qos": "qos",
    "gres": "gres",
    "constraint": "constraint",
}
# The supervisor ends a cell at its time limit; SLURM's limit is later, since Snakemake and the framework must start.
START_MINUTES = 10
# At most this many references side by side, with at least this many CPUs each: a reference computes two steps side by
# side, each of which takes memory.
MOST_REFERENCES = 4
LEAST_CPUS = STEPS_AT_ONCE = 2


class Turns:
    """The priorities of jobs. One machine measures cells in the order of the plan: of the jobs that are ready, the one
    with the highest priority starts first, and no other one before it (`Engine.keep_turns`).
    """

    def __init__(self, planned: Planned) -> None:
        # What a network's cells need is made right before the first of them, for an early first answer.
        self._cells: dict[str, int] = {}
        self._proofs: dict[str, int] = {}
        self.references: dict[tuple[str, str], int] = {}
        for turn, (key, cell) in enumerate(reversed(planned.plan.cells.items()), 1):
            self._cells[key] = turn
            self._proofs[cell.network] = turn
            self.references[cell.network, str(cell.batch)] = turn
        self.before_cells = len(self._cells) + 1
        # Before what follows the steps, as trainings do: so little is left to make after the last result.
        self.after_steps = min((self._cells[key] for key in planned.steps), default=0)
        # Behind the first answer, and before the trials that fill the minutes.
        later = (self._cells[key] for key, cell in planned.steps.items() if cell.repeat > 1)
        self.after_trial = max(later, default=self.after_steps)
        self._planned = planned

    def of_cell(self, wildcards: Any) -> int:
        """Returns the turn of a cell, by its rule's wildcards."""
        return self._cells[self._planned.cell_of(wildcards).key]

    def of_proof(self, wildcards: Any) -> int:
        """Returns the turn of a proof, by its rule's wildcards."""
        return self._proofs.get(wildcards.network, 0)


class References:
    """Shares out the machine to references: above all its memory."""

    def __init__(self, planned: Planned, turns: Turns) -> None:
        self._planned, self._turns = planned, turns
        # Where a cluster computes references, which take memory and no GPU.
        self.platform = max(
            (name for name, needs in planned.platforms.items() if "cluster" in needs),
            key=lambda name: (
                not planned.platforms[name].get("gpu"),
                planned.platforms[name]["memory_gib"],
            ),
            default=None,
        )
        # The memory that a reference may take where this process runs.
        given_mb = [machine.usable_bytes() / 2**20]
        if self.platform:
            given_mb.append(planned.platforms[self.platform]["memory_gib"] * 1024)
        self.megabytes = int(0.9 * min(given_mb))

    def at_once(self, wildcards: Any) -> int:
        """Returns how many references like this may be computed side by side: much of NumPy's work uses one CPU."""
        spec = self._planned.configuration.specify(wildcards.network)
        needed = STEPS_AT_ONCE * networks.bytes_of_reference(spec, int(wildcards.batch)) / 2**20
        cpus = self._planned.cores // LEAST_CPUS
        return max(1, min(MOST_REFERENCES, cpus, int(self.megabytes / needed)))

    def share_of_host(self, wildcards: Any) -> int:
        """Returns the part of the host that a reference takes, in percent."""
        return 100 // self.at_once(wildcards)

    def turn(self, wildcards: Any) -> float:
        """Returns the turn of a reference.

        On this machine it comes right before the first cell that needs it, for an early first answer. On a cluster the
        longest comes first, so that the run does not end with it alone.
        """
        if not self._planned.engine.counts_jobs:
            named = wildcards.network, wildcards.batch
            return self._turns.references.get(named, self._turns.before_cells)
        spec = self._planned.configuration.specify(wildcards.network)
        flops = networks.flops_per_step(spec, int(wildcards.batch))
        return self._turns.before_cells - 1e9 / (1e9 + flops)

    def threads(self, wildcards: Any) -> int:
        """Returns the CPUs of a reference; Snakemake passes them on to NumPy's libraries."""
        if self.platform:
            return self._planned.platforms[self.platform]["cores"]
        return max(1, self._planned.cores // self.at_once(wildcards))


class Cluster:
    """The resources that rules ask of SLURM, by the entries of the grid's platforms."""

    def __init__(self, planned: Planned) -> None:
        self._entries = planned.configuration.platforms
        self._seconds: float = planned.grid["limits"]["seconds"]
        self._is_asked = any("cluster" in needs for needs in planned.platforms.values())

    def asked(
        self,
        seconds: Callable[[Any], float] | None = None,
        platform: Callable[[Any], str] = lambda wildcards: wildcards.platform,
        devices: Callable[[Any], int] = lambda wildcards: 1,
    ) -> dict[str, Callable[[Any], Any]]:
        """Returns the resources of a rule that runs on a platform; {} where no platform of the grid is a cluster's.

        `seconds` (by default a cell's limit), `platform` and `devices` are functions of the rule's wildcards.
        """
        if not self._is_asked:
            return {}

        def runtime(needs: dict[str, Any], wildcards: Any) -> int:
            lasting = seconds(wildcards) if seconds else self._seconds
            return math.ceil(lasting / 60) + START_MINUTES

        def nodes(needs: dict[str, Any], wildcards: Any) -> int:
            return placement.nodes_of(needs, devices(wildcards))

        def tasks(needs: dict[str, Any], wildcards: Any) -> int | None:
            return None if "gpu" in needs["cluster"].get("gres", "") else nodes(needs, wildcards)

        def entry_of(key: str, needs: dict[str, Any], wildcards: Any) -> Any:
            return needs["cluster"].get(key)

        # Only what some platform says: a resource of the rule, even an empty one, hides --default-resources.
        named = {key for entry in self._entries.values() for key in entry.get("cluster", {})}
        requested: dict[str, Callable[[dict[str, Any], Any], Any]] = {
            resource: partial(entry_of, key) for key, resource in OPTIONS.items() if key in named
        }
        if any(placement.nodes_of(entry, 2) > 1 for entry in self._entries.values()):
            # As many tasks, or SLURM would give one node for the one task; beside GPUs they would be those of each GPU.
            requested |= {"nodes": nodes, "tasks": tasks}
        requested |= {
            "mem_mb": lambda needs, _: int(needs["memory_gib"] * 1024),
            # All CPUs of the node, not the cell's threads: a step that is bound to 2 CPUs may get two halves of one
            # core, and the supervisor could not take one of each.
            "cpus_per_task": lambda needs, _: needs["cores"],
            "slurm_extra": lambda needs, _: f"--exclusive {needs['cluster']['extra']}".strip(),
            "runtime": runtime,
        }

        def of_entry(
            value: Callable[[dict[str, Any], Any], Any], otherwise: int | None
        ) -> Callable[[Any], Any]:
            def resource(wildcards: Any) -> Any:
                needs = self._entries[platform(wildcards)]
                return value(needs, wildcards) if "cluster" in needs else otherwise

            return resource

        otherwise = {"mem_mb": 0}
        return {name: of_entry(value, otherwise.get(name)) for name, value in requested.items()}
