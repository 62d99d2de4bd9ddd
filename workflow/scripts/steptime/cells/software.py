"""The software of a cell: the framework, what its environment is made of, and the workflow's own version."""

import os
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from steptime import machine, project
from steptime.environments import interpreter, libraries, pins
from steptime.outcome import Outcome
from steptime.records import Manifest

# A cell waits no longer for what git says of a large or far checkout.
GIT_SECONDS = 20


def describe(cell: dict[str, Any], outcome: Outcome, manifest: Manifest) -> dict[str, Any]:
    """Returns versions, packages and compiled libraries of a cell.

    `libraries` are those that its worker had loaded and computes with, `arithmetic` says in short what they are (see
    `environments.libraries`), and `prepared` says what was prepared.
    """
    versions = outcome.events.get("ready", {}).get("versions", {})
    names = ("framework_version", "python", "blas", "cuda", "cudnn", "build")
    named = {name: versions.get(name) for name in names}
    prefix = project.environment(cell["environment"]).resolve()
    loaded = [libraries.name_of(Path(path), prefix) for path in outcome.libraries]
    used = libraries.used(manifest.get("libraries", {}), loaded)
    arithmetic = libraries.summarise(used)
    return named | {
        "registers": libraries.registers(arithmetic),
        "framework": cell["framework"],
        "environment_digest": manifest["digest"],
        "packages": manifest.get("packages", {}),
        "prepared": manifest.get("prepared", {}),
        "libraries": used,
        "arithmetic": arithmetic,
    }


def changed(cell: dict[str, Any], manifest: Manifest) -> str:
    """Says that the environment of a cell no longer has what was installed in it; '' where it has."""
    names = interpreter.strangers(project.environment(cell["environment"]), manifest["packages"])
    if not names:
        return ""
    return f"its environment was changed since it was made: {names}; the next run makes it anew"


def imported_another(cell: dict[str, Any], outcome: Outcome, manifest: Manifest) -> str:
    """Says that a worker imported another version of its framework than was installed, by two numbers of it; else ''.

    Where no package has the framework's name, the worker's word counts (dynet38 2.2 has DyNet 2.1).
    """
    version = outcome.events.get("ready", {}).get("versions", {}).get("framework_version")
    installed = {
        name: number
        for name, number in manifest["packages"].items()
        if pins.is_of(cell["framework"], name) and _release(number)
    }
    if not version or not installed or _release(version) in map(_release, installed.values()):
        return ""
    named = ", ".join(f"{name} {number}" for name, number in installed.items())
    return f"the worker imported {cell['framework']} {version}, and installed is {named}"


def workflow() -> dict[str, Any]:
    """Returns the workflow's commit ("-dirty" where the checkout differs) and the files that differ, but for ignored
    ones.

    Outside a git checkout, the commit is what the file .commit says, or None.
    """
    # A hook of git's sets variables that name another checkout; a checkout around this folder is not meant either.
    given = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    given["GIT_CEILING_DIRECTORIES"] = str(project.ROOT.parent)
    options: dict[str, Any] = {"cwd": project.ROOT, "env": given, "timeout": GIT_SECONDS}
    ask = partial(subprocess.check_output, text=True, stderr=subprocess.DEVNULL, **options)
    try:
        commit = ask(["git", "rev-parse", "--short=12", "HEAD"]).strip()
        changed = ask(["git", "status", "--porcelain", "--untracked-files=normal"])
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return {"commit": machine.read_text(project.ROOT / ".commit"), "changed": None}
    files = [line[3:] for line in changed.splitlines()]
    return {"commit": commit + ("-dirty" if files else ""), "changed": files}


def _release(version: str) -> list[str]:
    return re.findall(r"\d+", version)[:2]
