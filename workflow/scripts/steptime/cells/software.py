"""The software of a cell: what the framework says of itself, and what its environment is made of."""

import re
from pathlib import Path
from typing import Any

from steptime import project
from steptime.environments import interpreter, libraries, pins
from steptime.records import Manifest
from steptime.supervisor.supervise import Outcome


def describe(cell: dict[str, Any], outcome: Outcome, manifest: Manifest) -> dict[str, Any]:
    """Versions, packages and compiled libraries of a cell: `libraries` that its worker had loaded and computes with,
    their `arithmetic` in short (see `environments.libraries`), and what was `prepared`.
    """
    versions = outcome.events.get("ready", {}).get("versions", {})
    named = {
        name: versions.get(name)
        for name in ("framework_version", "python", "blas", "cuda", "cudnn", "build")
    }
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
    """Why what stands in the environment of a cell is not what was installed there, '' where it is."""
    names = interpreter.strangers(project.environment(cell["environment"]), manifest["packages"])
    return (
        names
        and f"its environment was changed since it was made: {names}; the next run makes it anew"
    )


def imported_another(cell: dict[str, Any], outcome: Outcome, manifest: Manifest) -> str:
    """Why a worker's framework is not the one that was installed, by two numbers of its version, or ''.

    A framework that no package is named after is what it says (dynet38 2.2 has DyNet 2.1).
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


def _release(version: str) -> list[str]:
    return re.findall(r"\d+", version)[:2]
