"""Finds the vector instructions and the linear algebra in the compiled libraries of an environment.

The same network takes twice as long where multiplications use 128-bit registers. The instructions that multiply packed
floats are counted, and linear algebra is recognised by texts that only it holds. No library is loaded.
"""

import mmap
import re
import shutil
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

Libraries = dict[str, dict[str, Any]]


def _some(accepted: Callable[[int], int | bool]) -> bytes:
    """Returns a class of a regular expression: all bytes for which `accepted` is true."""
    return b"[" + b"".join(b"\\x%02x" % value for value in range(256) if accepted(value)) + b"]"


# Encodings of the multiplication of packed single-precision numbers, narrowest registers first: MULPS (128 bits),
# VMULPS of 256 bits, FMA of 256 bits, either of 512 bits. Intel 64 and IA-32 Architectures Software Developer's Manual,
# volume 2: sections 2.3 (VEX), 2.7 (EVEX) and the instructions' own pages.
MULTIPLIES = {
    "SSE": rb"\x0f\x59",
    "AVX": rb"\xc5" + _some(lambda byte: byte & 0x07 == 0x04) + rb"\x59",
    "AVX2": rb"\xc4"
    + _some(lambda b: b & 0x1F == 0x02)
    + _some(lambda b: b & 0x87 == 0x05)
    + rb"[\x98\xa8\xb8]",
    "AVX-512": rb"\x62"
    + _some(lambda byte: byte & 0x0F in (0x01, 0x02))
    + _some(lambda byte: byte & 0x87 in (0x04, 0x05))
    + _some(lambda byte: byte & 0x60 == 0x40)
    + rb"[\x59\x98\xa8\xb8]",
}
PATTERNS = {name: re.compile(pattern, re.DOTALL) for name, pattern in MULTIPLIES.items()}
# With one of these before it, and perhaps a REX byte between, MULPS is of doubles or of scalars.
OTHERS, REX = b"\x66\xf2\xf3", range(0x40, 0x50)
# Texts that a library holds when this is in it, not when it only calls it.
HOLDS = {
    "OpenBLAS": (b"OPENBLAS_NUM_THREADS",),
    "MKL": (b"Math Kernel Library", b"Intel MKL ERROR", b"Intel MKL FATAL ERROR"),
    "ATLAS": (b"ATL_sgemm",),
    "BLIS": (b"BLIS_NUM_THREADS",),
    "oneDNN": (b"oneDNN v%d", b"DNNL v%d", b"dnnl_verbose", b"mkldnn_verbose"),
    "Eigen": (b"5Eigen8internal",),
    "LLVM": (b"LLVM ERROR",),
}
# How an ELF file of 64 bits begins. Of its program headers: kinds, a flag, and how many bytes hold all of them.
ELF = b"\x7fELF\x02"
LOAD, STACK, EXECUTABLE, HEADERS = 1, 0x6474E551, 1, 4096
# These make code for the processor at hand while they run.
AT_RUN_TIME = ("oneDNN", "LLVM")
REFERENCE = "reference BLAS"
# Parts of other instructions and data look like one of ours now and then.
LEAST_SHARE = 0.01
# Below this, a library does no arithmetic that matters.
LEAST_MULTIPLIES = 500
# A library with less than this share of the multiplications does not decide what its framework is.
LEAST_PART = 0.05
# What frameworks compute with only when they have no compiled code of their own.
NUMPY = re.compile(r"(?:numpy|scipy)(?:\.libs|\.\w+)?/")


def inspect(prefix: Path) -> Libraries:
    """Returns the libraries below `prefix` that do arithmetic, by path, which is relative to site-packages for
    packages.

    Each has `vector`, the widest kind of MULTIPLIES that it has many of, the counts of all as `multiplies`, and which
    of HOLDS it `holds`.
    """
    inspected: Libraries = {}
    for path in sorted(prefix.rglob("*.so*")):
        name = name_of(path, prefix)
        if name and path.is_file() and not path.is_symlink() and (about := _read(path)):
            inspected[name] = about
    return inspected


def name_of(path: Path, prefix: Path) -> str:
    """Names a library below `prefix`; '' for one of Python, of NVIDIA's packages, or from elsewhere."""
    if not path.is_relative_to(prefix):
        return ""
    parts = path.relative_to(prefix).parts
    if parts[0] == "lib64":
        parts = ("lib", *parts[1:])
    if parts[0] == "lib" and len(parts) > 2 and parts[1].startswith("python"):
        own = parts[2] == "site-packages" and parts[3] != "nvidia"
        return "/".join(parts[3:]) if own else ""
    return "" if parts[0] in ("home", "bin", "conda-meta") else "/".join(parts)


