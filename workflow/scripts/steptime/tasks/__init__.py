"""What a cell may time: one record for each task, with all about it, in the module of its name.

Nothing else tells tasks apart by their names.
"""

from typing import Any

from steptime.tasks import convolutions, forward, products, step, stragglers, sums, training
from steptime.tasks.record import Configured, Point, Task

# In the order in which one machine measures them; the first is meant where nothing is said.
MODULES = (step, training, products, convolutions, sums, stragglers, forward)
TASKS: dict[str, Task] = {each.TASK.name: each.TASK for each in MODULES}
USUAL = next(iter(TASKS))


def that_proves(spec: dict[str, Any]) -> str:
    """Names the task that proves a network of this specification: on images, if it has a data set."""
    fed = "dataset" in spec
    return next(task.name for task in TASKS.values() if task.needs_images == fed)


def job_of(configuration: Configured, cell: Point) -> dict[str, Any]:
    """Returns what decides how a cell runs, besides its framework: the cell, the worker's orders, and its limits."""
    task, grid = TASKS[cell.task], configuration.grid
    job = {
        "cell": cell.facts(),
        "asked": task.asked(configuration, cell),
        "limits": grid["limits"] | {"seconds": task.limit_seconds(grid)},
    }
    if task.needs_images:
        job["dataset"] = configuration.datasets[cell.dataset]["label"]
    return job


def schemas() -> dict[str, Any]:
    """Returns what schemas of `config/schemas` refer to: tasks' names, and what a grid may say of them in `parts`."""
    parts = {
        task.name: {"description": task.described, "$ref": "#/$defs/names"}
        for task in TASKS.values()
        if task.described
    }
    return {
        "task": {"enum": list(TASKS)},
        "parts": {"type": "object", "additionalProperties": False, "properties": parts},
    }
