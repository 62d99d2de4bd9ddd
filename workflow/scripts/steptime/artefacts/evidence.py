"""What papers are held against: their data, and their times and ours in one shape."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from steptime.artefacts.expressions import PLACE
from steptime.artefacts.inputs import read_printed
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY
from steptime.reading import read_yaml
from steptime.render.frameworks import Frameworks

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
        """The kind of device of each of the paper's platforms."""
        return {
            name: entry["device"] for name, entry in self.catalogue.get("platforms", {}).items()
        }


def read_papers(files: Collection[Path]) -> list[Paper]:
    """The papers whose catalogue is among the files, in the order of their years. Raises InputError."""
    found = [
        Paper(
            path.parent.name,
            read_yaml(path),
            _printed(file for file in files if file.parent == path.parent),
            _findings(path.with_name("findings.yaml"), files),
        )
        for path in files
        if path.name == "paper.yaml"
    ]
    return sorted(found, key=lambda paper: (paper.name[-4:], paper.name))


def _printed(files: Iterable[Path]) -> pd.DataFrame:
    """All printed numbers of a paper, with the name of their `file`; no rows where it has none as data."""
    tables = [
        read_printed(file).assign(file=file.stem) for file in sorted(files) if file.suffix == ".csv"
    ]
    return pd.concat(tables) if tables else pd.DataFrame(columns=PRINTED)


def _findings(path: Path, files: Collection[Path]) -> list[dict[str, Any]]:
    claims: Any = read_yaml(path) if path in files else []
    return claims


def their_times(paper: Paper, frameworks: Frameworks, catalogue: dict[str, Any]) -> pd.DataFrame:
    """The times that a paper prints: PLACE, device, family, `seconds` (NaN for a dash); frameworks are lineages.

    The paper's catalogue names the file under `times`; without it there are none. GPUs have 0 threads.
    """
    rows = paper.printed[paper.printed["file"] == paper.catalogue.get("times")]
    times = pd.DataFrame(
        {
            "network": rows["network"],
            "framework": [frameworks[name].lineage for name in rows["framework"]],
            "platform": rows["platform"],
            "threads": pd.to_numeric(rows["threads"]).fillna(0).astype(int),
            "batch": pd.to_numeric(rows["batch"]).fillna(0).astype(int),
            "device": rows["platform"].map(paper.platforms),
            "seconds": rows["number"],
        }
    )
    return _with_family(times, catalogue)


def our_times(
    measured: list[Measured],
    theirs: pd.DataFrame,
    frameworks: Frameworks,
    catalogue: dict[str, Any],
) -> pd.DataFrame:
    """The times that were measured of the frameworks that a paper has, in the shape of `their_times`.

    Each cell once, of the first platform of each kind of device, without variants; the fastest of a lineage's
    environments and modes stands for it.
    """
    columns = [*IDENTITY, "framework", "seconds"]
    cells = pd.concat(
        [pd.DataFrame(columns=columns), *[found.cells[columns] for found in measured]],
        ignore_index=True,
    )
    cells = cells[cells["variant"] == ""].drop_duplicates(IDENTITY)
    first = cells.groupby("device")["platform"].transform("first")
    cells = cells[cells["platform"] == first].astype({"seconds": float})
    cells["threads"] = cells["threads"].where(cells["device"] == "cpu", 0).astype(int)
    cells["framework"] = [frameworks[name].lineage for name in cells["framework"]]
    cells = cells[cells["framework"].isin(theirs["framework"])]
    return _with_family(
        cells.groupby([*PLACE, "device"], sort=False, as_index=False)["seconds"].min(), catalogue
    )


def _with_family(times: pd.DataFrame, catalogue: dict[str, Any]) -> pd.DataFrame:
    families = {name: entry.get("family", "") for name, entry in catalogue.items()}
    return times.assign(family=times["network"].map(families))
