"""A stand-in for Open MPI 1.10, with which the packages of CNTK 2 are linked, and which a single process never calls.

CNTK's libraries ask for libmpi.so.12 and libmpi_cxx.so.1 when they are loaded. No distribution of today has them, and
no package index. The stand-in is compiled from the names that CNTK's libraries leave undefined: a function that is
called prints its name and ends the process, an object is a piece of empty memory. It is beside those libraries, where
they look first.
"""

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from steptime.environments.prepare import InstallError

SONAMES = ("libmpi.so.12", "libmpi_cxx.so.1")
# Names of Open MPI's C interface, of the C++ classes that mpi.h of that time brings in, and of what both refer to.
OF_MPI = re.compile(r"MPI_\w+|_ZNK?3MPI\w+|ompi_\w+")
# All other names in ompi_ are objects, such as ompi_mpi_comm_world, whose address is the handle.
FUNCTIONS_OF_OMPI = ("ompi_mpi_cxx_op_intercept", "ompi_op_set_cxx_callback")
# No object of Open MPI 1.10 is larger (ompi_mpi_comm_world, padded for binary compatibility, has 512 bytes).
OBJECT_BYTES = 1024
HEAD = r"""
#include <stdio.h>
#include <stdlib.h>
#define FUNCTION(name) \
    void name(void) { fputs("stand-in for Open MPI: " #name " was called\n", stderr); abort(); }
#define OBJECT(name) char name[%d];
""".lstrip()


def prepare(prefix: Path, run: Callable[..., CompletedProcess[str]]) -> dict[str, str]:
    """Compiles the stand-in into CNTK's folder of libraries."""
    folder = next(prefix.glob("lib/python3*/site-packages/cntk/libs"), None)
    if folder is None:
        raise InstallError(
            "the package cntk has no folder 'libs' to put the stand-in for Open MPI into"
        )
    asking = [
        library
        for library in sorted(folder.parent.rglob("*.so*"))
        if b"libmpi.so.12" in library.read_bytes()
    ]
    listed = run("nm", "--dynamic", "--undefined-only", "--format=posix", *asking)
    if listed.returncode:
        raise InstallError(
            "the names that CNTK asks of Open MPI cannot be read: install nm and gcc (binutils, gcc)"
        )
    names = sorted(
        {name for name in map(_name, listed.stdout.splitlines()) if OF_MPI.fullmatch(name)}
    )
    objects = [name for name in names if name.startswith("ompi_") and name not in FUNCTIONS_OF_OMPI]
    lines = [f"{'OBJECT' if name in objects else 'FUNCTION'}({name})" for name in names]
    source = folder / "standin.c"
    source.write_text(HEAD % OBJECT_BYTES + "\n".join(lines) + "\n")
    for soname in SONAMES:
        options = ("-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}", "-o", folder / soname)
        if run("gcc", *options, source).returncode:
            raise InstallError("the stand-in for Open MPI cannot be compiled: install gcc")
    return {"Open MPI 1.10": "a stub MPI library, which single-process training never calls"}


def _name(line: str) -> str:
    """Returns the name of a symbol in a line of nm, without its version."""
    return line.partition(" ")[0].partition("@")[0]
