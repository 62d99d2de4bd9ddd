"""What a run is about: its configuration, the plan of its grid, and what of it this run can measure."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from steptime import machine, tasks
from steptime.cells import footers
from steptime.cells.current import Current
from steptime.cells.expected import Expected
from steptime.flow.engine import Engine
from steptime.machine import placement
from steptime.plan import configuration, folders, grid, interim, written
from steptime.plan.cell import FOLDER, Cell, shard_path
from steptime.run import holding
from steptime.say import say_sentence


class Planned:
    """A run's configuration and plan; `root` is the project's folder, `config` Snakemake's. Raises InputError."""

    def __init__(self, root: Path, config: dict[str, Any], engine: Engine) -> None:
        self.root, self.config, self.engine = root, config, engine
        # What may be the name of a target or of its file: Snakemake knows its targets only after the rules were read.
        self.asked = {Path(word).stem for word in engine.words}
        self._check_folders()
        configuration.as_written(root, config, engine.words)
        self.configuration = configuration.load(
            root, config, self._is_present, self._capability, self.asked
        )
        self.grid, self.grid_name = self.configuration.grid, self.configuration.grid_name
        self.repeats = interim.repeats_of(self.grid)
        self.file = written.path_of(self.grid_name)
        self.expected = Expected(self.configuration)
        self.current = Current(self.expected)
        # The environments of the catalogue, and those of the grid.
        self.catalogued = self.configuration.known_environments
        self.environments = self.grid["environments"]
        # A job of a cluster has CPUs of its own: it goes by the plan of the run that it belongs to.
        self.plan = (
            grid.expand(self.configuration, machine.usable_cpus(), self._is_shown)
            if engine.is_main
            else written.read(self.file)
        )
        # Here, so that a mistake in a file of pins is one sentence.
        for environment in self.environments:
            self.expected.environment_digest(environment)
        # How many CPUs the jobs of this run have together: `--cores 16` is no mistake where there are two.
        self.cores = min(engine.cores or 1, machine.usable_cpus())
        # Why this run cannot measure some platforms of the grid, and which it can.
        entries = self.configuration.platforms
        self.platforms = {name: entries[name] for name in self.grid["platforms"]}
        reasons = {name: self._why_remote(needs) for name, needs in self.platforms.items()}
        self.remote = {name: why for name, why in reasons.items() if why}
        self.here = [name for name in self.platforms if name not in self.remote]
        # A platform has a peak, and proofs, of its kind of device.
        self.on_gpu = [name for name, needs in self.platforms.items() if needs["device"] == "gpu"]
        # The cells whose merged rows the catalogues' `needs` call by these words: of training steps, of forward passes,
        # of trainings, and of single operations.
        self.steps = self._feeding("every_cell")
        self.passes = self._feeding("passes")
        self.trainings = self._feeding("trainings")
        self.operations = self._feeding("parts")

    def begin(self) -> None:
        """Says which environments are left out, and locks the folder until this process ends, and the cells with it."""
        for sentence in self.configuration.left_out:
            say_sentence(f"Left out: {sentence}")
        self._held = holding.hold()
        folders.to_present([Path("results"), self.root / "envs", self.root / "config"])

    @cached_property
    def shown_by(self) -> dict[str, str]:
        """Returns, by key, the cell that shows a cell's gradients."""
        return grid.shown_by(self.plan.cells, machine.usable_cpus())

    def runs_on(self, environment: str, platform: str) -> bool:
        """Tells whether an environment runs on a platform."""
        needs = self.configuration.platforms[platform]
        return configuration.fits(self.configuration.entry_of(environment), needs)

    def environments_on(self, wildcards: Any) -> list[str]:
        """Returns the environments of the grid that run on the platform of a rule's wildcards."""
        return [name for name in self.environments if self.runs_on(name, wildcards.platform)]

    def threads_on(self, wildcards: Any) -> list[int]:
        """Returns the thread counts of timed steps on the platform of a rule's wildcards."""
        steps = self.steps.values()
        return sorted({each.threads for each in steps if each.platform == wildcards.platform})

    def cell_of(self, wildcards: Any) -> Cell:
        """Returns the cell of a rule's wildcards. Raises WorkflowError for one that the grid does not have."""
        key = f"{wildcards.platform}/{wildcards.task}/{wildcards.cell}"
        if key not in self.plan.cells:
            raise WorkflowError(
                f"There is no cell {key} in the grid '{self.grid_name}', whose first is "
                f"{next(iter(self.plan.cells), 'none')}."
            )
        return self.plan.cells[key]

    def keys_of(self, artefacts: Iterable[str]) -> dict[str, None]:
        """Returns the keys of the cells of artefacts, each once."""
        return dict.fromkeys(key for name in artefacts for key in self.plan.artefacts.get(name, []))

    def is_at_hand(self, key: str) -> bool:
        """Tells whether a cell's shard is here as the grid asks for it."""
        return Path(shard_path(key)).exists() and not self.current.differing(self.plan.cells[key])

    def stays(self, cell: Cell) -> bool:
        """Tells whether a cell's shard is not measured again, neither for its content nor for `--force`."""
        return self.current.shard(cell) and not self.engine.is_forced(shard_path(cell.key))

    def within_reach(self, folder: str, platforms: Iterable[str]) -> list[str]:
        """Returns the platforms whose machine this run can see, or whose results/<folder>/<platform>.json is here."""
        return [
            name
            for name in dict.fromkeys(platforms)
            if name in self.here or Path(f"results/{folder}/{name}.json").exists()
        ]

    def shards_at_hand(self, keys: Iterable[str]) -> list[str]:
        """Returns the shards of cells, given by their keys.

        Raises WorkflowError for shards that this run can neither find nor measure, or may not measure again.
        """
        keys = list(keys)
        for platform, reason in self.remote.items():
            paths = [shard_path(key) for key in keys if key.startswith(f"{platform}/")]
            if missing := [path for path in paths if not Path(path).exists()]:
                raise WorkflowError(
                    f"{len(missing)} shards of the platform '{platform}' are missing, such as {missing[0]}, and "
                    f"this run cannot measure them: {reason}. Fetch what was measured there with "
                    f"`make merge FROM=<its results folder>`, or leave the platform out of the grid."
                )
        if self.engine.is_main:
            self._refuse_others(keys)
        return list(map(shard_path, keys))

    def _refuse_others(self, keys: Iterable[str]) -> None:
        """Raises WorkflowError for shards of another network, adapter and so on that this run must not measure."""
        others = []
        for key in keys:
            cell = self.plan.cells[key]
            words = self.current.differing(cell)
            if words and (cell.platform in self.remote or not self.current.is_of_here(cell)):
                others.append(footers.Outdated(key, words, footers.row(shard_path(key))))
        advice = (
            "measure them there again with this version and take them with `make merge`. Without them, those that "
            "this machine can measure are measured here: `rm {files}`."
        )
        if others:
            raise WorkflowError(footers.name_outdated(others, f"results/{FOLDER}", advice))

    def _check_folders(self) -> None:
        folders.check(Path("results"))
        if self.engine.is_main and not self.engine.only_tells:
            folders.check_space(holding.FOLDER)
            folders.remove_empty(Path("results"))

    def _why_remote(self, needs: dict[str, Any]) -> str | None:
        """Says why this run cannot measure cells of a platform with this entry; None where it can."""
        if not self.engine.is_main:
            return None
        # Cells go to a cluster where jobs are counted and no host is shared: profiles/default limits the host,
        # profiles/slurm the jobs. Snakemake itself names its executor only after the rules were read.
        if self.engine.counts_jobs:
            return (
                None
                if "cluster" in needs
                else "its entry in the file of platforms has no 'cluster'"
            )
        if "cluster" in needs:
            return "a cluster gives it: run there with --workflow-profile profiles/slurm"
        return placement.lacking(needs)

    def _is_present(self, needs: dict[str, Any]) -> bool:
        return self._why_remote(needs) is None

    def _capability(self, needs: dict[str, Any]) -> float | None:
        """Returns the compute capability of this machine's GPUs; None for a platform of a cluster."""
        is_here = self.engine.is_main and "cluster" not in needs
        return placement.capability(needs) if is_here else None

    def _is_shown(self, artefact: str, cell: Cell) -> bool:
        """Tells whether an artefact shows a run of `named_batches`: it is asked for by name, or the run is here.

        The result's first run must be here too, whose gradients the others rely on.
        """
        needed = {cell, replace(cell, repeat=1)}
        return artefact in self.asked or all(map(self.current.shard, needed))

    def _feeding(self, word: str) -> dict[str, Cell]:
        cells = self.plan.cells.items()
        return {key: cell for key, cell in cells if tasks.TASKS[cell.task].feeds == word}
