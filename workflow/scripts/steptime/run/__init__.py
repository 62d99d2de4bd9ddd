"""Facts that a run gives its programs, in one file that it writes when it begins.

They differ between machines and change no number; as parameters of rules they would have everything measured again.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import psutil

from steptime.atomic import atomic_write

RUNS = Path(".snakemake/steptime")
# Each run has its own: another one may begin beside it in the same project.
FOLDER = RUNS / os.environ.get("STEPTIME_RUN", "")
FILE = FOLDER / "run.json"
# For programs that a user starts: the run that began last.
LAST = RUNS / "run.json"
# What holds in this process alone, as in a program that a user starts with a file of platforms.
TOLD: dict[str, Any] = {}


def begin(**facts: Any) -> None:
    """Writes down the facts of the run that begins."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in {FILE, LAST}:
        with atomic_write(path) as file:
            file.write(json.dumps(facts).encode())


def facts() -> dict[str, Any]:
    """Returns the facts of the run under way, or of the last one here, or {}; ends a program whose run lacks them."""
    try:
        found = json.loads(FILE.read_text())
    except (OSError, ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found | TOLD
    if is_under_way():
        sys.exit(f"{FILE} is not there, which a run writes: leave out `--no-hooks`.")
    return TOLD


def grids_of_others() -> set[str]:
    """Returns the grids of other runs that are under way in this folder."""
    files = [path for path in RUNS.glob("*/run.json") if path != FILE]
    alive = [path for path in files if psutil.pid_exists(int(path.parent.name))]
    return {Path(json.loads(path.read_text()).get("grid", "")).stem for path in alive}


def is_under_way() -> bool:
    """Tells whether this program is part of a run, and not started by hand."""
    return "STEPTIME_LAUNCH" in os.environ
