"""Unpacks packages of an older Debian below an environment, without root and without this machine's own apt."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from steptime.environments.prepare import InstallError

MIRROR = "STEPTIME_DEBIAN_MIRROR"
# Part of every system that has a Python, and newer there than in an old Debian.
OF_THE_SYSTEM = ("libc6", "libgcc-s1", "libstdc++6", "libcrypt1", "gcc-10-base", "zlib1g")


def unpack(
    target: Path, run: Callable, release: str, packages: Sequence[str], alone: Sequence[str] = ()
) -> dict[str, str]:
    """Unpacks `packages` with all that they need, and `alone` without, below `target`; returns versions by name.

    Only the archive's signed index decides what is taken. Raises InstallError.
    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise InstallError(
                f"packages of Debian are unpacked here, and there is no {program} on PATH"
            )
    apt = _configure(target.with_name(f"{target.name}-apt"), run, release)
    _check(run(*apt, "update"), f"the package index of Debian {release} could not be read")
    wanted = ["install", "--download-only", "--yes", "--no-install-recommends", *packages]
    _check(run(*apt, *wanted), f"{', '.join(packages)} of Debian {release} could not be downloaded")
    archives = target.with_name(f"{target.name}-apt") / "cache/archives"
    for package in alone:
        _check(
            run("sh", "-c", 'cd "$1"; shift; "$@"', "sh", archives, *apt, "download", package),
            f"no {package}",
        )
    target.mkdir(parents=True)
    versions = {}
    for archive in sorted(archives.glob("*.deb")):
        name, version, _ = archive.stem.split("_")
        if name not in OF_THE_SYSTEM:
            _check(
                run("dpkg-deb", "--extract", archive, target),
                f"{archive.name} could not be unpacked",
            )
            versions[name] = version.replace("%3a", ":")
    shutil.rmtree(archives.parents[1])
    return {name: versions[name] for name in (*packages, *alone)}


def _configure(root: Path, run: Callable, release: str) -> list[str | Path]:
    """Returns the command apt-get, with folders of its own below `root` and only `release` as a source."""
    for folder in ("etc", "state/lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True)
    (root / "state/status").touch()
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    signed = f"[signed-by={keyring}] " if keyring.exists() else ""
    (root / "etc/sources.list").write_text(f"deb {signed}{_mirror(run)} {release} main\n")
    options = {
        "Dir::Etc": root / "etc",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": root / "state",
        "Dir::State::status": root / "state/status",
        "Dir::Cache": root / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Check-Valid-Until": "false",
    }
    return [
        "apt-get",
        "--quiet",
        *[part for key, value in options.items() for part in ("--option", f"{key}={value}")],
    ]


def _mirror(run: Callable) -> str:
    """Returns the address of an archive of Debian: the user's, or that of this machine's own packages."""
    if named := os.environ.get(MIRROR):
        return named
    listed = run(
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Origin: Debian",
        "Created-By: Packages",
    )
    addresses = [line for line in listed.stdout.split() if "security" not in line]
    if not addresses:
        raise InstallError(
            f"packages of Debian are unpacked here, and this machine's apt names no archive of Debian: set {MIRROR} "
            "to the address of one"
        )
    return addresses[0]


def _check(done, failure: str) -> None:
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise InstallError(f"{failure} ({lines[-1] if lines else 'nothing was printed'})")
