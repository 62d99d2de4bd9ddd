"""Fetches the files of a data set: from a folder, an archive, a URL of either, or a package of a registry."""

import gzip
import io
import lzma
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any

from steptime.datasets import DatasetError
from steptime.environments import build, installer

ARCHIVES = (".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tar.xz")
TIMEOUT_SECONDS = 60
PUBLISHED = "the published files"


def fetch(
    entry: dict[str, Any], location: str | None
) -> tuple[dict[str, Any], dict[str, bytes], str]:
    """The version that is there, its files by name without gzip, and in what they came.

    `location` is a path or URL of a folder or an archive; None where the entry's package is meant. Raises DatasetError.
    """
    if location is None:
        with tempfile.TemporaryDirectory() as folder:
            _install(entry["package"], Path(folder))
            version, found, _ = _from_folder(entry, Path(folder))
            return version, found, f"the package {entry['package']}"
    if "://" in location:
        return _from_url(entry, location)
    path = Path(location).expanduser()
    if path.is_dir():
        return _from_folder(entry, path)
    if not path.exists():
        raise DatasetError(
            f"There is no file or folder {path}: write where {entry['label']} lies under 'data' in config/config.yaml."
        )
    return _from_archive(entry, path.name, path.read_bytes(), str(path))


def names_of(version: dict[str, Any]) -> list[str]:
    """The files of a version."""
    return [name for split in ("train", "test", "all") for name in version.get(split, [])]


def _from_folder(
    entry: dict[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, bytes], str]:
    there = {path.name: path for path in sorted(folder.rglob("*")) if path.is_file()}
    for version in entry["versions"]:
        archive = there.get(version.get("archive", ""))
        if archive:
            return _from_archive(entry, archive.name, archive.read_bytes(), str(archive))
        named = {name: there.get(name) or there.get(f"{name}.gz") for name in names_of(version)}
        if all(named.values()):
            found = {
                name: _plain(path.name, path.read_bytes(), str(path))
                for name, path in named.items()
                if path
            }
            return version, found, PUBLISHED
    raise DatasetError(f"{entry['label']}: {_lacking(entry, set(there))} in {folder}.")


def _from_archive(
    entry: dict[str, Any], name: str, content: bytes, where: str
) -> tuple[dict[str, Any], dict[str, bytes], str]:
    there = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                if held := archive.extractfile(member) if member.isfile() else None:
                    there[Path(member.name).name] = held.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise DatasetError(f"{where} is not a whole archive ({error}): fetch it again.") from error
    for version in entry["versions"]:
        named = {
            wanted: next((n for n in (wanted, f"{wanted}.gz") if n in there), None)
            for wanted in names_of(version)
        }
        if all(named.values()):
            return (
                version,
                {
                    wanted: _plain(n, there[n], f"{n} in {where}")
                    for wanted, n in named.items()
                    if n
                },
                name,
            )
    raise DatasetError(f"{entry['label']}: {_lacking(entry, set(there))} in {where}.")


def _from_url(entry: dict[str, Any], url: str) -> tuple[dict[str, Any], dict[str, bytes], str]:
    if url.endswith(ARCHIVES):
        return _from_archive(entry, url.rpartition("/")[2], _download(entry, url), url)
    # A server does not list its folder, so the first version, in its usual form, is asked for.
    version = entry["versions"][0]
    if "archive" in version:
        return _from_url(entry, f"{url.rstrip('/')}/{version['archive']}")
    places = {name: f"{url.rstrip('/')}/{name}.gz" for name in names_of(version)}
    return (
        version,
        {name: _plain(place, _download(entry, place), place) for name, place in places.items()},
        PUBLISHED,
    )


def _download(entry: dict[str, Any], url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            content = response.read()
            length = response.headers.get("Content-Length")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetError(f"{entry['label']}: {url} cannot be had ({reason}).") from error
    if length is not None and int(length) != len(content):
        raise DatasetError(
            f"{entry['label']}: {url} broke off after {len(content):,} of {int(length):,} bytes: try again."
        )
    return content


def _plain(name: str, content: bytes, where: str) -> bytes:
    if not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise DatasetError(
            f"{where} is not a whole gzip file ({error}): fetch it again."
        ) from error


def _lacking(entry: dict[str, Any], there: set[str]) -> str:
    """What is missing of the version that is most nearly there."""
    missing = [
        [name for name in names_of(version) if not {name, f"{name}.gz"} & there]
        for version in entry["versions"]
    ]
    fewest = min(missing, key=len)
    others = f" and {len(fewest) - 1} more" if len(fewest) > 1 else ""
    return f"there is no file {fewest[0]} or {fewest[0]}.gz{others}"


def _install(package: str, folder: Path) -> None:
    """Puts a package into a folder, without what it needs: only a data file of it is read."""
    command = [
        "pip",
        "install",
        "--no-deps",
        "--python",
        sys.executable,
        "--target",
        str(folder),
        package,
    ]
    done = subprocess.run(
        [installer.find_uv(), *command],
        env=installer.environment_variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    print(done.stdout + done.stderr)
    if done.returncode != 0:
        raise DatasetError(
            build.reason(done.stderr, f"The package {package} could not be fetched") + "."
        )
