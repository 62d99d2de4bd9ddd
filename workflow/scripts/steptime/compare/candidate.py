"""A folder of its own for a candidate: the project's files with one more environment, in which the workflow runs."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from steptime import machine, project
from steptime.compare.sides import CompareError
from steptime.environments import installer, pins
from steptime.plan import configuration, grid
from steptime.plan.cell import Cell

# What the workflow consists of.
PARTS = ("workflow", "config", "envs", "resources", "profiles")
WHEEL = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-[^-]+)?-[^-]+-[^-]+-[^-]+\.whl")
VERSION = re.compile(r"\d[\w.!+]*")


class Folder:
    """The folder of a watch: a copy of the project that Snakemake is run in. Its results stay for the next time."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.variables: dict[str, str] = {}
        for part in PARTS:
            # What another watch has left there, of other code or of another candidate.
            shutil.rmtree(self.root / part, ignore_errors=True)
            shutil.copytree(
                project.ROOT / part,
                self.root / part,
                symlinks=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        shutil.copy2(project.ROOT / "Snakefile", self.root)

    def add(self, base: str, candidate: str) -> str:
        """Adds the environment of a candidate, which is a version of the base's framework, a wheel of it, or a file of
        pins; its name. One that the project has already is taken as it is. A version has the other pins of the
        project's environment of that release, where there is one, else those of the base. Raises CompareError.
        """
        frameworks = self._frameworks()
        framework = _framework_of(base, frameworks)
        self._link(base)
        self._link(candidate)
        if any(candidate in entry["environments"] for entry in frameworks.values()):
            if candidate == base:
                return self._write(
                    base, f"{base}-again", framework, frameworks, _content(self, base)
                )
            return candidate
        path = Path(candidate)
        content = _content(self, base)
        if path.suffix == ".whl" and path.is_file():
            return self._of_wheel(base, path, framework, frameworks, content)
        if path.suffix in (".yaml", ".yml") and path.is_file():
            content = yaml.safe_load(path.read_text())
            name = path.stem if path.stem != base else f"{base}-again"
            return self._write(base, name, framework, frameworks, content)
        if not VERSION.fullmatch(candidate):
            raise CompareError(
                f"'{candidate}' is no version, and no file: write a version of {framework}, the path of a wheel (.whl) "
                "or of a file of pins (.yaml)."
            )
        like = _of_release(framework, candidate, base, frameworks)
        content = _content(self, like)
        _pin(content, _package(content, framework, like), candidate, like)
        return self._write(like, f"{framework}-{candidate}", framework, frameworks, content)

    def package_of(self, environment: str) -> tuple[str, str]:
        """The package that an environment of the project is of, and its Python. Raises CompareError."""
        framework = _framework_of(environment, self._frameworks())
        content = _content(self, environment)
        python = pins.parse(content, environment).python
        return _package(content, framework, environment), python

    def planned(self, content: dict[str, Any]) -> list[Cell]:
        """The cells of a grid of this content, in which steps are timed. Raises ConfigurationError."""
        (self.root / "config/grids/watch.yaml").write_text(yaml.safe_dump(content))
        loaded = configuration.load(self.root, {"grid": "watch"})
        cells = grid.expand(loaded, machine.usable_cpus()).cells.values()
        return [cell for cell in cells if cell.task == "step"]

    def snakemake(self, *targets: str) -> int:
        """Runs the workflow for these files, by the grid that was planned last; its exit status."""
        variables = {"STEPTIME_ENVIRONMENTS": str(self.root / ".environments")}
        cache = {"UV_CACHE_DIR": str(project.ROOT / ".cache/uv")} | os.environ
        command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "all"]
        return subprocess.run(
            [*command, "--config", "grid=watch", "--", *targets],
            cwd=self.root,
            env=cache | variables | self.variables,
        ).returncode

    def _frameworks(self) -> dict[str, Any]:
        """The frameworks of the folder, in which older releases are environments as all others are."""
        frameworks = yaml.safe_load((self.root / "config/frameworks.yaml").read_text())
        for entry in frameworks.values():
            entry["environments"] += entry.pop("history", [])
        return frameworks

    def _link(self, environment: str) -> None:
        """Uses an environment of the project where it stands: the workflow looks itself whether it is as pinned."""
        known = os.environ.get("STEPTIME_ENVIRONMENTS", project.ROOT / ".environments")
        there, here = (
            Path(known).absolute() / environment,
            self.root / ".environments" / environment,
        )
        if "/" not in environment and there.is_dir() and not here.exists():
            here.parent.mkdir(exist_ok=True)
            here.symlink_to(there)

    def _of_wheel(
        self, base: str, path: Path, framework: str, frameworks: dict[str, Any], content: Any
    ) -> str:
        match = WHEEL.fullmatch(path.name)
        if match is None:
            raise CompareError(
                f"{path} has not the name of a wheel: name-version-python-abi-system.whl."
            )
        package = pins.normalise(match["name"])
        _pin(content, package, match["version"], base)
        # Two wheels of one version are two candidates.
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:6]
        # The base may need what lies in the folders that pip knows.
        known = installer.environment_variables().get("UV_FIND_LINKS", "")
        folders = [str(path.absolute().parent), *filter(None, known.split(","))]
        self.variables["UV_FIND_LINKS"] = ",".join(folders)
        name = f"{framework}-{match['version']}-{digest}"
        return self._write(base, name, framework, frameworks, content)

    def _write(
        self, base: str, name: str, framework: str, frameworks: dict[str, Any], content: Any
    ) -> str:
        """Writes the pins of an environment that is run as the base is."""
        try:
            pins.parse(content, f"the pins of {name}")
        except pins.PinsError as error:
            raise CompareError(str(error)) from error
        entry = frameworks[framework]
        if name not in entry["environments"]:
            entry["environments"].append(name)
        if base in entry.get("differing", {}):
            entry["differing"][name] = entry["differing"][base]
        (self.root / f"envs/{name}.yaml").write_text(yaml.safe_dump(content))
        (self.root / "config/frameworks.yaml").write_text(
            yaml.safe_dump(frameworks, sort_keys=False)
        )
        return name


