"""Finds the releases of a framework's package, and the pins for an environment of a release."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

from steptime.compare.sides import CompareError
from steptime.environments import installer, interpreter, pins

FOUND = re.compile(r"Available versions: (.*)")
# No wheel is older. What belongs to a release may follow it by so many days.
EARLIEST, DAYS_AFTER = date(2013, 1, 1), 7


@dataclass(frozen=True)
class Release:
    """A version of a framework's package for a Python; `variables` are those that uv gets."""

    framework: str
    package: str
    version: str
    python: str
    variables: dict[str, str]

    def pin(self, content: Any, is_newest: bool) -> None:
        """Pins the package of a conda file's content to this version, in place, with what it needs according to uv.

        A version newer than all environments keeps their other packages. An older one gets the packages of its day.
        Packages that the file names by hand stay, such as NumPy beside torch. Where nothing fits the pins stay, and the
        environment will say why it cannot be made. Raises CompareError where the content does not pin the package.
        """
        listed = next(entry for entry in content["dependencies"] if isinstance(entry, dict))["pip"]
        before = {name: release for name, _, release in (each.partition("==") for each in listed)}
        own = [name for name in before if _plain(name) == self.package]
        if not own:
            raise CompareError(
                f"envs/{content['name']}.yaml does not pin {self.package}: write a file of pins of the candidate."
            )
        # As jaxlib of jax: the same release, or the last one before it.
        same = [
            name
            for name, release in before.items()
            if _plain(name).startswith(self.framework) and release == before[own[0]]
        ]
        needs = self._resolve([f"{name}=={before[name]}" for name in same], listed) or listed
        needed = {_plain(each.partition("==")[0]) for each in needs}
        by_hand = [name for name in before if _plain(name) not in needed]
        wanted = [
            f"{name}=={self.version}" if name in own else f"{name}<={self.version}" for name in same
        ]
        day = []
        if not is_newest:
            alone = [f"{own[0]}=={self.version}"]
            day = day_of(partial(self._resolve, alone, [], "--no-deps"))
        fitting = day and self._resolve([*wanted, *by_hand], [], *day)
        fitting = fitting or self._resolve([*wanted, *by_hand], listed)
        kept = [f"{name}=={self.version if name in same else before[name]}" for name in before]
        listed[:] = fitting or kept

    def _resolve(self, wanted: list[str], preferred: list[str], *options: str) -> list[str]:
        """Returns pins for these requirements and all that they need, preferred ones where they fit; [] for none."""
        with tempfile.TemporaryDirectory() as folder:
            asked, pinned = Path(folder, "asked.in"), Path(folder, "pinned.txt")
            asked.write_text("\n".join(wanted))
            pinned.write_text("\n".join(preferred))
            command = [installer.find_uv(), "pip", "compile", str(asked), "--output-file"]
            command += [str(pinned), "--python", _python(self.python)]
            command += ["--python-version", self.python, "--only-binary", self.package]
            command += ["--no-strip-extras", "--no-python-downloads"]
            command += ["--no-header", "--no-annotate", "--quiet", *options]
            given = installer.environment_variables() | self.variables
            done = subprocess.run(command, env=given, stderr=subprocess.DEVNULL)
            return pinned.read_text().splitlines() if done.returncode == 0 else []


@cache
def available(package: str, python: str) -> list[str]:
    """Returns the releases that have wheels for this Python, from the index. Raises CompareError."""
    asked = ["index", "versions", package, "--python-version", python, "--only-binary", ":all:"]
    done = subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True, text=True)
    listed = FOUND.search(done.stdout)
    if done.returncode or listed is None:
        raise CompareError(
            f"The index does not tell the releases of {package}: name them, --releases 2.1.0 2.2.0."
        )
    # A build of one's own, as 2.13.0+cpu in a folder of wheels, is no other release.
    return [version for version in listed[1].split(", ") if "+" not in version]


def order(version: str) -> list[int]:
    """Returns the key by which versions are sorted."""
    return [int(part) for part in re.findall(r"\d+", version)]


def day_of(was_there: Callable[..., list[str]]) -> list[str]:
    """Returns uv's option for the packages of the days after a release; `was_there` resolves with such an option.

    [] where the index knows no days, as a folder of wheels does not.
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


def package_of(content: Any, framework: str, base: str) -> str:
    """Returns the package that an environment is named after: the framework's own, or the one that has its version."""
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
    """Returns a package's name without extras in brackets."""
    return pins.normalise(name.partition("[")[0])


def _python(version: str) -> str:
    """Returns a Python of this version to build packages without wheels; another where there is none."""
    for each in interpreter.candidates(version):
        if interpreter.version_of(each, version):
            return str(each)
    return sys.executable
