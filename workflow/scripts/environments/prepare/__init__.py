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

The code of the step, and of the modules of this folder that it imports, belongs to the environment's digest.
"""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path

import configuration

FOLDER = Path(__file__).parent


class InstallError(Exception):
    """An environment cannot be made; the text says why and what to do, without paths of this machine."""


def step(name: str) -> Callable[..., dict[str, str]]:
    """The function `prepare` of a step."""
    return importlib.import_module(f"{__name__}.{name}").prepare


def digest(name: str) -> str:
    """Digest of what a step does, with the modules of this folder that it imports; '' for no step."""
    if not name:
        return ""
    files, found = [FOLDER / f"{name}.py"], []
    while files:
        path = files.pop()
        if path in found or not path.is_file():
            continue
        found.append(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(__name__):
                named = [node.module.removeprefix(__name__).removeprefix("."), *(alias.name for alias in node.names)]
                files += [FOLDER / f"{each}.py" for each in named if each]
    return configuration.code_digest(sorted(found))