def _content(folder: Folder, environment: str) -> Any:
    return yaml.safe_load((folder.root / f"envs/{environment}.yaml").read_text())


def _framework_of(environment: str, frameworks: dict[str, Any]) -> str:
    for name, entry in frameworks.items():
        if environment in entry["environments"]:
            return name
    known = [name for entry in frameworks.values() for name in entry["environments"]]
    raise CompareError(f"There is no environment '{environment}': write one of {', '.join(known)}.")


def _of_release(framework: str, version: str, base: str, frameworks: dict[str, Any]) -> str:
    """The environment of this release, as tensorflow-2.16 of 2.16.1; the base where there is none, or for a GPU."""
    if re.fullmatch(rf"{framework}-[\d.]+", base):
        for name in frameworks[framework]["environments"]:
            if f"{framework}-{version}.".startswith(f"{name}."):
                return name
    return base


def _package(content: Any, framework: str, base: str) -> str:
    """The package that the environment is named after: the framework's own, or that which has its version."""
    packages = pins.parse(content, base).packages
    version = base.partition("-")[2]
    if framework in packages:
        return framework
    found = [name for name, pinned in packages.items() if pinned.startswith(version)]
    # A package of another name may have the same version by chance.
    found = [name for name in found if pins.is_of(framework, name)] or found
    # tensorflow-estimator has TensorFlow's versions too.
    found = [name for name in found if name == f"{framework}-cpu"] or found
    if len(found) != 1:
        raise CompareError(
            f"envs/{base}.yaml does not say which package {framework} is: write a file of pins of the candidate."
        )
    return found[0]


def _pin(content: Any, package: str, version: str, base: str) -> None:
    """Pins a package of a conda file's content to another version, in place."""
    listed = next(entry for entry in content["dependencies"] if isinstance(entry, dict))["pip"]
    for at, requirement in enumerate(listed):
        if pins.normalise(re.split(r"[=\[]", requirement)[0]) == package:
            listed[at] = f"{requirement.partition('==')[0]}=={version}"
            return
    raise CompareError(
        f"envs/{base}.yaml does not pin {package}: write a file of pins of the candidate."
    )
