"""The entries of networks as files have them: the project's own, and a user's, which take the place of same names."""

import os
from pathlib import Path
from typing import Any

from steptime import project, run
from steptime.reading import InputError, read_yaml

PROJECT = "config/networks.yaml"
# Where a user's networks are looked for in the folder of a run.
FOLDER = Path("networks")


def files_of_user(config: dict[str, Any]) -> list[str]:
    """The user's files of networks, as seen from the project's folder. Raises InputError where none is there."""
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
    """Returns the entries that the run goes by which is under way, as it began with them: an edit since then is for
    the next one. Beside a run, those of the files of the last one here.
    """
    known = run.facts()
    if run.is_under_way() and "entries" in known:
        return known["entries"]
    return merged([first or project.path(PROJECT), *map(project.path, known.get("networks", []))])


def merged(paths: list[Path]) -> dict[str, Any]:
    """Returns the entries of files, which a run has checked."""
    entries: dict[str, Any] = {}
    for path in paths:
        entries |= read_yaml(path)
    return entries
