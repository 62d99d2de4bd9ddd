"""Stand-ins for two libraries of CUDA 10.0 that no package brings: cuFFT and cuSOLVER.

TensorFlow 1.15 opens seven libraries of CUDA when it starts, and uses no GPU where one is missing. The package cntk-gpu
brings five of them. TensorFlow calls the other two when something is transformed or solved, which no network here does:
empty ones are enough, beside the real five.
"""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from steptime.environments.prepare import InstallError

SONAMES = ("libcufft.so.10.0", "libcusolver.so.10.0")


def prepare(prefix: Path, run: Callable[..., CompletedProcess[str]]) -> dict[str, str]:
    """Compiles the stand-ins into the folder of the real ones."""
    folder = next(prefix.glob("lib/python3*/site-packages/cntk/libs"), None)
    if folder is None:
        raise InstallError("the package cntk-gpu has no folder 'libs' with libraries of CUDA")
    source = folder / "empty.c"
    source.write_text("")
    for soname in SONAMES:
        options = ("-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", folder / soname)
        if run("gcc", *options, source).returncode:
            raise InstallError(
                "the stand-ins for cuFFT and cuSOLVER cannot be compiled: install gcc"
            )
    return {"cuFFT, cuSOLVER 10.0": "empty stand-ins, which nothing here calls"}
