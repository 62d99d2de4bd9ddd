"""Packages that a Python of this machine has already, in the file's versions: nothing is downloaded.

For machines without a network on which somebody else has installed CUDA builds. The environment has its own settings
and caches; it only looks into the folders of that Python's packages.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from steptime.environments import interpreter, pins
from steptime.environments.prepare import InstallError

QUESTION = """
import json, site, sys, sysconfig
from importlib.metadata import distributions
found = {each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"]}
folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
print(json.dumps([found, list(dict.fromkeys(folders))]))
"""


def supply(
    prefix: Path, wanted: pins.Pins, run: Callable[..., CompletedProcess[str]]
) -> dict[str, str]:
    """Makes the environment of the first Python that has every package; returns the packages with their versions.

    Only the packages of the file, and NVIDIA's, count. Raises InstallError where no Python has them.
    """
    lacking = f"no Python {wanted.python} is on PATH"
    for python in interpreter.candidates(wanted.python):
        if not interpreter.version_of(python, wanted.python):
            continue
        installed, folders = _packages(python)
        missing = [
            f"{name} {version}"
            for name, version in wanted.packages.items()
            if installed.get(name, "").partition("+")[0] != version
        ]
        if missing:
            lacking = f"a Python {wanted.python} of this machine lacks {', '.join(missing)}"
            continue
        done = run(python, "-m", "venv", "--without-pip", prefix)
        if done.returncode:
            raise InstallError(f"a virtual environment of Python {wanted.python} could not be made")
        own = next((prefix / "lib").glob("python*/site-packages"))
        # So that files of links in those folders count, too.
        lines = [f"import site; site.addsitedir({folder!r})\n" for folder in folders]
        (own / "installed.pth").write_text("".join(lines))
        # Programs look for NVIDIA's libraries below the environment.
        for place in (Path(folder) / "nvidia" for folder in folders):
            if place.is_dir() and not (own / "nvidia").exists():
                (own / "nvidia").symlink_to(place)
        return {
            name: version
            for name, version in installed.items()
            if name in wanted.packages or name.startswith("nvidia-")
        }
    raise InstallError(f"its packages must have been installed here by somebody, and {lacking}")


def prepare(prefix: Path, run: Callable[..., CompletedProcess[str]]) -> dict[str, str]:
    """Returns what a reader must know of the packages."""
    return {"packages": "those that a Python of this machine had already"}


def _packages(python: Path) -> tuple[dict[str, str], list[str]]:
    """Returns a Python's packages by normalised name, and the folders that they are in; {} where it does not answer."""
    done = subprocess.run([python, "-I", "-c", QUESTION], capture_output=True, text=True)
    if done.returncode:
        return {}, []
    found, folders = json.loads(done.stdout)
    return {pins.normalise(name): version for name, version in found.items()}, folders