def used(libraries: Libraries, loaded: Collection[str]) -> Libraries:
    """Returns the libraries that a worker had loaded and computes with; NumPy's only where a framework has none."""
    there = {name: about for name, about in libraries.items() if name in loaded}
    own = {name: about for name, about in there.items() if not NUMPY.match(name)}
    return own if any(_total(about) >= LEAST_MULTIPLIES for about in own.values()) else there


def summarise(libraries: Libraries, told: bool = False) -> dict[str, Any]:
    """Returns the widest registers or '' (AVX2 if `told` so), `blas`, and whether any makes code `at_run_time`."""
    total = sum(map(_total, libraries.values()))
    deciding = [
        "AVX2" if told and {"MKL", "OpenBLAS"} & {*about["holds"]} else about["vector"]
        for about in libraries.values()
        if total and _total(about) >= LEAST_PART * total
    ]
    kinds = list(MULTIPLIES)
    holds = list(dict.fromkeys(each for about in libraries.values() for each in about["holds"]))
    return {
        "vector": max(deciding, key=kinds.index, default=""),
        "blas": [each for each in holds if each != "LLVM"],
        "at_run_time": any(each in AT_RUN_TIME for each in holds),
    }


def registers(known: Mapping[str, Any]) -> str:
    """Writes the widest registers that `summarise` found, and whether code is made at run time; '' where not known."""
    return ", ".join(filter(None, (known["vector"], "at run time" if known["at_run_time"] else "")))


def _total(about: dict[str, Any]) -> int:
    return sum(about["multiplies"].values())


def _read(path: Path) -> dict[str, Any] | None:
    """Inspects one library; None for one that does no arithmetic, and for a file that is no x86-64 library."""
    with path.open("rb") as file:
        if file.read(5) != ELF:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if struct.unpack_from("<H", content, 18)[0] != 62:
                return None
            spans = []
            for at, kind, flags in _segments(content):
                if kind == LOAD and flags & EXECUTABLE:
                    begin, _, _, length = struct.unpack_from("<QQQQ", content, at + 8)
                    spans.append((begin, begin + length))
            counts = {
                name: sum(
                    name != "SSE" or _is_packed(content, found.start())
                    for span in spans
                    for found in pattern.finditer(content, *span)
                )
                for name, pattern in PATTERNS.items()
            }
            has = {name: any(content.find(text) >= 0 for text in HOLDS[name]) for name in HOLDS}
    holds = [name for name in HOLDS if has[name]]
    has_blas = {"OpenBLAS", "MKL", "ATLAS", "BLIS"} & {*holds}
    if path.name.startswith(("libblas.", "libcblas.")) and not has_blas:
        holds.append(REFERENCE)
    total = sum(counts.values())
    if total < LEAST_MULTIPLIES and not holds:
        return None
    widest = [name for name, count in counts.items() if total and count >= LEAST_SHARE * total]
    return {"vector": widest[-1] if widest else "SSE", "multiplies": counts, "holds": holds}


def _is_packed(content: mmap.mmap, at: int) -> bool:
    before, last = content[at - 2 : at]
    return last not in OTHERS and not (last in REX and before in OTHERS)


def _segments(content: bytes | mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Yields place, kind and flags of each program header of a content (elf(5))."""
    (offset,) = struct.unpack_from("<Q", content, 32)
    size, number = struct.unpack_from("<HH", content, 54)
    for at in range(offset, min(offset + number * size, len(content) - size + 1), size):
        yield at, *struct.unpack_from("<II", content, at)


def executable_stacks(prefix: Path) -> dict[Path, int]:
    """Returns the libraries below `prefix` that demand an executable stack, as glibc 2.41 refuses, and where."""
    stacks = {}
    for path in sorted(prefix.rglob("*.so*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                begin = file.read(HEADERS)
            if begin[:5] == ELF and len(begin) == HEADERS:
                for at, kind, flags in _segments(begin):
                    if kind == STACK and flags & EXECUTABLE:
                        stacks[path] = at + 4
    return stacks


def clear(path: Path, place: int) -> None:
    """Clears the flag at a place, in a copy: the file may be linked to an installer's cache."""
    copy = path.with_name(f".{path.name}.cleared")
    shutil.copy2(path, copy)
    with copy.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        content[place] &= ~EXECUTABLE
    copy.replace(path)
