"""Caffe 1.0 for the CPU, as Debian 11 built it: no index of Python packages has it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from steptime.environments.prepare import debian

# OpenBLAS in the build that the BLAS variables of this project bind; otherwise apt picks the reference BLAS.
PACKAGES = ("libcaffe1", "libopenblas0-pthread", "libboost-python1.74.0")


def prepare(prefix: Path, run: Callable) -> dict[str, str]:
    """Unpacks Debian's packages below `prefix`/debian and lets the environment's Python see pycaffe."""
    system = prefix / "debian"
    versions = debian.unpack(system, run, "bullseye", PACKAGES, alone=["python3-caffe"])
    (packages,) = prefix.glob("lib/python3*/site-packages")
    shutil.copytree(system / "usr/lib/python3/dist-packages/caffe", packages / "caffe")
    return {name: f"Debian 11, {version}" for name, version in versions.items()}
