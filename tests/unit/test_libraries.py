"""What compiled libraries are made of: of a compiler's own, and of NumPy's BLAS."""

import ctypes
import shutil
import subprocess

import pytest

from steptime.environments import libraries

# Each twice, once with registers that need another encoding; what multiplies doubles or single numbers is not counted.
MULTIPLIES = {
    "SSE": ["mulps %xmm1, %xmm2", "mulps %xmm9, %xmm12"],
    "AVX": ["vmulps %ymm1, %ymm2, %ymm3", "vmulps %ymm1, %ymm12, %ymm9"],
    "AVX2": ["vfmadd231ps %ymm1, %ymm2, %ymm3", "vfmadd213ps %ymm9, %ymm12, %ymm14"],
    "AVX-512": ["vmulps %zmm1, %zmm2, %zmm3", "vfmadd132ps %zmm9, %zmm22, %zmm31"],
}
NOT_COUNTED = [
    "mulss %xmm1, %xmm9",
    "mulsd %xmm9, %xmm1",
    "mulpd %xmm1, %xmm2",
    "vmulpd %ymm1, %ymm2, %ymm3",
]
TIMES = libraries.LEAST_MULTIPLIES


@pytest.mark.skipif(
    shutil.which("gcc") is None, reason="there is no assembler to make libraries with"
)
@pytest.mark.parametrize("vector", MULTIPLIES)
def test_a_library_is_known_by_the_instructions_that_multiply(tmp_path, vector):
    lines = [f".rept {TIMES}", *MULTIPLIES["SSE"], *MULTIPLIES[vector], *NOT_COUNTED, ".endr"]
    (tmp_path / "source.s").write_text("\n".join([".text", *lines, ""]))
    folder = tmp_path / "lib/python3.6/site-packages/framework"
    folder.mkdir(parents=True)
    subprocess.run(["gcc", "-shared", tmp_path / "source.s", "-o", folder / "part.so"], check=True)
    found = libraries.inspect(tmp_path)
    assert list(found) == ["framework/part.so"]
    assert found["framework/part.so"]["vector"] == vector
    expected = dict.fromkeys(MULTIPLIES, 0) | {"SSE": 2 * TIMES}
    expected[vector] = expected[vector] + 2 * TIMES
    assert found["framework/part.so"]["multiplies"] == expected


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no compiler")
def test_no_library_is_left_with_a_stack_that_new_systems_refuse(tmp_path):
    """After c8-mxnet-new-glibc: in the installer's cache, which has the same file, nothing changes."""
    (tmp_path / "source.c").write_text("int answer(void) { return 42; }\n")
    cached, prefix = tmp_path / "cache.so", tmp_path / "prefix"
    for flag, path in (("execstack", cached), ("noexecstack", prefix / "lib/other.so.1")):
        path.parent.mkdir(parents=True, exist_ok=True)
        command = ["gcc", "-shared", "-z", flag, tmp_path / "source.c", "-o", path]
        subprocess.run(command, check=True)
    library, before = prefix / "lib/libmxnet.so", cached.read_bytes()
    library.hardlink_to(cached)
    (prefix / "text.so").write_bytes(b"\x7fELF\x02")
    ((path, place),) = libraries.executable_stacks(prefix).items()
    assert path == library
    libraries.clear(path, place)
    assert not libraries.executable_stacks(prefix) and cached.read_bytes() == before
    assert ctypes.CDLL(str(library)).answer() == 42
    changed = [
        i for i, (a, b) in enumerate(zip(before, library.read_bytes(), strict=True)) if a != b
    ]
    assert changed == [place]


def entry(vector="SSE", multiplies=1000, holds=()):
    return {"vector": vector, "multiplies": {vector: multiplies}, "holds": list(holds)}


def test_numpy_s_own_code_counts_only_for_a_framework_without_any():
    numpy = {"numpy.libs/libopenblas.so": entry("AVX-512", 90_000, ["OpenBLAS"])}
    old = numpy | {
        "tensorflow/_pywrap.so": entry("SSE", 20_000, ["Eigen"]),
        "h5py/h5.so": entry("AVX", 600),
    }
    slow = {"vector": "SSE", "blas": ["Eigen"], "at_run_time": False}
    assert libraries.summarise(libraries.used(old, list(old))) == slow
    assert libraries.summarise(libraries.used(old, list(numpy)))["vector"] == "AVX-512"
    assert libraries.summarise(numpy, told=True)["vector"] == "AVX2"
    assert libraries.summarise(libraries.used(old, []))["vector"] == ""
