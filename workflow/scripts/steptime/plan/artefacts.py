"""Reads which tables and figures there are: the catalogue of each paper, and the project's own."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steptime import tasks

KINDS = Path(__file__).resolve().parents[1] / "artefacts"
OWN = "resources/steptime/catalogue.yaml"
PAPERS = "resources/papers/*/paper.yaml"
# The merged rows that everything about whole trainings is made of, and which cells they hold.
TRAINED = "steptime_trainings"
TRAINED_CELLS = {"networks": "all", "batches": "table", "threads": "table"}


@dataclass(frozen=True)
class Artefact:
    """A table, a figure or both; `owner` is a paper or the project, `file` the catalogue that has its entry."""

    name: str
    owner: str
    file: str
    entry: dict[str, Any]

    @property
    def key(self) -> str:
        """Returns its name within its catalogue."""
        return self.name.removeprefix(f"{self.owner}_")

    @property
    def is_of_paper(self) -> bool:
        """Tells whether it belongs to a paper."""
        return self.file != OWN

    @property
    def made_of(self) -> str:
        """Names the artefact whose cells this one shows: itself, or another one."""
        cells = self.entry.get("cells")
        return cells if isinstance(cells, str) else self.name


def files(root: Path) -> list[str]:
    """Returns the catalogues below `root`: the project's own, then the papers' by name."""
    return [OWN, *sorted(str(path.relative_to(root)) for path in root.glob(PAPERS))]


def artefacts(file: str, catalogue: dict[str, Any]) -> dict[str, Artefact]:
    """Returns the artefacts of a catalogue by the names under which they are asked for."""
    owner = Path(file).parent.name
    return {
        f"{owner}_{name}": Artefact(f"{owner}_{name}", owner, file, entry)
        for name, entry in catalogue["artefacts"].items()
    }


def kinds() -> dict[str, list[str]]:
    """Says what each kind of artefact can make, by the functions of its module, without importing it."""
    functions = {
        path.stem: re.findall(r"^def (table|figure)\(", path.read_text("utf-8"), re.MULTILINE)
        for path in sorted(KINDS.rglob("*.py"))
    }
    return {name: made for name, made in functions.items() if made}


def module_of(kind: str) -> str:
    """Returns the dotted name of a kind's module, in whichever folder it is."""
    (path,) = KINDS.rglob(f"{kind}.py")
    return ".".join(("steptime.artefacts", *path.relative_to(KINDS).with_suffix("").parts))


def selections(known: dict[str, Artefact], networks: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the selection of cells of each artefact that has its own; networks are named with their variants."""
    (trained,) = (name for name, task in tasks.TASKS.items() if task.feeds == "trainings")
    selected: dict[str, dict[str, Any]] = {TRAINED: TRAINED_CELLS | {"task": trained}}
    for name, artefact in known.items():
        cells = artefact.entry.get("cells")
        if isinstance(cells, dict):
            if (chosen := cells["networks"]) != "all":
                of = [each for each, entry in networks.items() if entry.get("variant_of") in chosen]
                chosen = list(dict.fromkeys([*chosen, *of]))
            selected[name] = cells | {"networks": chosen}
    return selected
