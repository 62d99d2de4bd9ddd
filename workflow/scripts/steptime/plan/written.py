"""The plan as a file: written once, when a run begins, and read by every program that must know a grid's cells."""

import json
from itertools import chain
from pathlib import Path

from steptime.atomic import atomic_write
from steptime.plan.cell import Cell
from steptime.plan.grid import Plan
from steptime.plan.schemas import ConfigurationError, meant

# The folder of plans below the results.
FOLDER = "plan"


def path_of(grid_name: str) -> Path:
    return Path("results") / FOLDER / f"{grid_name}.json"


def of_others(grid_name: str) -> list[str]:
    """Returns the plans of other grids that are here, and the files of what their results say together."""
    files = Path("results").glob(f"{FOLDER}/*.json"), Path("results").glob("statistics/*.json")
    return sorted(str(path) for path in chain(*files) if path.stem != grid_name)


def write(plan: Plan, path: Path) -> None:
    """Writes a plan, whole or not at all, unless the file already has it. Raises OSError."""
    if is_there(plan, path):
        return
    with atomic_write(path) as file:
        file.write(_text(plan))


def is_there(plan: Plan, path: Path) -> bool:
    """Tells whether this very plan is in the file."""
    return path.is_file() and path.read_bytes() == _text(plan)


def _text(plan: Plan) -> bytes:
    # Thousands of cells have them in common.
    texts = [json.dumps(facts) for facts in plan.expected.values()]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    content = {
        "cells": [cell.facts() for cell in plan.cells.values()],
        "artefacts": plan.artefacts,
        "missing": plan.missing,
        "expected": list(map(json.loads, numbers)),
        "expects": [numbers[text] for text in texts],
        "looks": plan.looks,
        "proven": plan.proven,
    }
    return json.dumps(content).encode()


def read(path: Path) -> Plan:
    """Reads the plan that a run has written. Raises ConfigurationError without one, or where it was changed."""
    try:
        content = json.loads(path.read_text())
        cells = {cell.key: cell for cell in (Cell(**facts) for facts in content["cells"])}
        distinct = content["expected"]
        expected = {key: distinct[at] for key, at in zip(cells, content["expects"], strict=False)}
        known = {name: content[name] for name in ("artefacts", "missing", "looks", "proven")}
        return Plan(cells, expected=expected, **known)
    except FileNotFoundError as error:
        grids = sorted(each.stem for each in path.parent.glob("*.json"))
        advice = meant(path.stem, grids, "known are") if grids else "run `make`."
        raise ConfigurationError(
            f"No run of the grid '{path.stem}' has written its plan to {path.parent}: {advice}"
        ) from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ConfigurationError(
            f"The plan {path} is broken ({error}): remove it, and the next run writes it anew."
        ) from error
