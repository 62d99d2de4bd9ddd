"""What an artefact is made from, by the words of its entry in a catalogue, and how it is written."""

import importlib
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from steptime import project
from steptime.cells import checked
from steptime.claims.papers import read_printed
from steptime.merge import others, trainings
from steptime.merge.measured import Measured, read_measured
from steptime.merge.others import Grid
from steptime.merge.trainings import Trained
from steptime.networks.written import merged
from steptime.plan import written
from steptime.plan.artefacts import module_of
from steptime.reading import InputError, read_json, read_yaml
from steptime.render import tables
from steptime.render.frameworks import Frameworks

# Words whose files are the project's own.
OWN = ("catalogue", "frameworks", "networks", "printed", "papers", "releases")


class Inputs:
    """What an artefact may read; a file is read when it is first asked for."""

    def __init__(self, name: str, files: dict[str, list[str]], facts: dict[str, Any]) -> None:
        """`files` are paths by the words of `needs` and `joins`, `facts` what no file holds."""
        self.name = name
        self.facts = facts
        self._files = files

    def paths(self, word: str) -> list[Path]:
        """Returns the files behind a word of the entry's needs. Raises InputError where the entry lacks it."""
        if word not in self._files:
            raise InputError(
                f"{self.name} is made of '{word}': write it into 'needs' of its entry in "
                f"{self._files['catalogue'][0]}."
            )
        return [project.path(path) if word in OWN else Path(path) for path in self._files[word]]

    def has(self, word: str) -> bool:
        """Tells whether there is anything behind a word of the entry's needs or joins."""
        return bool(self._files.get(word))

    @cached_property
    def catalogue(self) -> dict[str, Any]:
        """Reads the catalogue of the artefact's entry; that of a paper is `paper.yaml`."""
        return read_yaml(self.paths("catalogue")[0])

    @property
    def key(self) -> str:
        return self.name.removeprefix(f"{self.paths('catalogue')[0].parent.name}_")

    @property
    def entry(self) -> dict[str, Any]:
        return self.catalogue["artefacts"][self.key]

    @cached_property
    def measured(self) -> Measured:
        """Reads what was measured here of the artefact's cells; nothing where the grid has none and they only join."""
        joins = "cells" in self.entry.get("joins", [])
        if joins and not self.has("cells"):
            return Measured.nothing()
        return read_measured(self.paths("cells")[0])

    @cached_property
    def every_measured(self) -> list[Measured]:
        """Reads what was measured here of all cells, one for each file of merged rows."""
        return [read_measured(path) for path in self.paths("every_cell")]

    @cached_property
    def trained(self) -> Trained:
        """Reads the trainings of the grid; nothing where it has none."""
        has_trainings = self.has("trainings")
        return trainings.read(self.paths("trainings")[0]) if has_trainings else Trained.nothing()

    @cached_property
    def parts(self) -> list[Measured]:
        """Reads what was measured here of single operations, one for each file of merged rows, if any."""
        return [read_measured(path) for path in self.paths("parts")] if self.has("parts") else []

    @cached_property
    def passes(self) -> list[Measured]:
        """Reads what was measured here of forward passes, one for each file of merged rows, if any."""
        return [read_measured(path) for path in self.paths("passes")] if self.has("passes") else []

    @cached_property
    def grids(self) -> list[Grid]:
        """Reads what was measured here for each grid: for this one, then for other runs whose plans are here."""
        own = Grid(self.facts["grids"], self.every_measured, self.parts, self.trained)
        plans = [path for path in self.paths("grids") if path.parent.name == written.FOLDER]
        return [own, *map(others.read, plans)]

    @cached_property
    def proofs(self) -> list[dict[str, Any]]:
        """Reads the details of proofs that frameworks train the same networks, as `prove.network` wrote them."""
        return [read_json(path) for path in self.paths("proofs")]

    @cached_property
    def packages(self) -> list[dict[str, Any]]:
        """Reads what the frameworks' packages say of themselves, one entry for each environment."""
        return [read_json(path) for path in self.paths("metadata")]

    @cached_property
    def peaks(self) -> dict[str, dict[str, Any]]:
        """Reads each platform's peak, as `machine.peak` measured it."""
        return {path.stem: checked.peak(path) for path in self.paths("peaks")}

    @cached_property
    def topologies(self) -> dict[str, dict[str, Any]]:
        """Reads how each platform's machine is built, as `machine.topology` wrote it."""
        return {path.stem: read_json(path) for path in self.paths("topologies")}

    @cached_property
    def printed(self) -> pd.DataFrame:
        """Reads what the paper printed; no rows where the entry does not ask for it."""
        if not self.has("printed"):
            return pd.DataFrame(columns=["network", "framework", "platform", "number"])
        printed = read_printed(self.paths("printed")[0])
        self._check_places(printed)
        return printed

    def _check_places(self, printed: pd.DataFrame) -> None:
        """Raises InputError where a time is of a machine or network that neither the paper nor the project knows."""
        times = printed[printed["unit"] == "s"]
        known = {
            "platform": (self.catalogue.get("platforms", {}), "platforms"),
            "network": (self.networks | self.catalogue.get("labels", {}), "labels"),
        }
        for column, (names, key) in known.items():
            unknown = [name for name in times[column].unique() if name and name not in names]
            if unknown:
                raise InputError(
                    f"{self._files['printed'][0]} has times of the {column} '{unknown[0]}', which is "
                    f"unknown: correct it, or add it to '{key}' of {self._files['catalogue'][0]}."
                )

    @cached_property
    def releases(self) -> dict[str, str]:
        """Returns the day on which the version of each environment was released, as 2020-12-14, where it is known."""
        return {name: str(day) for name, day in read_yaml(self.paths("releases")[0]).items()}

    @cached_property
    def frameworks(self) -> Frameworks:
        return Frameworks(self.paths("frameworks")[0])

    @cached_property
    def networks(self) -> dict[str, Any]:
        return merged(self.paths("networks"))

    @cached_property
    def page(self) -> tables.Page:
        """Returns the words around a table, with its sources as the last note; kinds put their own before them."""
        short = self.catalogue["short"]
        title, sources = self.entry["title"], self.entry.get("sources", [])
        notes = list(self.catalogue.get("readings", {}).get(self.key, []))
        if sources:
            title = f"{title} ({sources[0]})"
            places = f"{self.catalogue['citation'].strip()}: {', '.join(sources)}"
            printed = self._files.get("printed", [""])[0]
            notes.append(f"Printed numbers: {places}; as data in {printed}." if printed else places)
        return tables.Page(self.name, title, self.entry.get("caption", ""), short, notes=notes)

    @cached_property
    def table(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Returns the tidy rows and the layout of the table, whether it is written or not; fills `page`."""
        return self._kind.table(self)

    @cached_property
    def _kind(self) -> Any:
        return importlib.import_module(module_of(self.entry["kind"]))

    def write(self) -> None:
        """Writes what the entry says is to be made: results/tables/<name>.* and results/figures/<name>.*."""
        if "table" in self.entry["makes"]:
            self.write_table(Path("results"))
        if "figure" in self.entry["makes"]:
            # Only where it is needed: what draws takes half a second to load.
            from steptime.render import figures

            figures.write(Path("results/figures") / self.name, *self._kind.figure(self))

    def write_table(self, results: Path) -> None:
        """Writes the table alone, in every form: results/tables/<name>.*."""
        types = getattr(self._kind, "TYPES", {})
        tables.write(results / "tables" / self.name, *self.table, self.page, types)
