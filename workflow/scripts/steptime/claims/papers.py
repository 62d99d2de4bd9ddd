"""The papers as data: what each has printed, and what it claims."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from steptime import tasks
from steptime.reading import InputError, read_yaml

# The columns of a paper's CSV files that are read here, with `number` and `file`.
PRINTED = ["row", "column", "network", "framework", "platform", "threads", "batch", "value"]
PRINTED += ["number", "file"]


@dataclass
class Paper:
    """A folder of `resources/papers`: its catalogue, its printed numbers and its findings."""

    name: str
    catalogue: dict[str, Any]
    printed: pd.DataFrame
    findings: list[dict[str, Any]]

    @property
    def platforms(self) -> dict[str, str]:
        """Returns the kind of device of each of the paper's platforms."""
        platforms = self.catalogue.get("platforms", {})
        return {name: entry["device"] for name, entry in platforms.items()}

    @property
    def task(self) -> str:
        return self.catalogue.get("times_of", tasks.USUAL)

    @property
    def networks(self) -> list[str]:
        return list(self.catalogue.get("networks", []))

    @property
    def frameworks(self) -> list[str]:
        timed = self.printed.loc[self.printed["file"] == self.catalogue.get("times"), "framework"]
        return list(dict.fromkeys([*self.catalogue.get("frameworks", []), *timed]))

    @property
    def batches(self) -> dict[str, int]:
        """Returns the mini-batch size of each network for which the paper prints one."""
        rows = self.printed[self.printed["file"] == self.catalogue.get("times")]
        rows = rows[rows["batch"] != ""].drop_duplicates("network")
        return dict(zip(rows["network"], rows["batch"].astype(int), strict=True))

    def quoted(self) -> "list[Paper]":
        """Returns the papers that it quotes without their numbers, so that ours can answer its claims on them."""
        nothing = pd.DataFrame(columns=PRINTED)
        return [
            Paper(name, entry, nothing, [])
            for name, entry in self.catalogue.get("quoted", {}).items()
        ]


def read_papers(files: Collection[Path]) -> list[Paper]:
    """Returns the papers whose catalogue is among the files, in the order of their years. Raises InputError."""
    papers = [
        Paper(
            path.parent.name,
            read_yaml(path),
            _printed(file for file in files if file.parent == path.parent),
            _findings(path.with_name("findings.yaml"), files),
        )
        for path in files
        if path.name == "paper.yaml"
    ]
    return sorted(papers, key=lambda paper: (paper.name[-4:], paper.name))


def _printed(files: Iterable[Path]) -> pd.DataFrame:
    """Returns all printed numbers of a paper, with the name of their `file`; no rows where it has none as data."""
    numbers = sorted(file for file in files if file.suffix == ".csv")
    tables = [read_printed(file).assign(file=file.stem) for file in numbers]
    return pd.concat(tables) if tables else pd.DataFrame(columns=PRINTED)


def _findings(path: Path, files: Collection[Path]) -> list[dict[str, Any]]:
    claims: Any = read_yaml(path) if path in files else []
    return claims


def read_printed(path: Path) -> pd.DataFrame:
    """Returns the printed numbers of one table: all columns as text ('' is empty), and `number`, a float or NaN."""
    try:
        printed = pd.read_csv(path, dtype=str, keep_default_na=False)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return printed.assign(number=pd.to_numeric(printed["value"], errors="coerce"))
