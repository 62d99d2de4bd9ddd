"""Finds the project's own files, whatever the working folder is."""

import os
from pathlib import Path

ROOT = Path(__file__).absolute().parents[3]
SCRIPTS = Path(__file__).resolve().parents[1]


def path(name: str | Path) -> Path:
    """Returns a file of the project, such as `config/networks.yaml`; an absolute path stays as it is."""
    return ROOT / name


def environment(name: str) -> Path:
    """Returns the folder of an environment, below `.environments` or the folder that STEPTIME_ENVIRONMENTS names."""
    return Path(os.environ.get("STEPTIME_ENVIRONMENTS", ".environments")) / name
