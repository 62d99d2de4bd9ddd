"""Reads what each grid measured here: this run's from its merged rows, other runs' by the plans that they left here."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from steptime import tasks
from steptime.cells import footers
from steptime.merge import measured, trainings
from steptime.merge.cells import merge
from steptime.merge.measured import Measured
from steptime.merge.trainings import Trained
from steptime.plan import written
from steptime.reading import InputError

# What claims ask about; none is about a network in use.
ASKED = ("every_cell", "parts", "trainings")


@dataclass
class Grid:
    """What was measured for a grid: timed steps, single operations, trainings. `refused` says why nothing was read."""

    name: str = ""
    steps: list[Measured] = field(default_factory=list)
    parts: list[Measured] = field(default_factory=list)
    trained: Trained = field(default_factory=Trained.nothing)
    refused: str = ""


def read(plan_path: Path) -> Grid:
    """Reads the results here that are as this plan asks for them."""
    grid = Grid(plan_path.stem)
    statistics = plan_path.parents[1] / "statistics" / plan_path.name
    estimates = json.loads(statistics.read_text()) if statistics.exists() else None
    try:
        plan = written.read(plan_path)
        for task in tasks.TASKS.values():
            keys = [key for key, cell in plan.cells.items() if cell.task == task.name]
            keys = [key for key in keys if footers.are_as_asked(key, plan.expected)]
            if not keys or task.feeds not in ASKED:
                continue
            is_of_steps = task.name == tasks.USUAL
            table = merge(keys, plan.missing, None, plan.looks, estimates if is_of_steps else None)
            if task.feeds == "trainings":
                grid.trained = trainings.of_table(table, str(plan_path))
            else:
                own = grid.steps if is_of_steps else grid.parts
                own.append(measured.of_table(table, str(plan_path)))
    except InputError as error:
        return Grid(plan_path.stem, refused=str(error).splitlines()[0])
    return grid
