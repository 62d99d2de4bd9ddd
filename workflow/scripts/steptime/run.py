"""What a run tells its programs, in one file that it writes when it begins.

These facts differ between machines and change no number; as parameters of rules they would measure everything again.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from steptime.atomic import atomic_write

FOLDER = Path(".snakemake/steptime")
FILE = FOLDER / "run.json"
# What holds in this process alone, as in a program that a user starts with a file of platforms.
TOLD: dict[str, Any] = {}


def begin(**facts: Any) -> None:
    """Writes down what holds for the run that begins."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with atomic_write(FILE) as file:
        file.write(json.dumps(facts).encode())


def facts() -> dict[str, Any]:
    """What holds for the run that is under way or was the last here, or {}; ends a program of a run without it."""
    try:
        found = json.loads(FILE.read_text())
    except (OSError, ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found | TOLD
    if is_under_way():
        sys.exit(f"{FILE} is not there, which a run writes: leave out `--no-hooks`.")
    return TOLD


def is_under_way() -> bool:
    """Whether this program is part of a run, and not started by hand."""
    return "STEPTIME_LAUNCH" in os.environ
