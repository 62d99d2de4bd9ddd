"""Reads networks' entries from files: the project's own, and a user's, which win where names are the same."""

import os
from pathlib import Path
from typing import Any

from steptime import project, run
from steptime.reading import InputError, read_yaml

PROJECT = "config/networks.yaml"
# Where a user's networks are looked for in the folder of a run.
FOLDER = Path("networks")


def files_of_user(config: dict[str, Any]) -> list[str]:
    """Returns the user's files of networks, relative to the project. Raises InputError where one is missing."""
    place = Path(config.get("networks", FOLDER)).expanduser()
    if place.is_dir():
        paths = sorted(place.glob("*.yaml"))
    elif place.is_file() or "networks" not in config:
        paths = [place] if place.is_file() else []
    else:
        raise InputError(
            f"config/config.yaml or --config: there is no file or folder '{place}', which 'networks' names: "
            "correct it, or leave it out."
        )
    return [os.path.relpath(path.resolve(), project.ROOT.resolve()) for path in paths]


def of_run(first: Path | None = None) -> dict[str, Any]:
    """Returns the entries with which the run under way began: an edit since then is for the next run.

    Outside a run, reads the files of the last run here.
    """
    known = run.facts()
    if run.is_under_way() and "entries" in known:
        return known["entries"]
    return merged([first or project.path(PROJECT), *map(project.path, known.get("networks", []))])


def merged(paths: list[Path]) -> dict[str, Any]:
    """Returns the entries of files that a run has checked; later files win."""
    entries: dict[str, Any] = {}
    for path in paths:
        entries |= read_yaml(path)
    return entries
