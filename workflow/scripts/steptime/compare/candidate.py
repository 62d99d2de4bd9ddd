"""A folder of its own for a candidate: the project's files with one more environment, in which the workflow runs."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from steptime import machine, project
from steptime.compare.sides import CompareError
from steptime.environments import installer, interpreter, pins
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
FOUND = re.compile(r"Available versions: (.*)")
# No wheel is older. What belongs to a release may follow it by so many days.
EARLIEST, DAYS_AFTER = date(2013, 1, 1), 7


def environment_of(name: str, networks: Iterable[str] = ()) -> str:
    """Returns the first environment of a framework; an environment is itself. Raises ConfigurationError, also for a
    network that is not there.
    """
    known = configuration.without_grid(project.ROOT)
    require("network", networks, known.networks, "config/networks.yaml")
    (environment,) = known.environments_of(name)
    known.framework_of(environment)
    return environment


class Folder:
    """The folder of a watch: a copy of the project that Snakemake is run in. Its results stay for the next time."""

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
        """Removes the folder again where a mistake ends the program, and nothing was measured in it."""
        try:
            yield self
        except InputError:
            if not (self.root / "results").exists():
                shutil.rmtree(self.root)
            with suppress(OSError):
                self.root.parent.rmdir()
            raise

    def add(self, base: str, candidate: str) -> str:
        """Adds the environment of a candidate (a version, a wheel or a file of pins; what the project has is taken as
        it is); its name. A version has the pins of an environment that it is `like`. Raises CompareError.
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
        package = _package(content, framework, like)
        if like != base and pins.parse(content, like).packages[package] == candidate:
            self._link(like)
            return like
        self._pin(content, framework, package, candidate, like)
        return self._write(like, f"{framework}-{candidate}", content)

    def releases(self, base: str) -> list[str]:
        """The releases with wheels for a Python of the framework's environments, oldest first. Raises CompareError."""
        asked = {self._package_of(name) for name in self._alike(base)}
        return sorted({version for each in asked for version in releases(*each)}, key=order)

    def like(self, base: str, version: str) -> str:
        """Chooses whose pins a new environment copies: of the nearest release, the older of two, with wheels."""
        alike = self._alike(base)
        having = [name for name in alike if version in self._releases_for(name)] or alike

        def distance(name: str) -> tuple[list[int], bool]:
            pairs = zip(order(name.partition("-")[2]), order(version), strict=False)
            apart = [own - wanted for own, wanted in pairs]
            return [abs(each) for each in apart], apart > [0] * len(apart)

        return min(having, key=distance)

    def differing(self, base: str, candidate: str) -> list[str]:
        """Says what the two are not made of alike, Python first: "numpy 1.18.5 and 1.24.1"."""
        sides = [pins.parse(self._content(name), name) for name in (base, candidate)]
        versions = [{"Python": side.python} | side.packages for side in sides]
        names = dict.fromkeys([*versions[0], *versions[1]])
        return [
            f"{name} {versions[0].get(name, 'none')} and {versions[1].get(name, 'none')}"
            for name in names
            if versions[0].get(name) != versions[1].get(name)
        ]

    def planned(self, content: dict[str, Any]) -> list[Cell]:
        """Returns the cells of a grid of this content, in which steps are timed. Raises ConfigurationError."""
        (self.root / "config/grids/watch.yaml").write_text(yaml.safe_dump(content))
        loaded = configuration.load(self.root, {"grid": "watch"})
        cells = grid.expand(loaded, machine.usable_cpus()).cells.values()
        return [cell for cell in cells if TASKS[cell.task].is_compared]

    def snakemake(self, *targets: str) -> int:
        """Runs the workflow for these files, by the grid that was planned last; its exit status."""
        variables = {"STEPTIME_ENVIRONMENTS": str(self.root / ".environments")}
        cache = {"UV_CACHE_DIR": str(project.ROOT / ".cache/uv")} | os.environ
        command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "all"]
        command += ["--config", "grid=watch", "--", *targets]
        given = cache | variables | self.variables
        return subprocess.run(command, cwd=self.root, env=given).returncode

    def _alike(self, base: str) -> list[str]:
        """The base, and the other environments of its framework that a release may be made like; none of a GPU's."""
        framework = self._framework_of(base)
        plain = re.compile(rf"{re.escape(framework)}-[\d.]+")
        # Never like another candidate, which may need what this one does not.
        known = configuration.without_grid(project.ROOT).frameworks[framework]["environments"]
        alike = known if plain.fullmatch(base) else []
        return [name for name in alike if plain.fullmatch(name)] or [base]

    def _releases_for(self, environment: str) -> list[str]:
        """Returns the releases that the index has wheels of for an environment's Python, [] where it cannot tell."""
        try:
            return releases(*self._package_of(environment))
        except CompareError:
            return []

    def _package_of(self, environment: str) -> tuple[str, str]:
        """Returns the package that an environment of the project is of, and its Python. Raises CompareError."""
        content = self._content(environment)
        package = _package(content, self._framework_of(environment), environment)
        return package, pins.parse(content, environment).python

    def _pin(self, content: Any, framework: str, package: str, version: str, base: str) -> None:
        """Pins a package of a conda file's content to another version, in place, with what it needs, as uv says: of
        what there was when that version was released. What the file names by hand stays, as NumPy beside torch. Where
        nothing fits the pins stay, and the environment will say why it cannot be made.
        """
        listed = next(entry for entry in content["dependencies"] if isinstance(entry, dict))["pip"]
        before = {name: release for name, _, release in (each.partition("==") for each in listed)}
        own = [name for name in before if _plain(name) == package]
        if not own:
            raise CompareError(
                f"envs/{base}.yaml does not pin {package}: write a file of pins of the candidate."
            )
        resolve = partial(self._resolved, package, pins.parse(content, base).python)
        # As jaxlib of jax: the same release, or the last one before it.
        same = [
            name
            for name, release in before.items()
            if _plain(name).startswith(framework) and release == before[own[0]]
        ]
        needs = resolve([f"{name}=={before[name]}" for name in same], listed) or listed
        needed = {_plain(each.partition("==")[0]) for each in needs}
        wanted = [f"{name}=={version}" if name in own else f"{name}<={version}" for name in same]
        by_hand = [name for name in before if _plain(name) not in needed]
        # What is newer than all environments has what these have. What lies between them has what there was then.
        is_newest = all(
            order(version) > order(self._release_of(each)) for each in self._alike(base)
        )
        day = (
            []
            if is_newest
            else _day_of(partial(resolve, [f"{own[0]}=={version}"], [], "--no-deps"))
        )
        fitting = day and resolve([*wanted, *by_hand], [], *day)
        fitting = fitting or resolve([*wanted, *by_hand], listed)
        kept = [f"{name}=={version if name in same else before[name]}" for name in before]
        listed[:] = fitting or kept

    def _release_of(self, environment: str) -> str:
        """Returns the release that an environment pins of the package that it is of."""
        package, _ = self._package_of(environment)
        return pins.parse(self._content(environment), environment).packages[package]

    def _resolved(
        self, package: str, python: str, wanted: list[str], preferred: list[str], *options: str
    ) -> list[str]:
        """The pins of these requirements and of all that they need, with those preferred where they fit; [] of none."""
        with tempfile.TemporaryDirectory() as folder:
            asked, pinned = Path(folder, "asked.in"), Path(folder, "pinned.txt")
            asked.write_text("\n".join(wanted))
            pinned.write_text("\n".join(preferred))
            command = [installer.find_uv(), "pip", "compile", str(asked), "--output-file"]
            command += [str(pinned), "--python", _python(python), "--python-version", python]
            command += ["--only-binary", package, "--no-strip-extras", "--no-python-downloads"]
            command += ["--no-header", "--no-annotate", "--quiet", *options]
            given = installer.environment_variables() | self.variables
            done = subprocess.run(command, env=given, stderr=subprocess.DEVNULL)
            return pinned.read_text().splitlines() if done.returncode == 0 else []

    def _frameworks(self) -> dict[str, Any]:
        """Returns the frameworks of the folder, in which older releases are environments as all others are."""
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
        """Uses an environment of the project where it stands: the workflow looks itself whether it is as pinned."""
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
        # The base may need what lies in the folders that pip knows.
        known = installer.environment_variables().get("UV_FIND_LINKS", "")
        folders = [str(path.absolute().parent), *filter(None, known.split(","))]
        self.variables["UV_FIND_LINKS"] = ",".join(folders)
        self._pin(content, framework, pins.normalise(match["name"]), match["version"], base)
        return self._write(base, f"{framework}-{match['version']}-{digest}", content)

    def _write(self, base: str, name: str, content: Any) -> str:
        """Writes the pins of an environment that is run as the base is."""
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


