"""Fetches the files of a data set: from a folder, an archive, a URL of either, or a package of a registry."""

import gzip
import io
import lzma
import math
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steptime.datasets import DatasetError, formats
from steptime.environments import build, installer

# Longest first: a .tar.gz is no .gz.
PACKED = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tar", ".zip", ".npz", ".gz")
READ = f"files are read as they are or in {', '.join(PACKED)}, and known by their sums"
UNPACKING = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
BROKEN = (*UNPACKING, EOFError, OSError, ValueError, RuntimeError)
TIMEOUT_SECONDS = 60
PUBLISHED = "the published files"
# Bytes that a file may have besides images.
BESIDE = 2**22

# A version, its files, and in what they came; a file, or why it cannot be read.
Found = tuple[dict[str, Any], dict[str, bytes], str]
Held = tuple[str, bytes | DatasetError, str]


def fetch(entry: dict[str, Any], location: str | None) -> Found:
    """Returns the version that was found, its files by name without gzip, and what they came in.

    `location` is a path or URL of a folder or an archive; None means the entry's package. Raises DatasetError.
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
    return _choose(entry, _of_file(path), str(path))


def names_of(version: dict[str, Any]) -> list[str]:
    return [name for split in ("train", "test", "all") for name in version.get(split, [])]


def _from_folder(entry: dict[str, Any], folder: Path) -> Found:
    most = BESIDE + 2 * sum(entry["counts"].values()) * math.prod(entry["shape"])
    known = {_bare(name) for version in entry["versions"] for name in names_of(version)}

    def is_other(path: Path) -> bool:
        return _bare(path.name) not in known and not path.name.lower().endswith(PACKED)

    # What is called as it should be first: most often nothing else is read.
    there = sorted((path for path in folder.rglob("*") if path.is_file()), key=is_other)
    held = (each for path in there if path.stat().st_size <= most for each in _of_file(path))
    return _choose(entry, held, str(folder))


def _of_file(path: Path) -> Iterator[Held]:
    try:
        content = path.read_bytes()
    except OSError as error:
        return iter([(path.name, DatasetError(f"{path} cannot be read ({error.strerror})."), "")])
    return _held(path.name, content, str(path))


def _held(name: str, content: bytes, where: str, came_in: str = PUBLISHED) -> Iterator[Held]:
    """Yields all files that a file holds, by name and without gzip, and what they came in, or a fault."""
    ending = next((each for each in PACKED if name.lower().endswith(each)), "")
    try:
        if ending == ".gz":
            yield name[: -len(ending)], gzip.decompress(content), came_in
        elif ending:
            for inner, held in _members(ending, content):
                yield from _held(Path(inner).name, held, f"{inner} in {where}", name)
        else:
            yield name, content, came_in
    except BROKEN as error:
        kind = "gzip file" if ending == ".gz" else "archive"
        said = " ".join(str(error).split())
        fault = DatasetError(f"{where} is not a whole {kind} ({said}): fetch it again.")
        yield name.removesuffix(".gz"), fault, came_in


def _members(ending: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the files of an archive; NumPy's arrays as the IDX files from which they were made."""
    if ending == ".npz":
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            for name in arrays:
                yield name, formats.idx_of(arrays[name])
    elif ending == ".zip":
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            for each in zipped.infolist():
                if not each.is_dir():
                    yield each.filename, zipped.read(each)
    else:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                if held := archive.extractfile(member) if member.isfile() else None:
                    yield member.name, held.read()


def _choose(entry: dict[str, Any], held: Iterable[Held], where: str) -> Found:
    """Returns the first version whose files are all held, by their sums, or else their names. Raises DatasetError."""
    wanted = {digest: name for name, digest in entry["sums"].items()}
    right: dict[str, tuple[bytes, str]] = {}
    named: dict[str, bytes | DatasetError] = {}
    for name, content, came_in in held:
        if not isinstance(content, DatasetError):
            for digest in formats.digests_of(content, wanted):
                right.setdefault(wanted[digest], (content, came_in))
        named.setdefault(_bare(name), content)
        for version in entry["versions"]:
            if all(each in right for each in names_of(version)):
                found = {each: right[each][0] for each in names_of(version)}
                return version, found, right[names_of(version)[0]][1]
    for version in entry["versions"]:
        by_name = {}
        for each in names_of(version):
            there = right[each][0] if each in right else named.get(_bare(each))
            if isinstance(there, DatasetError):
                raise there
            if there is not None:
                by_name[each] = there
        if len(by_name) == len(names_of(version)):
            return version, by_name, PUBLISHED
    if faults := [each for each in named.values() if isinstance(each, DatasetError)]:
        raise faults[0]
    raise DatasetError(f"{entry['label']}: {_lacking(entry, {*named})} in {where}; {READ}.")


def _bare(name: str) -> str:
    """Returns a name's letters and digits: people also write train-images.idx3-ubyte."""
    return "".join(filter(str.isalnum, name.lower().removesuffix(".gz")))


def _from_url(entry: dict[str, Any], url: str) -> Found:
    if url.lower().endswith(PACKED):
        return _choose(entry, _held(url.rpartition("/")[2], _download(entry, url), url), url)
    # A server does not list its folder, so the first version, in its usual form, is asked for.
    version = entry["versions"][0]
    if "archive" in version:
        return _from_url(entry, f"{url.rstrip('/')}/{version['archive']}")
    held: list[Held] = []
    for name in names_of(version):
        place = f"{url.rstrip('/')}/{name}.gz"
        held += _held(place.rpartition("/")[2], _download(entry, place), place)
    return _choose(entry, held, url)


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


def _lacking(entry: dict[str, Any], there: set[str]) -> str:
    """Says what is missing of the version that is most nearly complete."""
    names = map(names_of, entry["versions"])
    fewest = min(([name for name in each if _bare(name) not in there] for each in names), key=len)
    others = f" and {len(fewest) - 1} more" if len(fewest) > 1 else ""
    return f"there is no file {fewest[0]} or {fewest[0]}.gz{others}"


def _install(package: str, folder: Path) -> None:
    """Puts a package into a folder without its dependencies: only one of its data files is read."""
    command = [installer.find_uv(), "pip", "install", "--no-deps", "--python", sys.executable]
    command += ["--target", str(folder), package]
    given = installer.environment_variables()
    done = subprocess.run(command, env=given, input="", capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        failure = f"The package {package} could not be fetched"
        raise DatasetError(f"{build.reason(done.stderr, failure)}.")
