"""Puts the workflow's packages into .venv where there is no index.

    PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels python -m steptime.environments.offline .venv

What the folder has is installed as requirements.lock pins it. The rest must be among the packages of
the Python that runs this, in whatever version, and .venv finds it there. Needs no package.
"""

import re
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

from steptime import project
from steptime.environments import installer

# In requirements.lock, before what only installers, clusters, tests and documents need.
NOT_NEEDED = "# To install"
MOST_NAMED = 5


def main() -> None:
    """Runs the command line; ends with a sentence where something is missing."""
    prefix = Path(sys.argv[1])
    needed, _, rest = project.path("requirements.lock").read_text().partition(NOT_NEEDED)
    linked = (installer.pip_settings().get("find-links") or "").split()
    folders = [Path(folder.removeprefix("file://")) for folder in linked]
    names = [file.name for folder in folders for file in folder.glob("*")]
    here = {re.sub("[-_.]+", "-", each.metadata["Name"] or "").lower() for each in distributions()}
    carried = [pin for pin in pins(needed + rest) if is_among(pin, names)]
    there = here | {pin.partition("==")[0] for pin in carried}
    if lacking := [pin for pin in pins(needed) if pin.partition("==")[0] not in there]:
        more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
        sys.exit(
            f"Without an index, the workflow lacks {', '.join(lacking[:MOST_NAMED])}{more}: put their wheels into a "
            "folder that PIP_FIND_LINKS names (docs/guides/offline.md)."
        )
    # Without pip, the machine's own one installs; to put one there takes longer than all the rest.
    has_pip = find_spec("pip") is not None
    run(sys.executable, "-m", "venv", *(["--without-pip"] if has_pip else []), prefix)
    python = prefix / "bin/python"
    machines: list[str | Path] = [sys.executable, "-m", "pip", "--python", python]
    pip = machines if has_pip else [python, "-m", "pip"]
    if carried:
        # What is imported is compiled then.
        run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", *carried)
    (own,) = prefix.glob("lib/python*/site-packages")
    lines = map("import site; site.addsitedir({!r})\n".format, packages_of_this())
    (own / "machine.pth").write_text("".join(lines))


def run(*command: str | Path) -> None:
    """Runs a command; ends the program where it fails."""
    if code := subprocess.run(command).returncode:
        sys.exit(code)


def pins(text: str) -> list[str]:
    """Returns the pins in lines of requirements.lock."""
    return [line.split()[0] for line in text.splitlines() if "==" in line and line[0] != "#"]


def is_among(pin: str, names: Iterable[str]) -> bool:
    """Tells whether one of the files is the package in the pinned version."""
    name, _, version = pin.partition("==")
    file = f"{re.sub('-', '[-_.]+', name)}-{re.escape(version)}(-.*[.]whl|[.]tar[.]gz|[.]zip)"
    return any(re.fullmatch(file, each, re.IGNORECASE) for each in names)


def packages_of_this() -> list[str]:
    """Returns the folders of this Python's packages."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return list(dict.fromkeys([*folders, *site.getsitepackages()]))


if __name__ == "__main__":
    main()
