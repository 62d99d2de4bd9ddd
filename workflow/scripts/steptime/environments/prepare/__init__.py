"""Preparing steps: what an environment needs besides packages, one module for each need.

`prepare` of a framework, or of one of its `differing` environments, in config/frameworks.yaml names the module. It runs
once when the packages of the environment stand, with the workflow's own Python, and offers:

`prepare(prefix, run)` -> dict of strings
    `prefix` is the environment's absolute folder (a `pathlib.Path`); nothing outside it is written. `run(*command,
    cwd=None)` runs a program with its output in the environment's log, and returns its `subprocess.CompletedProcess`;
    a program that is not there has the return code 127. It may compile, and fetch and unpack packages of the
    distribution, but needs no rights of an administrator. Where conda has put a real part below `prefix`, that one is
    used. Returns what a reader must know of each part that was added or stands in for a real one, such as
    {"libmpi.so.12": "a stand-in for single processes"}: it is shown beside every number. Raises `InstallError` with
    one clause, without a full stop, that says why it cannot be done and what to do.

A step may also offer `supply(prefix, wanted, run)`, which is called in place of the installers: it makes the
environment of the pins `wanted` and returns its packages with their versions.

The code of the step, and of the modules of this folder that it imports, belongs to the environment's digest.
"""

import importlib
from collections.abc import Callable
from pathlib import Path

from steptime.plan import digests

FOLDER = Path(__file__).parent


class InstallError(Exception):
    """An environment cannot be made; the text says why and what to do, without paths of this machine."""


def step(name: str) -> Callable[..., dict[str, str]]:
    """Returns the function `prepare` of a step."""
    return importlib.import_module(f"{__name__}.{name}").prepare


def supplier(name: str) -> Callable[..., dict[str, str]] | None:
    """Returns the function `supply` of a step; None where installers are called, and for no step."""
    return getattr(importlib.import_module(f"{__name__}.{name}"), "supply", None) if name else None


def digest(name: str) -> str:
    """Returns the digest of what a step does, with the modules of this folder that it imports; '' for no step."""
    if not name:
        return ""
    # Only files of this folder count: an edit elsewhere in the workflow makes no other environment.
    files = digests.closure(FOLDER / f"{name}.py")
    return digests.code_digest(
        file for file in files if file.parent == FOLDER and file != Path(__file__)
    )
