"""The stand-in for Open MPI: what CNTK's libraries ask for is there, and no call of it goes unnoticed."""

import ctypes
import shutil
import subprocess
import sys

import pytest

from steptime.environments import prepare
from steptime.environments.prepare import cuda10, gfortran, openmpi

# Asks for a function, for an object and for a method of a C++ class, as CNTK's libraries do.
ASKS = """
extern char ompi_mpi_comm_world[];
int MPI_Comm_rank(void *, int *);
void _ZN3MPI3Win4FreeEv(void);
void *world(void) { return ompi_mpi_comm_world; }
int rank(void) { int here; return MPI_Comm_rank(ompi_mpi_comm_world, &here); }
void release(void) { _ZN3MPI3Win4FreeEv(); }
"""


def run(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "")


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "lib/python3.6/site-packages"
    (folder / "cntk/libs").mkdir(parents=True)
    return folder


def test_a_library_that_is_linked_with_open_mpi_loads_and_a_call_ends_the_process(
    tmp_path, packages
):
    libs = packages / "cntk/libs"
    source = tmp_path / "asks.c"
    source.write_text(ASKS)
    for soname in openmpi.SONAMES:
        subprocess.run(
            ["gcc", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{soname}", "-o", libs / soname]
        )
    linked = ["-Wl,--no-as-needed", f"-L{libs}", *(f"-l:{soname}" for soname in openmpi.SONAMES)]
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        source,
        "-o",
        libs / "libasks.so",
        "-Wl,-rpath,$ORIGIN",
        *linked,
    ]
    subprocess.run(command, check=True)
    for soname in openmpi.SONAMES:
        (libs / soname).unlink()

    said = openmpi.prepare(tmp_path, run)
    assert "stub MPI library" in said["Open MPI 1.10"]
    load = f"import ctypes; library = ctypes.CDLL({str(libs / 'libasks.so')!r}); "
    load += "assert library.world(); print('loaded')"
    for called, name in (
        ("", ""),
        ("; library.rank()", "MPI_Comm_rank"),
        ("; library.release()", "_ZN3MPI3Win4FreeEv"),
    ):
        done = run(sys.executable, "-c", load + called)
        assert (done.returncode == 0) == (not name)
        assert name in done.stderr


def test_without_a_compiler_the_reason_says_what_to_install(tmp_path, packages):
    (packages / "cntk/libs/libasks.so").write_bytes(b"libmpi.so.12")
    with pytest.raises(prepare.InstallError, match="install nm and gcc"):
        openmpi.prepare(tmp_path, lambda *_: run("there-is-no-such-program"))


def test_the_fortran_library_of_numpy_gets_its_old_name(tmp_path, packages):
    with pytest.raises(prepare.InstallError, match="pin one up to 1.16.6"):
        gfortran.prepare(tmp_path, run)
    (packages / "numpy/.libs").mkdir(parents=True)
    (packages / "numpy/.libs/libgfortran-ed201abd.so.3.0.0").write_text("code")
    gfortran.prepare(tmp_path, run)
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    shutil.move(tmp_path, moved)
    assert (moved / "lib/gfortran/libgfortran.so.3").read_text() == "code", moved


def test_the_libraries_of_cuda_that_no_package_has_are_empty_ones(tmp_path, packages):
    libs = packages / "cntk/libs"
    said = cuda10.prepare(tmp_path, run)
    assert "empty" in said["cuFFT, cuSOLVER 10.0"]
    for soname in cuda10.SONAMES:
        ctypes.CDLL(str(libs / soname))
    with pytest.raises(prepare.InstallError, match="install gcc"):
        cuda10.prepare(tmp_path, lambda *_: run("there-is-no-such-program"))