def _package(content: Any, framework: str, base: str) -> str:
    """Returns the package that the environment is named after: the framework's own, or that which has its version."""
    packages = pins.parse(content, base).packages
    version = base.partition("-")[2]
    if framework in packages:
        return framework
    names = [name for name, pinned in packages.items() if pinned.startswith(version)]
    # A package of another name may have the same version by chance.
    names = [name for name in names if pins.is_of(framework, name)] or names
    # tensorflow-estimator has TensorFlow's versions too.
    names = [name for name in names if name == f"{framework}-cpu"] or names
    if len(names) != 1:
        raise CompareError(
            f"envs/{base}.yaml does not say which package {framework} is: write a file of pins of the candidate."
        )
    return names[0]


def _plain(name: str) -> str:
    """Returns a package's name without what may stand in brackets behind it."""
    return pins.normalise(name.partition("[")[0])


def _python(version: str) -> str:
    """Returns a Python of this version, which builds what has no wheel, or another where there is none."""
    for each in interpreter.candidates(version):
        if interpreter.version_of(each, version):
            return str(each)
    return sys.executable


def _day_of(was_there: Callable[..., list[str]]) -> list[str]:
    """uv's option for what was there in the days after a release: an installer's index tells days by it alone.

    [] where the index knows no days, or has none, as a folder of wheels.
    """

    def option(day: int) -> list[str]:
        return ["--exclude-newer", date.fromordinal(day).isoformat()]

    first, last = EARLIEST.toordinal(), date.today().toordinal() + 1
    if was_there(*option(first)) or not was_there(*option(last)):
        return []
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if was_there(*option(middle)) else (middle, last)
    return option(last + DAYS_AFTER)


def order(version: str) -> list[int]:
    """Says what versions are sorted by."""
    return [int(part) for part in re.findall(r"\d+", version)]


@cache
def releases(package: str, python: str) -> list[str]:
    """Returns the releases of a package that the index has wheels of for this Python. Raises CompareError."""
    asked = ["index", "versions", package, "--python-version", python, "--only-binary", ":all:"]
    done = subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True, text=True)
    listed = FOUND.search(done.stdout)
    if done.returncode or listed is None:
        raise CompareError(
            f"The index does not tell the releases of {package}: name them, --releases 2.1.0 2.2.0."
        )
    # A build of one's own, as 2.13.0+cpu in a folder of wheels, is no other release.
    return [version for version in listed[1].split(", ") if "+" not in version]
