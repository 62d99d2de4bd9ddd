"""Checks that a run can work where it is: in the folder of the project, and in that of its results."""

import errno
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from steptime.plan.schemas import ConfigurationError
from steptime.say import say

# What Snakemake writes down before the first job, and more.
LEAST_BYTES = 2**16
# The endings of files below results/.
ENDINGS = (".parquet", ".csv", ".md", ".html", ".tex", ".svg", ".png", ".json", ".npz")


def check(results: Path) -> None:
    """Raises ConfigurationError where Snakemake would end in a traceback before its first job."""
    if os.path.lexists(results) and not results.is_dir():
        what = "is no folder: move it away"
        if results.is_symlink():
            what = f"leads to {os.readlink(results)}, where no folder is: mount that disk, or remove the link"
        raise ConfigurationError(f"'{results}' {what}.")


def check_space(folder: Path) -> None:
    """Raises ConfigurationError where the disk of a folder is full, as Snakemake would end in a traceback."""
    probe = folder / ".space"
    try:
        folder.mkdir(exist_ok=True)
        with probe.open("wb") as file:
            file.write(bytes(LEAST_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ConfigurationError(
                f"{folder.absolute()} cannot be written to ({error.strerror}): free some space and run again."
            ) from error
    finally:
        with suppress(OSError):
            probe.unlink()


def remove_empty(results: Path) -> None:
    """Removes empty files below a folder of results, as a full disk leaves them: Snakemake looks at no content."""
    empty: list[Path] = []
    for folder, _, files in os.walk(results):
        paths = (Path(folder, name) for name in files if Path(name).suffix in ENDINGS)
        empty += [path for path in paths if path.is_file() and not path.stat().st_size]
    if empty:
        say(f"{len(empty)} files hold nothing and are made again, such as {min(empty)}.")
    for path in empty:
        with suppress(OSError):
            path.unlink()


def to_present(folders: Iterable[Path]) -> int:
    """Gives files whose time is in the future one and the same present time; returns how many there were.

    Snakemake removes what was just made where one of its inputs is newer, even a cell that took a night.
    """
    now = time.time_ns()
    walks = (walked for folder in folders for walked in os.walk(folder))
    files = (os.path.join(top, name) for top, _, names in walks for name in names)
    future = [file for file in files if os.lstat(file).st_mtime_ns > now]
    for file in future:
        os.utime(file, ns=(now, now), follow_symlinks=False)
    if future:
        say(f"{len(future)} files had a time that is yet to come, as of a clock that was set back.")
    return len(future)


def check_writable(files: Iterable[str]) -> None:
    """Raises ConfigurationError for the first folder into which one of these files cannot be written."""
    for folder in dict.fromkeys(Path(file).parent for file in files):
        there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
        if not os.access(there, os.W_OK | os.X_OK):
            raise ConfigurationError(
                f"{there} cannot be written to, and {folder} is to hold what this run makes: make it writable, or "
                "name another place with --directory."
            )
