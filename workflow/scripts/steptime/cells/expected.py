"""What a row must have been measured with to stand for a cell of this configuration.

A row says of what it is by digests: of the network, of the code of its adapter and worker, of the pins of its
environment, of what its worker was asked. Wherever rows are taken, planned with or merged, they are compared with what
is computed here. A row of another network or adapter is named, and never shown as this one's.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from shared.grouping import GROUPED
from steptime import networks, project, tasks
from steptime.environments import pins, prepare
from steptime.plan import digests, exchanges
from steptime.plan.cell import PLAIN, Cell, axes_of
from steptime.plan.configuration import Configuration


class Expected:
    """The digests of a configuration, each computed once."""

    def __init__(self, configuration: Configuration, root: Path = project.ROOT) -> None:
        self.configuration, self.root = configuration, root
        self.network_digest = cache(self._network_digest)
        self.code_for = cache(self._code_for)
        self.environment_digest = cache(self._environment_digest)
        self.framework_facts = cache(self._framework_facts)
        self._of_kind = cache(self._facts_of_kind)
        self._sampled: dict[tuple[Any, ...], str] = {}

    def preparing_step(self, environment: str) -> str:
        """Name of the step that prepares an environment, '' for none."""
        return self.configuration.entry_of(environment).get("prepare", "")

    def on_gpu(self, environment: str) -> bool:
        """Whether an environment computes on GPUs."""
        return self.configuration.entry_of(environment)["device"] == "gpu"

    def worker_digest(self, adapter: str, network: str, *names: str) -> str:
        """Digest of the code that runs in a worker with this adapter for tasks of these names: an edit of it makes
        other numbers.
        """
        modules = [
            "worker.__main__",
            "worker.building",
            *(f"worker.tasks.{name}" for name in names),
        ]
        own = f"worker.frameworks.{adapter}"
        # Where there is none, the worker says so.
        return self.code_for(
            network, *modules, *([own] if digests.module_path(own).exists() else [])
        )

    def proof_digest(self, network: str, exchange: str = "", task: str = "") -> str:
        """Digest of the code that collects what a proof needs and judges it: an edit of it may give another verdict."""
        if task:
            proof = tasks.TASKS[task].proof
            return self.code_for(network, f"worker.tasks.{proof}", f"steptime.prove.{proof}")
        turns = ("worker.tasks.turns", "steptime.prove.turns") if exchange in GROUPED else ()
        return self.code_for(
            network, "worker.tasks.proof", "steptime.prove.compare", "steptime.prove.golden", *turns
        )

    def job_of(self, cell: Cell) -> dict[str, Any]:
        """All that decides the number of a cell: the cell, its framework's settings and what is asked of it."""
        facts = tasks.job_of(self.configuration, cell)
        facts |= self.framework_facts(
            cell.environment, cell.mode, cell.network, cell.task, cell.devices, cell.exchange
        )
        return facts | {"network_digest": self.network_digest(cell.network)}

    def proving_job(
        self, environment: str, mode: str, network: str, together: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """All that decides the proof of a network in an environment and mode; `together` says on which devices, if on
        several, and of which task, if training steps do not prove it.
        """
        several = dict(together or {})
        return self.framework_facts(environment, mode, network, **several) | {
            **several,
            # Only where it is one: a word more would prove every network on CPUs again.
            **({"device": "gpu"} if self.on_gpu(environment) else {}),
            "environment": environment,
            "mode": mode,
            "network": network,
            "network_digest": self.network_digest(network),
            "proof_digest": self.proof_digest(
                network, several.get("exchange", ""), several.get("task", "")
            ),
        }

    def of(self, cell: Cell) -> dict[str, Any]:
        """What the row of a cell of the grid must say, by the columns of `cells.found.COMPARED`."""
        key = (cell.task, cell.network, cell.dataset, cell.repeat)
        if key not in self._sampled:
            asked = tasks.TASKS[cell.task].asked(self.configuration, cell)
            self._sampled[key] = digests.digest(asked)
        known = self._of_kind(
            cell.environment, cell.mode, cell.network, cell.task, cell.devices, cell.exchange
        )
        return known | {"sampling_digest": self._sampled[key]}

    def of_key(self, key: str) -> dict[str, Any]:
        """What the row of any cell must say, but for its sampling; {} for an unknown task, network or environment."""
        axes, known = axes_of(key), self.configuration
        environments = [name for each in known.frameworks.values() for name in each["environments"]]
        if axes["environment"] not in environments or axes["network"] not in known.networks:
            return {}
        if axes["task"] not in tasks.TASKS:
            return {}
        named = ("environment", "mode", "network", "task", "devices", "exchange")
        return self._of_kind(*(axes[name] for name in named))

    def _network_digest(self, network: str) -> str:
        """Of the full-size and the narrow specification."""
        catalogue = self.configuration.networks
        return digests.digest(
            [networks.specify(network, catalogue, narrow) for narrow in (False, True)]
        )

    def _code_for(self, network: str, *modules: str) -> str:
        """Digest of modules and all that they import, without what only layers, losses and optimisers need that the
        network has not.
        """
        used = networks.used_records(networks.specify(network, self.configuration.networks))
        files = digests.closure(*map(digests.module_path, modules), unused=networks.RECORDS - used)
        return digests.code_digest(files, networks.RECORDS, used)

    def _environment_digest(self, environment: str) -> str:
        """Of the pins of an environment and of the step that prepares it."""
        step = self.preparing_step(environment)
        wanted = pins.load(self.root / f"envs/{environment}.yaml", step)
        return pins.digest(wanted, prepare.digest(step))

    def _framework_facts(
        self,
        environment: str,
        mode: str,
        network: str,
        task: str = "",
        devices: int = 1,
        exchange: str = "",
    ) -> dict[str, Any]:
        """The adapter of an environment, the variables that its worker gets, and the digest of its code for a task."""
        framework = self.configuration.entry_of(environment)
        adapter = exchanges.adapter_of(framework["adapter"], devices, exchange)
        adapter += f".{PLAIN}" if mode == PLAIN else ""
        if task:
            adapter = tasks.TASKS[task].module.format(adapter)
        run = [*([task] if task else []), *(["follow"] if devices > 1 else [])]
        return {
            "adapter": adapter,
            "variables": framework["plain" if mode == PLAIN else "variables"],
            "worker_digest": self.worker_digest(adapter, network, *run),
        }

    def _facts_of_kind(
        self, environment: str, mode: str, network: str, task: str, devices: int, exchange: str
    ) -> dict[str, Any]:
        facts = self.framework_facts(environment, mode, network, task, devices, exchange)
        spec = networks.specify(network, self.configuration.networks)
        return {
            "network_digest": self.network_digest(network),
            "parameters": networks.count_parameters(spec),
            "worker_digest": facts["worker_digest"],
            "variables": digests.digest(facts["variables"]),
            "environment_digest": self.environment_digest(environment),
        }
