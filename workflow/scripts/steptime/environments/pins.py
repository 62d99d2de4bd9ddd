"""Reads the conda file of an environment. Imported by the Snakefile, so it takes milliseconds to import."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steptime import project
from steptime.reading import InputError

SCHEMA = "config/schemas/environment.yaml"
PYTHON = re.compile(r"python={1,2}(\d+\.\d+(?:\.\d+)?)")
PIP = re.compile(r"pip={1,2}(\d+(?:\.\d+)*)")
CONDA = re.compile(r"[a-z0-9][a-z0-9._-]*={1,2}\d[A-Za-z0-9._]*")
REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[A-Za-z0-9._, -]+\])?==([A-Za-z0-9.!_+-]+)"
)
# One of NVIDIA's libraries, for a version of CUDA.
CUDA = re.compile(r"(nvidia-.+)-cu\d+")


@dataclass(frozen=True)
class Pins:
    """The packages of an environment, by normalised names; only a conda installs those of `conda`."""

    python: str
    pip: str
    channels: tuple[str, ...]
    conda: tuple[str, ...]
    packages: dict[str, str]
    requirements: tuple[str, ...]


def load(path: Path | str, step: str = "") -> Pins:
    """Reads the pins of the conda file `path`; `step` prepares the environment, '' for none. Raises InputError."""
    # Here, since each cell's program imports this module, and what checks a configuration takes it a tenth of a second.
    from steptime.plan import schemas

    content = schemas.read(Path(path), project.path(SCHEMA))
    pins = _parsed(content, str(path))
    if pins.conda and not step:
        raise InputError(
            f"{path}: '{pins.conda[0]}' cannot be used in 'dependencies', since it does not install without conda: "
            "write every package in the list 'pip:', or a preparing step (`prepare` in config/frameworks.yaml) that "
            "does without it."
        )
    return pins


def parse(content: Any, where: str) -> Pins:
    """Returns the pins in a conda file's parsed content; `where` names the file in messages. Raises InputError."""
    from steptime.plan import schemas

    schemas.check(content, project.path(SCHEMA), where)
    return _parsed(content, where)


def _parsed(content: dict[str, Any], where: str) -> Pins:
    versions: dict[str, str] = {}
    conda: list[str] = []
    listed: list[Any] | None = None
    for entry in content["dependencies"]:
        if isinstance(entry, dict) and list(entry) == ["pip"] and isinstance(entry["pip"], list):
            listed = entry["pip"]
        elif match := PYTHON.fullmatch(str(entry)):
            versions["python"] = match[1]
        elif match := PIP.fullmatch(str(entry)):
            versions["pip"] = match[1]
        elif CONDA.fullmatch(str(entry)):
            conda.append(str(entry))
        else:
            raise InputError(
                f"{where}: '{entry}' cannot be used in 'dependencies': write python=3.11, pip=25.3, and every other "
                "package as name==version in the list 'pip:'."
            )
    for name, example in (("python", "python=3.11"), ("pip", "pip=25.3")):
        if name not in versions:
            raise InputError(
                f"{where}: 'dependencies' does not pin {name}: write for instance {example}."
            )
    if not listed:
        raise InputError(
            f"{where}: 'dependencies' has no list 'pip:': write name==version for each package there."
        )
    packages, requirements = _requirements(listed, where)
    return Pins(
        **versions,
        channels=tuple(content["channels"]),
        conda=tuple(sorted(conda)),
        packages=packages,
        requirements=requirements,
    )


def digest(pins: Pins, step: str = "") -> str:
    """Returns the digest of what is to be installed, whatever its order; `step` is the preparing code's digest."""
    content: dict[str, Any] = {"python": pins.python, "requirements": pins.requirements}
    content |= {"conda": pins.conda} if pins.conda else {}
    content |= {"prepare": step} if step else {}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def is_of(framework: str, package: str) -> bool:
    """Tells whether a package, by normalised name, is the framework itself: torch, tensorflow-cpu, paddlepaddle."""
    return package in (framework, 2 * framework) or package.startswith(f"{framework}-")


def normalise(name: str) -> str:
    """Returns a package's name as indexes compare it: lower case, with single hyphens (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements(listed: list[Any], where: str) -> tuple[dict[str, str], tuple[str, ...]]:
    packages: dict[str, str] = {}
    requirements = []
    for entry in listed:
        match = REQUIREMENT.fullmatch(str(entry))
        if match is None:
            raise InputError(f"{where}: '{entry}' is not an exact pin: write it as name==version.")
        name, extras, version = normalise(match[1]), match[2] or "", match[3]
        if name in packages:
            raise InputError(
                f"{where}: {name} is pinned twice, as {packages[name]} and {version}: remove one."
            )
        packages[name] = version
        requirements.append(f"{name}{extras}=={version}")
    _check_cuda(packages, where)
    return packages, tuple(sorted(requirements))


def _check_cuda(packages: dict[str, str], where: str) -> None:
    """Refuses NVIDIA's packages of one library for two CUDA versions: they overwrite each other without a word."""
    seen: dict[str, str] = {}
    for name in packages:
        if match := CUDA.fullmatch(name):
            other = seen.setdefault(match[1], name)
            if other != name:
                raise InputError(
                    f"{where}: {other} and {name} write the same files: pin one of them, and give what needs the other "
                    "an environment of its own."
                )
