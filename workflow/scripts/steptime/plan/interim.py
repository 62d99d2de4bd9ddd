"""Interim analyses: after which trials a run decides whether there shall be more, and with what chance each may err.

Whoever goes on until a difference shows, finds one: each analysis is a chance more to err. So it may err with a share
of the whole chance, as large as its share of the trials: Lan and DeMets, "Discrete sequential boundaries for clinical
trials", Biometrika 70, 1983. The shares are added up (Bonferroni), so that the intervals of all analyses hold together,
whatever it was that ended the trials: Jennison and Turnbull, "Interim analyses: the repeated confidence interval
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
    """How many processes a grid asks of its cells: `least` of each, and up to `most` where a comparison is not decided,
    while the run has taken no more than `minutes`.
    """

    least: int
    most: int
    minutes: float

    @property
    def planned(self) -> list[int]:
        """After how many trials comparisons are checked: `least` and each one behind it; [] where none follows."""
        return list(range(self.least, self.most + 1)) if self.most > self.least else []


def repeats_of(grid: dict[str, Any]) -> Repeats:
    repeats = grid["repeats"]
    return Repeats(**repeats) if isinstance(repeats, dict) else Repeats(repeats, repeats, math.inf)


def chances(planned: Sequence[int]) -> dict[int, float]:
    """Returns the share of the whole chance by which each analysis may err, by the trial after which it is made."""
    before = [0, *planned][:-1]
    return {
        trial: (trial - last) / planned[-1] for trial, last in zip(planned, before, strict=True)
    }


def is_further(planned: Sequence[int], trial: int) -> bool:
    """Tells whether a trial is one that an interim analysis asks for."""
    return bool(planned) and trial > planned[0]


def added(files: Iterable[str | Path]) -> list[str]:
    """The keys of the cells that interim analyses have chosen (`merge.repeats`), in the order of their files."""
    return [key for file in files for key in json.loads(Path(file).read_text())["cells"]]


def is_chosen(file: str | Path, minutes: float) -> bool:
    """Whether a choice is there that more minutes would not change: that some is measured, or nothing in as many."""
    if not Path(file).exists():
        return False
    content = json.loads(Path(file).read_text())
    return bool(content["cells"]) or content["minutes"] >= minutes


def of_artefact(
    keys: Iterable[str], further: Iterable[str], cells: Mapping[str, Cell]
) -> list[str]:
    """Returns those further cells that are repeats of some of an artefact's; `cells` are all of the plan."""
    own = set(keys)
    return [key for key in further if replace(cells[key], repeat=1).key in own]
