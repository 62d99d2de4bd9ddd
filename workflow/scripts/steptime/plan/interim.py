"""Interim analyses: after which trials a run decides whether there will be more, and how likely each may be wrong.

Who goes on until a difference shows will find one: each analysis is one more chance to be wrong. So each may be wrong
with a share of the whole chance, as large as its share of the trials: Lan and DeMets, "Discrete sequential boundaries
for clinical trials", Biometrika 70, 1983. The shares are added up (Bonferroni), so that the intervals of all analyses
hold together, whatever ended the trials: Jennison and Turnbull, "Interim analyses: the repeated confidence interval
approach", Journal of the Royal Statistical Society B 51, 1989.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steptime.plan.cell import Cell


@dataclass(frozen=True)
class Repeats:
    """Runs that a grid asks of cells: `least`; up to `most` where a pair is not decided, in no more than `minutes`."""

    least: int
    most: int
    minutes: float

    @property
    def planned(self) -> list[int]:
        """Returns after how many trials comparisons are checked: `least`, and each later one; [] where none follows."""
        return list(range(self.least, self.most + 1)) if self.most > self.least else []


def repeats_of(grid: dict[str, Any]) -> Repeats:
    repeats = grid["repeats"]
    return Repeats(**repeats) if isinstance(repeats, dict) else Repeats(repeats, repeats, math.inf)


def chances(planned: Sequence[int]) -> dict[int, float]:
    """Returns each analysis' share of the whole chance to be wrong, by the trial after which it is made."""
    before = [0, *planned][:-1]
    return {
        trial: (trial - last) / planned[-1] for trial, last in zip(planned, before, strict=True)
    }


def is_further(planned: Sequence[int], trial: int) -> bool:
    """Tells whether a trial is one that only an interim analysis asks for."""
    return bool(planned) and trial > planned[0]


def added(files: Iterable[str | Path]) -> list[str]:
    """Returns the keys of the cells that interim analyses have chosen (`merge.repeats`), file by file."""
    return [key for file in files for key in json.loads(Path(file).read_text())["cells"]]


def is_chosen(file: str | Path, minutes: float) -> bool:
    """Tells whether a choice stays with so many minutes: it chose something, or chose nothing with as many minutes."""
    if not Path(file).exists():
        return False
    content = json.loads(Path(file).read_text())
    return bool(content["cells"]) or content["minutes"] >= minutes


def of_artefact(
    keys: Iterable[str], further: Iterable[str], cells: Mapping[str, Cell]
) -> list[str]:
    """Returns the further cells that repeat cells of an artefact; `cells` are all of the plan."""
    own = set(keys)
    return [key for key in further if replace(cells[key], repeat=1).key in own]
