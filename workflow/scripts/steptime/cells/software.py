"""The software of a cell: what the framework says of itself, and what its environment is made of."""

from pathlib import Path
from typing import Any

from steptime.environments import interpreter, libraries
from steptime.records import Manifest
from steptime.supervisor.supervise import Outcome


def describe(cell: dict[str, Any], outcome: Outcome, manifest: Manifest) -> dict[str, Any]:
    """Versions, packages and compiled libraries of a cell, from what its worker said and its environment's manifest.

    `libraries` are those that the worker had loaded and computes with, `arithmetic` is what they are in short (see
    `environments.libraries`), `prepared` is what was added to the packages.
    """
    versions = outcome.events.get("ready", {}).get("versions", {})
    named = {
        name: versions.get(name)
        for name in ("framework_version", "python", "blas", "cuda", "cudnn", "build")
    }
    prefix = interpreter.folder(cell["environment"]).resolve()
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
