"""Finds Pythons on this machine: those of the environments, and those to make environments with."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steptime import project
from steptime.environments.pins import normalise
from steptime.plain import few

# Holds the digest of what an environment was made of; the last that is written of it.
STAMP = ".steptime-digest"
# This file is in environments whose packages are elsewhere, on machines without a network.
SUPPLIED = ".steptime-supplied"
# A pyenv shim of a version that is not active exits with an error, so a Python on PATH is asked before it is believed.
QUESTION = "import platform; print(platform.python_implementation(), platform.python_version())"


def prefix_of(environment: str) -> Path:
    """Returns the absolute folder of an environment; where it is missing, ends the program with one sentence."""
    prefix = project.environment(environment).absolute()
    if not (prefix / "bin/python").exists():
        again = f".venv/bin/snakemake --force results/environments/{environment}.json"
        sys.exit(f"The environment {environment} is not on this machine: build it with `{again}`.")
    return prefix


def stands_as(manifest: Mapping[str, Any]) -> bool:
    """Tells whether an environment here is as its manifest says: from these pins, with these packages."""
    prefix = project.environment(manifest["environment"])
    stamp = prefix / STAMP
    if not (stamp.is_file() and (prefix / "bin/python").exists()):
        return False
    is_of_pins = stamp.read_text() == manifest["digest"]
    return is_of_pins and not strangers(prefix, manifest["packages"])


def installed(prefix: Path) -> dict[str, str]:
    """Returns the packages below `prefix` with their versions, by the names of the folders that installers leave."""
    packages = {}
    for path in prefix.glob("lib/python*/site-packages/*.*-info"):
        name, _, version = path.stem.partition("-")
        packages[normalise(name)] = version.partition("-py")[0]
    return packages


def strangers(prefix: Path, packages: Mapping[str, str]) -> str:
    """Names what is installed below `prefix` other than `packages`, as a clause; '' where it is just these."""
    if (prefix / SUPPLIED).exists():
        return ""
    there = installed(prefix)
    names = sorted(name for name in {*there, *packages} if there.get(name) != packages.get(name))
    sides = {name: (there.get(name, "none"), packages.get(name, "none")) for name in names}
    return few(f"{name} {own} instead of {other}" for name, (own, other) in sides.items())


def find(wanted: str, run_uv: Callable[..., subprocess.CompletedProcess[str]]) -> Path | None:
    """Returns a CPython of the version `wanted` ("3.11", "3.11.7"), of PATH, pyenv or uv, even downloaded; or None."""
    for candidate in candidates(wanted):
        if version_of(candidate, wanted):
            return candidate
    for command in (["python", "find", "--no-python-downloads"], ["python", "install", "--no-bin"]):
        done = run_uv(*command, wanted)
        if done.returncode == 0:
            answer = run_uv("python", "find", "--no-python-downloads", wanted)
            path = Path(answer.stdout.strip().splitlines()[-1]) if answer.stdout.strip() else None
            if path and version_of(path, wanted):
                return path
    return None


def version_of(python: Path, wanted: str = "") -> str | None:
    """Returns the full version of a CPython that runs and has the version `wanted`; None for anything else."""
    try:
        command = [str(python), "-I", "-c", QUESTION]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0 or not done.stdout.startswith("CPython "):
        return None
    version = done.stdout.split()[1]
    return version if f"{version}.".startswith(f"{wanted}." if wanted else "") else None


def candidates(wanted: str) -> Iterator[Path]:
    """Yields where a Python of this version may be: the workflow's own, PATH, pyenv."""
    yield Path(getattr(sys, "_base_executable", sys.executable))
    minor = ".".join(wanted.split(".")[:2])
    for name in (f"python{minor}", "python3", "python"):
        for directory in os.get_exec_path():
            if path := shutil.which(name, path=directory):
                yield Path(path)
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    # The newest patch first: 3.11.10 comes before 3.11.9.
    paths = versions.glob(f"{wanted}*/bin/python")
    yield from sorted(paths, key=lambda path: [len(path.parts[-3]), path.parts[-3]], reverse=True)
