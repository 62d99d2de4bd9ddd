"""Finds what the catalogues of tables and figures (resources/) have for a grid, and what each artefact is made of."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.io import report

from steptime.flow.planned import Planned
from steptime.machine import energy
from steptime.plan import checks, digests, schemas, written
from steptime.plan.artefacts import TRAINED, Artefact, module_of

OUTPUTS = {"table": ("parquet", "csv", "md", "html", "tex"), "figure": ("svg", "png", "csv")}
# What a reader opens of each, for `snakemake --report`.
OPENED = {"table": "html", "figure": "svg"}
# Words whose own input functions say what is missing.
SAY_IT_THEMSELVES = {"cells", "topologies", "popularity"}
# Words behind which something is that was measured here.
RESULTS = {"cells", "every_cell", "trainings", "peaks"}
PRINTED_ONLY, NO_CELLS = "printed numbers only", "no results in this grid"
ONE_SIZE = "one mini-batch in this grid, which is no line"
NO_MACHINE, NO_IMAGES = "no machine within reach", "data set not configured"
NO_TOPOLOGY = (
    "No machine of this grid is within reach, and no results/topology/<platform>.json was fetched: make the figure "
    "on a machine that measured, or fetch its results with `make merge FROM=<its results folder>`."
)
NO_POPULARITY = (
    "No file of how often a term was searched for is named: name one under 'popularity' in "
    "config/config.yaml."
)

# Files, or the function of a rule's input that says why nobody has them.
Files = list[str] | Callable[[Any], Any]


def merged(names: Iterable[str]) -> list[str]:
    """Returns the files of merged rows of artefacts."""
    return [f"results/merged/{name}.parquet" for name in names]


def refuse(words: str) -> Callable[[Any], Any]:
    """Returns an input function that says why its files cannot be had."""

    def refused(wildcards: Any) -> Any:
        raise WorkflowError(words)

    return refused


class Catalogue:
    """Every artefact, as the grid of a run has it."""

    def __init__(self, planned: Planned) -> None:
        self._planned, self._configuration = planned, planned.configuration
        self.entries: dict[str, Artefact] = planned.configuration.catalogue
        self._keys = planned.plan.artefacts
        # A run ends with the answer of the first of them that it makes.
        self.times = [each for each in self.entries.values() if each.entry["kind"] == "times"]
        # The proofs of every network in every environment and mode, and on as many devices, of which the grid has
        # cells, and the proofs that it asks for besides.
        cells = [*planned.steps.values(), *planned.trainings.values()]
        self.proven = dict.fromkeys([*(cell.proof for cell in cells), *planned.plan.proven])
        platforms = [cell.platform for cell in planned.steps.values()]
        self.peaks = planned.within_reach("peaks", platforms)
        self.topologies = planned.within_reach("topology", platforms)
        # The cells of artefacts that are made of timed steps.
        self.of_steps = {
            name: frozenset(keys) for name, keys in self._keys.items() if keys[0] in planned.steps
        }
        self.every_cell = self._widest()
        # Merged rows of networks in use, and of single operations of a step.
        self.passes, self.parts = (
            [name for name, keys in self._keys.items() if keys[0] in cells]
            for cells in (planned.passes, planned.operations)
        )
        # The environments and modes that train.
        self._trainers = {f"{each.environment}.{each.mode}" for each in planned.trainings.values()}
        papers = planned.root.glob("resources/papers/*/*")
        self.paper_files = sorted(str(path.relative_to(planned.root)) for path in papers)
        self.words = {
            "frameworks": ["resources/papers/frameworks.yaml"],
            "networks": ["config/networks.yaml", *self._configuration.network_files],
        }
        self._lacking = self._what_may_lack()
        self.file_digest, self._words_digest = (
            cache(self._file_digest),
            cache(self._digest_of_words),
        )
        self.kind_digest = cache(self._kind_digest)
        # What `rule all` asks for.
        self.made = [each for each in self.entries.values() if not self.why_left_out(each)]

    def lacks(self, artefact: Artefact, words: Iterable[str] | None = None) -> str:
        """Says why this grid lacks something that an artefact needs, or that `words` name; '' where it has all."""
        words = artefact.entry["needs"] if words is None else words
        known = (self._lacking[word] for word in words if word in self._lacking)
        return next((why for why, has in known if not has(artefact)), "")

    def is_printed_only(self, artefact: Artefact) -> bool:
        """Tells whether an artefact would show what a paper printed, and nothing of ours."""
        lacking = self.lacks(artefact, artefact.entry.get("joins", []))
        return bool(lacking) and not RESULTS & {*artefact.entry["needs"]}

    def why_left_out(self, artefact: Artefact) -> str:
        """Says why `rule all` does not make an artefact; '' where it does. Printed figures are made by name."""
        if lacking := self.lacks(artefact):
            return lacking
        if "table" not in artefact.entry["makes"] and self.is_printed_only(artefact):
            return PRINTED_ONLY
        return ONE_SIZE if self._has_one_size(artefact) else ""

    def inputs_of(self, artefact: Artefact) -> dict[str, Files]:
        """Returns the files of results/ that an artefact is made of, by the words of its entry."""
        needs = artefact.entry["needs"]
        if why := self.lacks(artefact, [word for word in needs if word not in SAY_IT_THEMSELVES]):
            why = "" if why == NO_CELLS else why
            words = checks.nothing_to_show(self._configuration, artefact, why)
            return {"cells": refuse(words)}
        joined = [
            word for word in artefact.entry.get("joins", []) if not self.lacks(artefact, [word])
        ]
        files = {word: self._files(artefact, word) for word in [*needs, *joined]}
        return {word: paths for word, paths in files.items() if paths is not None}

    def outputs_of(self, artefact: Artefact) -> dict[str, str]:
        """Returns the files of an artefact; the one that a reader opens is marked for Snakemake's own report."""
        files = {}
        for part in artefact.entry["makes"]:
            labels = {"name": artefact.name, "kind": part, "what": artefact.entry["says"]}
            caption = str(self._planned.root / f"workflow/report/{part}.rst")
            for ending in OUTPUTS[part]:
                file = f"results/{part}s/{artefact.name}.{ending}"
                if ending == OPENED[part]:
                    file = report(file, caption=caption, category=artefact.owner, labels=labels)
                files[f"{part}_{ending}"] = file
        return files

    def plain_outputs(self, artefacts: Iterable[Artefact]) -> list[str]:
        """Returns their paths without the marks, by which Snakemake's report would name another rule as their maker."""
        return [str(file) for each in artefacts for file in self.outputs_of(each).values()]

    def facts_of(self, artefact: Artefact) -> str:
        """Returns all that a program must know of an artefact besides its files, as JSON."""
        needs = artefact.entry["needs"]
        facts: dict[str, Any] = {}
        if "owners" in needs:
            framework_of = self._configuration.framework_of
            facts["owners"] = {name: framework_of(name) for name in self._planned.environments}
        if "grids" in needs:
            facts["grids"] = self._planned.grid_name
        if "targets" in needs:
            targets = self._targets_of_papers()
            facts["targets"] = {"targets": targets, "grid": self._planned.grid_name}
        job = {"artefact": artefact.name, "facts": facts, "data": self._data_of(artefact)}
        return json.dumps(job, sort_keys=True)

    def data_digest(self, artefact: Artefact) -> str:
        """Returns the digest of what an artefact reads of the project's own files."""
        data = self._data_of(artefact)
        files = [path for word, paths in data.items() if word != "catalogue" for path in paths]
        own = self._words_digest(artefact.file, artefact.key)
        return digests.digest([own, *map(self.file_digest, files)])

    def report_job(self, wildcards: Any) -> str:
        """Returns all that decides the report besides numbers, as JSON: the grid's policy, artefacts and files."""
        artefacts = []
        for name, artefact in self.entries.items():
            why = self.why_left_out(artefact)
            artefacts.append(
                {
                    "name": name,
                    "about": artefact.entry["says"],
                    "paper": artefact.owner if artefact.is_of_paper else "",
                    "kind": artefact.entry["kind"],
                    "files": self.plain_outputs([artefact]),
                    "missing": f"{why}." if why else "",
                }
            )
        policy = {name: self._planned.grid.get(name) for name in ("sampling", "limits")}
        return json.dumps({"grid": self._planned.grid_name, **policy, "artefacts": artefacts})

    def report_digest(self, wildcards: Any) -> str:
        """Returns the digest of what the report reads of the project's own files."""
        words = [path for paths in self.words.values() for path in paths]
        return digests.digest(list(map(self.file_digest, [*self.paper_files, *words])))

    def _widest(self) -> list[str]:
        """Returns artefacts that together have every timed step, without those whose cells another one has."""
        firsts = {keys: name for name, keys in reversed(self.of_steps.items())}
        widest = [keys for keys in firsts if not any(keys < other for other in firsts)]
        of_steps = self.of_steps.items()
        return [name for name, keys in of_steps if keys in widest and firsts[keys] == name]

    def _trained_for(self, entry: Mapping[str, Any]) -> int:
        """Counts the trainings on one device that an entry shows: of its networks or variants, on its device."""

        def shows(training: Any) -> bool:
            variant_of = self._configuration.networks[training.network].get("variant_of")
            names = {training.network, variant_of}
            is_of_device = entry.get("device", training.device) == training.device
            return is_of_device and bool(names & {*entry.get("networks", names)})

        trainings = self._planned.trainings.values()
        return sum(shows(training) for training in trainings if training.devices == 1)

    def _has_one_size(self, artefact: Artefact) -> bool:
        """Tells whether a figure over mini-batches would be a dot."""
        cells = [self._planned.plan.cells[key] for key in self._keys.get(artefact.made_of, [])]
        return artefact.entry["kind"] == "sweep" and len({cell.batch for cell in cells}) == 1

    def _what_may_lack(self) -> dict[str, tuple[str, Callable[[Artefact], Any]]]:
        """Returns, by words of entries, why the grid may lack it, and a test whether an artefact has it."""
        planned, configuration, steps = self._planned, self._configuration, self._planned.steps
        counter = energy.Counter()
        # Where each energy would be counted is here, and no GPU: a platform elsewhere may have what this machine lacks.
        counted_here = {*planned.platforms} <= {*planned.here} - {*planned.on_gpu}
        frameworks = {*map(configuration.framework_of, planned.environments)}
        return {
            "cells": (NO_CELLS, lambda artefact: artefact.made_of in self._keys),
            "every_cell": (NO_CELLS, lambda artefact: steps),
            "peaks": (NO_CELLS, lambda artefact: steps),
            # A grid that times nothing looks at no machine.
            "topologies": (NO_MACHINE if steps else NO_CELLS, lambda artefact: self.topologies),
            "trainings": (NO_CELLS, lambda artefact: self._trained_for(artefact.entry)),
            "images": (
                NO_IMAGES,
                lambda artefact: configuration.dataset_of(artefact.entry["images"]),
            ),
            "parts": (NO_CELLS, lambda artefact: self.parts),
            "passes": (NO_CELLS, lambda artefact: self.passes),
            "pairs": (
                "nothing trained both with what is above it and without",
                lambda artefact: any(
                    {*pair} <= self._trainers for pair in artefact.entry["pairs"].items()
                ),
            ),
            "variants": (
                "nothing that the authors' scripts trained",
                lambda artefact: {*artefact.entry["variants"]} & {*planned.grid["networks"]},
            ),
            "counters": (
                counter.state,
                lambda artefact: not (steps and counted_here) or counter.is_readable,
            ),
            "popularity": ("file not named", lambda artefact: configuration.popularity),
            "versions": (
                "no framework in two versions",
                lambda artefact: len(planned.environments) > len(frameworks),
            ),
        }

    def _files(self, artefact: Artefact, word: str) -> Files | None:
        """Returns the files of results/ behind a word of `needs` or `joins`; None for a word without any."""
        results: dict[str, Callable[[], Files]] = {
            "cells": lambda: merged([artefact.made_of]),
            "every_cell": lambda: merged(self.every_cell),
            "verdicts": lambda: [
                f"results/tables/{name}.parquet"
                for name, each in self.entries.items()
                if each.entry["kind"] == "verdict"
            ],
            "proofs": lambda: [f"results/proofs/{name}.details.json" for name in self.proven],
            "metadata": lambda: [
                f"results/metadata/{name}.json" for name in self._planned.environments
            ],
            "peaks": lambda: [f"results/peaks/{name}.json" for name in self.peaks],
            "topologies": lambda: (
                [f"results/topology/{name}.json" for name in self.topologies] or refuse(NO_TOPOLOGY)
            ),
            "trainings": lambda: merged([TRAINED]),
            "parts": lambda: merged(self.parts),
            "passes": lambda: merged(self.passes),
            "grids": lambda: written.of_others(self._planned.grid_name),
            "popularity": lambda: (
                [self._configuration.popularity]
                if self._configuration.popularity
                else refuse(NO_POPULARITY)
            ),
            "images": lambda: [
                f"results/datasets/{self._configuration.dataset_of(artefact.entry['images'])}/train.npz"
            ],
        }
        return results[word]() if word in results else None

    def _data_of(self, artefact: Artefact) -> dict[str, list[str]]:
        """Returns the project's own files of which an artefact is made, by the words of its entry.

        Their paths are relative to the project: a program finds them wherever it runs.
        """
        printed = artefact.entry.get("printed", artefact.key)
        data = {
            "printed": [str(Path(artefact.file).with_name(f"{printed}.csv"))],
            "papers": self.paper_files,
            "releases": ["resources/steptime/releases.yaml"],
        }
        own = {word: data[word] for word in artefact.entry["needs"] if word in data}
        return own | self.words | {"catalogue": [artefact.file]}

    def _file_digest(self, path: str) -> str:
        """Returns the digest of one of the project's own files as it is parsed: comments in YAML do not count."""
        file = self._planned.root / path
        if not file.is_file():
            raise WorkflowError(f"There is no file {path}, which an artefact needs: write it.")
        text = file.read_text(encoding="utf-8")
        return digests.digest(schemas.parse(text) if file.suffix == ".yaml" else text)

    def _digest_of_words(self, file: str, key: str) -> str:
        """Returns the digest of a catalogue with only one of its entries."""
        catalogue = schemas.parse((self._planned.root / file).read_text(encoding="utf-8"))
        return digests.digest(catalogue | {"artefacts": catalogue["artefacts"][key]})

    def _kind_digest(self, kind: str) -> str:
        """Returns the digest of the code that makes artefacts of a kind."""
        return digests.program_digest("steptime.artefacts.make", module_of(kind))

    def _targets_of_papers(self) -> dict[str, dict[str, Any]]:
        """Returns the papers' artefacts by name, each with its state and the number of its cells in the grid."""
        targets = {}
        for name, artefact in self.entries.items():
            if artefact.is_of_paper:
                words = {*artefact.entry["needs"], *artefact.entry.get("joins", [])}
                cells = len(self._keys.get(artefact.made_of, [])) if "cells" in words else 0
                cells += self._trained_for(artefact.entry) if "trainings" in words else 0
                printed = PRINTED_ONLY if self.is_printed_only(artefact) else "made"
                targets[name] = {"state": self.lacks(artefact) or printed, "cells": cells}
        return targets
