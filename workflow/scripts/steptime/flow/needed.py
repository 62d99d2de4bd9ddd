"""Inputs of jobs, as paths; what decides jobs; and which of their files are made again."""

import json
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient

from steptime import tasks
from steptime.flow.catalogue import Catalogue
from steptime.flow.planned import Planned
from steptime.plain import file_name
from steptime.plan import checks, interim
from steptime.plan.cell import (
    Cell,
    images_of,
    manifest_path,
    precision_of,
    proof_path,
    reference_path,
    shard_path,
)
from steptime.plan.grid import COMPARED

# The rules of whose files `cells.current` alone says whether they stay.
DECIDED = (
    "build_environment",
    "prove_network",
    "prove_network_on_gpu",
    "compute_reference",
    "measure_cell",
)


class Needed:
    """The input functions and parameters of the rules, and what is made again. Wildcards are those of the rules."""

    def __init__(self, planned: Planned, catalogue: Catalogue) -> None:
        self._planned, self._catalogue = planned, catalogue
        self._engine, self._plan = planned.engine, planned.plan
        self._analyses: list[int] | None = None

    def decide(self) -> None:
        """Makes Snakemake make again what does not stay, and nothing that stays, whatever the times of files."""
        made_again: dict[str, Callable[[Any], Iterable[str]]] = {
            "build_environment": self._environment_again,
            "prove_network": self._proof_again,
            "prove_network_on_gpu": self._proof_again,
            "compute_reference": self._reference_again,
            "measure_cell": self._cell_again,
            # Its sides may be anywhere, and are no inputs.
            "compare": lambda wildcards: [f"results/compare/{self.comparison}.md"],
        }
        if self._plan.looks:
            made_again["choose_further"] = self._choice_again
        self._engine.decide(made_again, *DECIDED)

    def job_of_cell(self, wildcards: Any) -> str:
        """Returns all that decides a cell, as JSON."""
        return _as_json(self._planned.expected.job_of(self._planned.cell_of(wildcards)))

    def job_of_proof(self, wildcards: Any) -> str:
        """Returns all that decides a proof, as JSON."""
        return _as_json(self._planned.expected.proving_job(*wildcards))

    def job_of_reference(self, wildcards: Any) -> str:
        """Returns all that decides the reference of a network, mini-batch and precision, as JSON."""
        expected = self._planned.expected
        digests_of = {
            "network_digest": expected.network_digest(wildcards.network),
            "reference_digest": expected.reference_digest(wildcards.network),
        }
        return _as_json(_reference_axes(wildcards) | digests_of)

    def by_cell(self, wildcards: Any) -> dict[str, Any]:
        """Returns a cell's inputs. A shard that stays counts as newer, except than images that are made again."""
        cell = self._planned.cell_of(wildcards)
        # One function for all of them: to call one takes Snakemake longer than all that it does here.
        judged = ancient if self._planned.stays(cell) else str
        fed = ancient if self._planned.current.is_older_than_its_images(cell) else str
        return {
            "manifest": judged(manifest_path(cell.environment)),
            "proof": judged(proof_path(cell.proof)),
            "images": list(map(fed, images_of(cell.dataset))),
            "reference": list(map(judged, self._reference_of(cell))),
        }

    def by_proof(self, wildcards: Any) -> str:
        """Returns a proof's manifest, by environment, mode, network and mark; it is older than a proof that stays."""
        stays = self._planned.current.proof(*wildcards)
        return (ancient if stays else str)(manifest_path(wildcards.environment))

    def by_artefact(self, wildcards: Any) -> list[str]:
        """Returns the shards of which an artefact is made."""
        keys = self._plan.artefacts.get(wildcards.artefact)
        if keys is None:
            entries = self._catalogue.entries.values()
            names = [each.name for each in entries if each.made_of == wildcards.artefact]
            asked = [name for name in self._engine.asked_targets() if name in names]
            words = checks.lacking(self._planned.configuration, wildcards.artefact, *asked[:1])
            raise WorkflowError(words)
        further = interim.added(self.added_to(wildcards))
        return self._planned.shards_at_hand(
            keys + interim.of_artefact(keys, further, self._plan.cells)
        )

    def added_to(self, wildcards: Any) -> list[str]:
        """Returns the files of the interim analyses that may have chosen further cells of an artefact."""
        first = self._plan.cells[self._plan.artefacts[wildcards.artefact][0]]
        return self.chosen_until() if tasks.TASKS[first.task].is_compared else []

    def foundations(self, wildcards: Any) -> list[str]:
        """Returns all with which an artefact's cells are measured: a proof that is made again may refuse an `ok` row.

        Otherwise Snakemake would not look at what follows from such a cell, since the cell need not be made again.
        """
        cells = map(self._plan.cells.get, self._planned.keys_of([wildcards.artefact]))
        return list(
            dict.fromkeys(file for cell in cells if cell for file in self._measured_with(cell))
        )

    def showing_shards(self, wildcards: Any) -> list[str]:
        """Returns the shards of cells that show the gradients of an artefact's cells, and are not among them."""
        keys = self._planned.keys_of([wildcards.artefact])
        shown_by = self._planned.shown_by
        shown = {shown_by[key] for key in keys if key in shown_by} - keys.keys()
        here, cells = self._planned.here, self._plan.cells
        return [shard_path(key) for key in sorted(shown) if cells[key].platform in here]

    def compared_shards(self, wildcards: Any) -> list[str]:
        """Returns the shards of the results that this run compares, and of those here as the grid asks for them."""
        steps, further = self._planned.steps, interim.added(self.chosen_until())
        chosen = {*self._planned.keys_of(self._compared_artefacts()), *further}
        chosen |= set(filter(self._planned.is_at_hand, steps))
        return self._planned.shards_at_hand([key for key in steps if key in chosen])

    def compared_proofs(self, wildcards: Any) -> list[str]:
        """Returns the proofs of the results that this run is asked for: a stricter proof may refuse the fastest."""
        steps, keys = self._planned.steps, self._planned.keys_of(self._compared_artefacts())
        cells = [steps[key] for key in keys if key in steps]
        here = [cell for cell in cells if cell.platform in self._planned.here]
        return list(dict.fromkeys(proof_path(cell.proof) for cell in here))

    def compared_before(self, wildcards: Any) -> list[str]:
        """Returns the shards that an analysis needs: all that this run compares, of the trials before its own."""
        keys = self._planned.keys_of([COMPARED, *self._compared_artefacts()])
        further = interim.added(self.chosen_before(wildcards))
        return self._planned.shards_at_hand([*keys, *further])

    def chosen_before(self, wildcards: Any) -> list[str]:
        """Returns the files of the analyses before this one."""
        return self.chosen_until(int(wildcards.trial) - 1)

    def chosen_until(self, trial: float = math.inf) -> list[str]:
        """Returns the files of analyses' choices until `trial`; raises Snakemake's exception while one is not made.

        The first analysis chooses nothing: it comes after the trials that every cell has. After an analysis that
        chooses nothing, no other follows.
        """
        made: list[str] = []
        for each in self.analyses():
            if each == self._plan.looks[0]:
                continue
            if each > trial or (made and not interim.added(made[-1:])):
                break
            made.append(self._engine.checkpoint("choose_further", trial=each))
        return made

    def analyses(self) -> list[int]:
        """Returns after how many trials this run checks the comparisons.

        An artefact that is asked for by name gets further runs where the user gives it minutes, and all that is
        compared is asked for with it or is here. Otherwise, the analyses are those whose choices are here.
        """
        if self._analyses is None:
            self._analyses = self._analyses_of_run()
        return self._analyses

    def shared_by(self, wildcards: Any) -> list[str]:
        """Returns the shards of one platform that go into a store."""
        cells, chosen = self._plan.cells, interim.added(self.chosen_until())
        keys = [*self._planned.keys_of(self._plan.artefacts), *chosen]
        return [
            shard_path(key)
            for key in dict.fromkeys(keys)
            if cells[key].platform == wildcards.platform
        ]

    @property
    def sides(self) -> list[str]:
        """Returns the sides of the target `compare`, one or two, that the configuration names."""
        config = self._planned.config
        return [config[side] for side in ("one", "other") if side in config]

    @property
    def comparison(self) -> str:
        """Returns the name of a comparison's files; '' unless the configuration names both sides."""
        return file_name(*self.sides) if len(self.sides) == 2 else ""

    def by_comparison(self, wildcards: Any) -> list[str]:
        """Returns no files, since a side may be anywhere; ends the run where a side is not named."""
        if not self.comparison:
            config = self._planned.config
            lacks = " and ".join(f"'{side}'" for side in ("one", "other") if side not in config)
            # Not a WorkflowError: it would wrap the sentence in lines about a rule.
            sys.exit(
                f"`compare` lacks {lacks}: write --config one=torch-1.4 other=torch -- compare."
            )
        return []

    def _environment_again(self, wildcards: Any) -> list[str]:
        name, current = wildcards.environment, self._planned.current
        # Asking for an environment by name means that its fault was repaired; `make environments` asks by its file.
        is_asked = {"environments", manifest_path(name)} & self._engine.asked_targets()
        stays = current.manifest(name) and (current.is_installed(name) or not is_asked)
        return [] if stays else _lying(manifest_path(name))

    def _reference_again(self, wildcards: Any) -> list[str]:
        axes = _reference_axes(wildcards)
        stays = self._planned.current.reference(*axes.values())
        return [] if stays else _lying(reference_path(axes))

    def _proof_again(self, wildcards: Any) -> list[str]:
        path = proof_path("{}.{}-{}{}".format(*wildcards))
        stays = self._planned.current.proof(*wildcards)
        return [] if stays else [*_lying(path), *self._lacking(wildcards.environment)]

    def _cell_again(self, wildcards: Any) -> list[str]:
        cell = self._planned.cell_of(wildcards)
        stays = self._planned.current.shard(cell)
        return [] if stays else [*_lying(shard_path(cell.key)), *self._lacking(cell.environment)]

    def _choice_again(self, wildcards: Any) -> list[str]:
        # Snakemake leaves out what is not there where all behind it is newer than the rest.
        path = f"results/further/{self._planned.grid_name}-{wildcards.trial}.json"
        is_due = self.analyses() == self._plan.looks
        stays = interim.is_chosen(path, self._planned.repeats.minutes)
        return [path] if is_due and not stays else []

    def _lacking(self, environment: str) -> list[str]:
        """Returns the manifest of an environment that was made, but is no longer as it was made; else []."""
        lacks = self._planned.current.lacks_environment(environment)
        return [manifest_path(environment)] if lacks else []

    def _reference_of(self, cell: Cell) -> list[str]:
        """Returns the reference of a cell's steps; [] where it is gone and the cell's row stays."""
        if not self._planned.expected.has_reference(cell):
            return []
        path = reference_path(cell.facts())
        return [path] if Path(path).exists() or not self._planned.stays(cell) else []

    def _measured_with(self, cell: Cell) -> list[str]:
        """Returns the files with which a cell is measured and compared; of another machine's cell, its reference."""
        if cell.platform in self._planned.remote:
            return self._reference_of(cell)
        own = [manifest_path(cell.environment), proof_path(cell.proof)]
        return [*own, *images_of(cell.dataset), *self._reference_of(cell)]

    def _compared_artefacts(self) -> list[str]:
        """Returns the artefacts whose results this run compares: those that are asked for, or all with timed steps."""
        targets = {Path(target).stem for target in self._engine.asked_targets()}
        entries = self._catalogue.entries.values()
        artefacts = [each for each in entries if {each.name, f"make_{each.owner}"} & targets]
        known = {name for each in artefacts for name in (each.name, f"make_{each.owner}")}
        words = {word for each in artefacts for word in self._catalogue.inputs_of(each)}
        if not artefacts or not targets <= known or "every_cell" in words:
            return list(self._catalogue.of_steps)
        return [each.made_of for each in artefacts]

    def _analyses_of_run(self) -> list[int]:
        looks = self._plan.looks
        if not looks:
            return []
        compared = self._planned.keys_of(self._compared_artefacts())
        missing = self._planned.keys_of([COMPARED]).keys() - compared.keys()
        has_minutes = "minutes" in self._planned.config or not self._engine.asked_targets()
        if has_minutes and all(map(self._planned.is_at_hand, missing)):
            return looks
        folder, name = Path("results/further"), self._planned.grid_name
        return [each for each in looks if (folder / f"{name}-{each}.json").exists()]


def _lying(path: str) -> list[str]:
    """Returns a file that is here; a missing one is made by Snakemake where something needs it."""
    return [path] if Path(path).exists() else []


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True)


def _reference_axes(wildcards: Any) -> dict[str, Any]:
    """Returns the axes of a reference: network, batch and precision."""
    axes = {"network": wildcards.network, "batch": int(wildcards.batch)}
    return axes | {"precision": precision_of(wildcards.rounded)}
