"""Gives a candidate a folder: the project's files with one more environment, in which the workflow runs."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from steptime import machine, project
from steptime.compare import releases
from steptime.compare.releases import Release, order, package_of
from steptime.compare.sides import CompareError
from steptime.environments import installer, pins
from steptime.networks import written
from steptime.plain import few
from steptime.plan import configuration, grid
from steptime.plan.cell import Cell
from steptime.plan.schemas import meant, require
from steptime.reading import InputError, read_yaml
from steptime.tasks import TASKS

# What the workflow consists of.
PARTS = ("workflow", "config", "envs", "resources", "profiles")
WHEEL = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-[^-]+)?-[^-]+-[^-]+-[^-]+\.whl")
VERSION, PLAIN = re.compile(r"\d[\w.!+]*"), re.compile(r"\d+(\.\d+)*")


def environment_of(name: str, networks: Iterable[str] = ()) -> str:
    """Returns the first environment of a framework, or the environment of this name.

    Raises ConfigurationError for an unknown name, and for an unknown network.
    """
    known = configuration.without_grid(project.ROOT)
    require("network", networks, known.networks, "config/networks.yaml")
    (environment,) = known.environments_of(name)
    known.framework_of(environment)
    return environment


class Folder:
    """The folder of a watch: a copy of the project in which Snakemake runs. Its results stay for the next time."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.variables: dict[str, str] = {}
        caches = shutil.ignore_patterns("__pycache__")
        for part in PARTS:
            own = self.root / part
            # What another watch has left there, of other code or of another candidate.
            shutil.rmtree(own, ignore_errors=True)
            shutil.copytree(project.ROOT / part, own, symlinks=True, ignore=caches)
        shutil.copy2(project.ROOT / "Snakefile", self.root)
        if written.FOLDER.is_dir():
            shutil.copytree(written.FOLDER, self.root / written.FOLDER, dirs_exist_ok=True)

    @contextmanager
    def kept_where_used(self) -> Iterator["Folder"]:
        """Removes the folder again where a mistake ends the program before anything was measured in it."""
        try:
            yield self
        except InputError:
            if not (self.root / "results").exists():
                shutil.rmtree(self.root)
            with suppress(OSError):
                self.root.parent.rmdir()
            raise

    def add(self, base: str, candidate: str) -> str:
        """Adds the environment of a candidate: a version, a wheel or a file of pins; returns its name.

        What the project has is taken as it is. A version gets the pins of the environment that `like` chooses. Raises
        CompareError.
        """
        frameworks, framework = self._frameworks(), self._framework_of(base)
        self._link(base)
        self._link(candidate)
        if any(candidate in entry["environments"] for entry in frameworks.values()):
            if candidate == base:
                return self._write(base, f"{base}-again", self._content(base))
            return candidate
        path = Path(candidate)
        if path.suffix == ".whl" and path.is_file():
            return self._of_wheel(base, path)
        if path.suffix in (".yaml", ".yml") and path.is_file():
            name = path.stem if path.stem != base else f"{base}-again"
            return self._write(base, name, read_yaml(path))
        if not VERSION.fullmatch(candidate):
            advice = f"write a version of {framework}, the path of a wheel (.whl) or of a file of pins (.yaml)"
            near = meant(candidate, sum((each["environments"] for each in frameworks.values()), []))
            also = f"; {near}" if near.startswith("did") else "."
            raise CompareError(f"'{candidate}' is no version, and no file: {advice}{also}")
        there = {release for name in self._alike(base) for release in self._releases_for(name)}
        if PLAIN.fullmatch(candidate) and there and Version(candidate) not in map(Version, there):
            known = few(sorted(there, key=order, reverse=True))
            raise CompareError(f"There is no release {candidate}: the newest are {known}")
        like = self.like(base, candidate)
        content = self._content(like)
        package = package_of(content, framework, like)
        if like != base and pins.parse(content, like).packages[package] == candidate:
            self._link(like)
            return like
        self._pin(content, like, package, candidate)
        return self._write(like, f"{framework}-{candidate}", content)

    def releases(self, base: str) -> list[str]:
        """Returns the releases with wheels for the environments' Pythons, oldest first. Raises CompareError."""
        asked = {self._package_of(name) for name in self._alike(base)}
        return sorted(
            {version for each in asked for version in releases.available(*each)}, key=order
        )

    def like(self, base: str, version: str) -> str:
        """Chooses the environment whose pins a new one copies: with wheels, nearest in release, the older of two."""
        alike = self._alike(base)
        having = [name for name in alike if version in self._releases_for(name)] or alike

        def distance(name: str) -> tuple[list[int], bool]:
            pairs = zip(order(name.partition("-")[2]), order(version), strict=False)
            apart = [own - wanted for own, wanted in pairs]
            return [abs(each) for each in apart], apart > [0] * len(apart)

        return min(having, key=distance)

    def differing(self, base: str, candidate: str) -> list[str]:
        """Says in which packages the two differ, Python first: "numpy 1.18.5 and 1.24.1"."""
        sides = [pins.parse(self._content(name), name) for name in (base, candidate)]
        versions = [{"Python": side.python} | side.packages for side in sides]
        names = dict.fromkeys([*versions[0], *versions[1]])
        return [
            f"{name} {versions[0].get(name, 'none')} and {versions[1].get(name, 'none')}"
            for name in names
            if versions[0].get(name) != versions[1].get(name)
        ]

    def planned(self, content: dict[str, Any]) -> list[Cell]:
        """Returns the cells of timed steps that a grid of this content has. Raises ConfigurationError."""
        (self.root / "config/grids/watch.yaml").write_text(yaml.safe_dump(content))
        loaded = configuration.load(self.root, {"grid": "watch"})
        cells = grid.expand(loaded, machine.usable_cpus()).cells.values()
        return [cell for cell in cells if TASKS[cell.task].is_compared]

    def snakemake(self, *targets: str) -> int:
        """Runs the workflow for these files, by the grid that was planned last; returns its exit status."""
        variables = {"STEPTIME_ENVIRONMENTS": str(self.root / ".environments")}
        cache = {"UV_CACHE_DIR": str(project.ROOT / ".cache/uv")} | os.environ
        command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "all"]
        command += ["--config", "grid=watch", "--", *targets]
        given = cache | variables | self.variables
        return subprocess.run(command, cwd=self.root, env=given).returncode

    def _alike(self, base: str) -> list[str]:
        """Returns the base and its framework's other environments whose pins a release may copy; none for GPUs."""
        framework = self._framework_of(base)
        plain = re.compile(rf"{re.escape(framework)}-[\d.]+")
        if not plain.fullmatch(base):
            return [base]
        # Never like another candidate, which may need what this one does not.
        known = configuration.without_grid(project.ROOT).frameworks[framework]["environments"]
        return [name for name in known if plain.fullmatch(name)] or [base]

    def _releases_for(self, environment: str) -> list[str]:
        """Returns the releases that have wheels for an environment's Python; [] where the index cannot tell."""
        try:
            return releases.available(*self._package_of(environment))
        except CompareError:
            return []

    def _package_of(self, environment: str) -> tuple[str, str]:
        """Returns the package that an environment is named after, and its Python. Raises CompareError."""
        content = self._content(environment)
        package = package_of(content, self._framework_of(environment), environment)
        return package, pins.parse(content, environment).python

    def _pin(self, content: Any, like: str, package: str, version: str) -> None:
        """Changes, in place, the version to which an environment's file pins a package."""
        python, framework = pins.parse(content, like).python, self._framework_of(like)
        known = [self._release_of(each) for each in self._alike(like)]
        is_newest = all(order(version) > order(each) for each in known)
        Release(framework, package, version, python, self.variables).pin(content, is_newest)

    def _release_of(self, environment: str) -> str:
        """Returns the version to which an environment pins its framework's package."""
        package, _ = self._package_of(environment)
        return pins.parse(self._content(environment), environment).packages[package]

    def _frameworks(self) -> dict[str, Any]:
        """Returns the frameworks of the folder, with older releases among the environments."""
        frameworks = read_yaml(self.root / "config/frameworks.yaml")
        for entry in frameworks.values():
            entry["environments"] += entry.pop("history", [])
        return frameworks

    def _framework_of(self, environment: str) -> str:
        known = self._frameworks()
        return next(name for name in known if environment in known[name]["environments"])

    def _content(self, environment: str) -> Any:
        return read_yaml(self.root / f"envs/{environment}.yaml")

    def _link(self, environment: str) -> None:
        """Uses an environment of the project where it is: the workflow itself checks that it is as pinned."""
        known = os.environ.get("STEPTIME_ENVIRONMENTS", project.ROOT / ".environments")
        there = Path(known).absolute() / environment
        here = self.root / ".environments" / environment
        if "/" not in environment and there.is_dir() and not here.exists():
            here.parent.mkdir(exist_ok=True)
            here.symlink_to(there)

    def _of_wheel(self, base: str, path: Path) -> str:
        match = WHEEL.fullmatch(path.name)
        if match is None:
            raise CompareError(
                f"{path} has not the name of a wheel: name-version-python-abi-system.whl."
            )
        framework, content = self._framework_of(base), self._content(base)
        # Two wheels of one version are two candidates.
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:6]
        # The base may need packages of the folders that pip knows.
        known = installer.environment_variables().get("UV_FIND_LINKS", "")
        folders = [str(path.absolute().parent), *filter(None, known.split(","))]
        self.variables["UV_FIND_LINKS"] = ",".join(folders)
        self._pin(content, base, pins.normalise(match["name"]), match["version"])
        return self._write(base, f"{framework}-{match['version']}-{digest}", content)

    def _write(self, base: str, name: str, content: Any) -> str:
        """Writes the pins of an environment that runs as the base does; returns its name."""
        pins.parse(content, f"the pins of {name}")
        frameworks = self._frameworks()
        entry = frameworks[self._framework_of(base)]
        if name not in entry["environments"]:
            entry["environments"].append(name)
        if base in entry.get("differing", {}):
            entry["differing"][name] = entry["differing"][base]
        (self.root / f"envs/{name}.yaml").write_text(yaml.safe_dump(content))
        text = yaml.safe_dump(frameworks, sort_keys=False)
        (self.root / "config/frameworks.yaml").write_text(text)
        return name
