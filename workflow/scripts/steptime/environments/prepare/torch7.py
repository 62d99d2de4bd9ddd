"""Torch7 for the CPU, compiled from a folder with its source that the user names: no index of packages has it.

LuaJIT and OpenBLAS are Debian's. OpenBLAS is the build on OpenMP, as Torch7's own loops are: its products then share
the threads of those loops, and go on one thread inside them.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from steptime.environments.prepare import InstallError, debian

SOURCE = "STEPTIME_TORCH7"
# Each repository of the owner "torch", in the order in which they need each other, with a file that only it has.
PARTS = {
    "cwrap": "cinterface.lua",
    "paths": "paths.c",
    "torch7": "TensorMath.lua",
    "nn": "lib/THNN/generic/SpatialConvolutionMM.c",
}
PACKAGES = ("luajit", "libluajit-5.1-dev", "libopenblas0-openmp")
COMPILERS = ("gcc", "g++")
WITHOUT = shutil.ignore_patterns(".git")


def prepare(prefix: Path, run: Callable) -> dict[str, str]:
    """Compiles Torch7 below `prefix`/torch7, LuaJIT and OpenBLAS below `prefix`/debian; returns what it is made of."""
    source = _source()
    for program in COMPILERS:
        if shutil.which(program) is None:
            raise InstallError(
                f"Torch7 is compiled here, and there is no {program} on PATH: install GCC for C and C++"
            )
    system, home, build = prefix / "debian", prefix / "torch7", prefix / "torch7-build"
    versions = debian.unpack(system, run, "bookworm", PACKAGES)
    libraries = system / "usr/lib/x86_64-linux-gnu"
    # As its package for developers calls it, whose archive would be most of the environment.
    (libraries / "openblas-openmp/libopenblas.so").symlink_to("libopenblas.so.0")
    # Torch7's headers and LuaJIT's must be in one folder, and the folder's name must be include.
    shutil.copytree(system / "usr/include/luajit-2.1", home / "include")
    shutil.copytree(source / "cwrap", home / "lua/cwrap", ignore=WITHOUT)
    # nn asks for it when it is loaded, and uses it in the layer Convert alone.
    (home / "lua/moses.lua").write_text("return {}\n")
    for part in list(PARTS)[1:]:
        # A copy, since nn writes among its source.
        shutil.copytree(source / part, build / part, ignore=WITHOUT)
        _compile(build / part, prefix, run)
    shutil.rmtree(build)
    load = (
        f"package.path, package.cpath = {_paths(home)!r}, {str(home / 'lib/?.so')!r}; require 'nn'"
    )
    if (
        run(
            "env", f"LD_LIBRARY_PATH={_searched(libraries)}", system / "usr/bin/luajit", "-e", load
        ).returncode
        != 0
    ):
        raise InstallError(
            "Torch7 was compiled and does not load; the log of the environment says why"
        )
    commits = {part: _commit(source / part, run) for part in PARTS}
    # What the adapter calls its version: Torch7 has no numbers.
    (home / "commit").write_text(commits["torch7"])
    return {
        **{
            part: f"commit {commit}, from a folder with its source"
            for part, commit in commits.items()
        },
        "gcc": run("gcc", "-dumpfullversion").stdout.strip(),
        "moses": "an empty stand-in, for a layer of nn that is not used",
        **{name: f"Debian 12, {version}" for name, version in versions.items()},
    }


def _source() -> Path:
    named = os.environ.get(SOURCE)
    if not named:
        repositories = ", ".join(f"torch/{part}" for part in PARTS)
        raise InstallError(
            f"Torch7 is in no index of packages: clone {repositories}, its public repositories, into one folder, and "
            f"set {SOURCE} to that folder"
        )
    source = Path(named).expanduser()
    for part, file in PARTS.items():
        if not (source / part / file).is_file():
            raise InstallError(
                f"the folder that {SOURCE} names has no folder {part} with the source of torch/{part}: clone it there"
            )
    return source


def _compile(folder: Path, prefix: Path, run: Callable) -> None:
    system, home, tools = prefix / "debian", prefix / "torch7", prefix / "bin"
    libraries = system / "usr/lib/x86_64-linux-gnu"
    # Programs made of Lua are run to write some of the source.
    variables = {
        "LUA_PATH": f"./?.lua;{_paths(home)}",
        "LD_LIBRARY_PATH": _searched(libraries),
    }
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_MAKE_PROGRAM": tools / "ninja",
        "CMAKE_C_COMPILER": COMPILERS[0],
        "CMAKE_CXX_COMPILER": COMPILERS[1],
        # What was written before GCC 10 defines a variable in every file that names it.
        "CMAKE_C_FLAGS": "-fcommon -w",
        # nn goes there, the others where LUA_BINDIR is.
        "CMAKE_INSTALL_PREFIX": home,
        "CMAKE_PREFIX_PATH": home,
        "CMAKE_LIBRARY_PATH": libraries / "openblas-openmp",
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
        "WITH_BLAS": "open",
        "LUA": system / "usr/bin/luajit",
        "LUALIB": libraries / "libluajit-5.1.so.2",
        "LUA_BINDIR": home / "bin",
        "LUA_LIBDIR": home / "lib",
        "LUA_INCDIR": home / "include",
        "LUADIR": home / "lua",
        "LIBDIR": home / "lib",
    }
    settings = ["env", *(f"{name}={value}" for name, value in variables.items())]
    made = folder.with_name(f"{folder.name}-made")
    defined = [f"-D{name}={value}" for name, value in options.items()]
    for step in (
        ["-G", "Ninja", "-S", folder, "-B", made, *defined],
        ["--build", made, "--target", "install"],
    ):
        if run(*settings, tools / "cmake", *step).returncode != 0:
            raise InstallError(
                f"torch/{folder.name} could not be compiled; the log of the environment says why"
            )


def _paths(home: Path) -> str:
    """Returns the paths on which LuaJIT looks for Lua modules."""
    return f"{home}/lua/?.lua;{home}/lua/?/init.lua"


def _searched(libraries: Path) -> str:
    return f"{libraries}/openblas-openmp:{libraries}"


def _commit(folder: Path, run: Callable) -> str:
    """Returns the commit of a clone; without its history nobody knows."""
    done = (
        run("git", "-C", folder, "rev-parse", "--short=7", "HEAD")
        if (folder / ".git").exists()
        else None
    )
    return done.stdout.strip() if done and done.returncode == 0 else "unknown"
