"""What a row must have been measured with to represent a cell of this configuration.

A row says by digests what it is of: the network, the code of its adapter and worker, the pins of its environment, and
the job of its worker. Wherever rows are read, to plan or to merge, their digests are compared with those computed here.
A row of another network or adapter is named, and never shown as this one's.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from shared.grouping import GROUPED
from steptime import networks, project, tasks
from steptime.environments import pins, prepare
from steptime.plan import digests, exchanges
from steptime.plan.cell import PLAIN, Cell, apart_of, network_of
from steptime.plan.configuration import Configuration

# What a program says, and where a run keeps its state, changes no number.
SAYING = [digests.module_path(f"steptime.{name}") for name in ("say", "run")]
# What of a cell decides its adapter and its code, in the order of `_framework_facts`.
KIND = ("environment", "mode", "network", "task", "devices", "exchange")


def _kind(axes: Mapping[str, Any]) -> list[Any]:
    return [axes[name] for name in KIND]


class Expected:
    """The digests of a configuration, each computed once."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.network_digest = cache(self._network_digest)
        self.code_for = cache(self._code_for)
        self.environment_digest = cache(self._environment_digest)
        self.framework_facts = cache(self._framework_facts)
        self._of_kind = cache(self._facts_of_kind)
        self._sampled: dict[tuple[Any, ...], str] = {}

    def preparing_step(self, environment: str) -> str:
        """Names the step that prepares an environment; '' for none."""
        return self.configuration.entry_of(environment).get("prepare", "")

    def worker_digest(self, adapter: str, network: str, *names: str) -> str:
        """Returns the digest of the code that runs in a worker with this adapter for tasks of these names."""
        modules = ["worker.__main__", "worker.building", *map("worker.tasks.{}".format, names)]
        own = f"worker.frameworks.{adapter}"
        # Where there is none, the worker says so.
        modules += [own] if digests.module_path(own).exists() else []
        return self.code_for(network, *modules)

    def proof_digest(self, network: str, exchange: str = "", task: str = "") -> str:
        """Returns the digest of the code of a proof: an edit of it may change the verdict."""
        if task:
            proof = tasks.TASKS[task].proof
            return self.code_for(network, f"worker.tasks.{proof}", f"steptime.prove.{proof}")
        modules = ["worker.tasks.proof", "steptime.prove.compare", "steptime.prove.golden"]
        modules += ["worker.tasks.turns", "steptime.prove.turns"] if exchange in GROUPED else []
        return self.code_for(network, *modules)

    def reference_digest(self, network: str) -> str:
        """Returns the digest of the code that computes the reference of a network."""
        return self.code_for(network, "steptime.prove.reference")

    def has_reference(self, cell: Cell) -> bool:
        """Tells whether a cell is compared with a full-size reference: with a whole mini-batch, and ranks that wait."""
        if not tasks.TASKS[cell.task].needs_reference or cell.devices == 1:
            return tasks.TASKS[cell.task].needs_reference
        spec = self.configuration.specify(cell.network)
        return cell.exchange not in GROUPED and not networks.normalises(spec)

    def job_of(self, cell: Cell) -> dict[str, Any]:
        """Returns all that decides the number of a cell: the cell, its framework's settings, the worker's orders."""
        facts = tasks.job_of(self.configuration, cell) | self.framework_facts(*_kind(cell.facts()))
        return facts | {"network_digest": self.network_digest(cell.network)}

    def proving_job(self, environment: str, mode: str, network: str, mark: str) -> dict[str, Any]:
        """Returns all that decides a proof; `mark` names the devices, if several, and the task, if it is not steps."""
        apart = apart_of(mark)
        judged_by = self.proof_digest(network, apart.get("exchange", ""), apart.get("task", ""))
        facts = self.framework_facts(environment, mode, network, **apart) | apart
        return facts | {
            "environment": environment,
            "device": self.configuration.entry_of(environment)["device"],
            "mode": mode,
            "network": network,
            "network_digest": self.network_digest(network),
            "proof_digest": judged_by,
        }

    def of(self, cell: Cell) -> dict[str, Any]:
        """Returns what the row of a cell of the grid must say, by the columns of `cells.footers.COMPARED`.

        {} for a machine whose rows are shown as they were measured.
        """
        if self.configuration.platforms[cell.platform].get("as_measured"):
            return {}
        key = (cell.task, cell.network, cell.dataset, cell.repeat)
        if key not in self._sampled:
            asked = tasks.TASKS[cell.task].asked(self.configuration, cell)
            self._sampled[key] = digests.digest(asked)
        return self._of_kind(*_kind(cell.facts())) | {"sampling_digest": self._sampled[key]}

    def of_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what any cell's row must say, except its sampling; {} for an unknown task, network or environment."""
        axes, known = {**row, "network": network_of(row)}, self.configuration
        is_known = (
            axes["environment"] in known.known_environments
            and axes["network"] in known.networks
            and axes["task"] in tasks.TASKS
        )
        return self._of_kind(*_kind(axes)) if is_known else {}

    def _network_digest(self, network: str) -> str:
        """Returns the digest of the full-size and the narrow specification."""
        return digests.digest([self.configuration.specify(network, of) for of in (False, True)])

    def _code_for(self, network: str, *modules: str) -> str:
        """Returns the digest of modules and all that they import, without what only other networks need."""
        used = networks.used_records(self.configuration.specify(network))
        known = digests.closure(*map(digests.module_path, modules), unused=networks.RECORDS - used)
        files = [path for path in known if path not in SAYING]
        return digests.code_digest(files, networks.RECORDS, used)

    def _environment_digest(self, environment: str) -> str:
        """Returns the digest of the pins of an environment and of the step that prepares it."""
        step = self.preparing_step(environment)
        wanted = pins.load(project.path(f"envs/{environment}.yaml"), step)
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
        """Returns the adapter of an environment, its worker's variables, and the digest of its code for a task."""
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

    def _facts_of_kind(self, environment: str, mode: str, network: str, *of: Any) -> dict[str, Any]:
        facts = self.framework_facts(environment, mode, network, *of)
        spec = self.configuration.specify(network)
        return {
            "network_digest": self.network_digest(network),
            "parameters": networks.count_parameters(spec),
            "worker_digest": facts["worker_digest"],
            "variables": digests.digest(facts["variables"]),
            "environment_digest": self.environment_digest(environment),
        }
