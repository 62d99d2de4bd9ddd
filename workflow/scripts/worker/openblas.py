"""OpenBLAS, for frameworks that cannot be asked: what it says of itself, and kernels that an old one does not find."""

import ctypes
import os

# Kernels that use AVX2, under the names that `openblas_get_corename` gives them.
WITH_AVX2 = ("Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids", "Excavator")


def find_kernels(load):
    """Makes an OpenBLAS that is older than the processor take kernels with AVX2; call it before the library is loaded.

    A processor that it does not know is one of 2007 to it, which takes 2.3 times as long for a product here. It reads
    OPENBLAS_CORETYPE when it is loaded, so a child loads it first, with `load()`, to see. Returns what was done.
    """
    with open("/proc/cpuinfo") as lines:
        able = any(line.startswith("flags") and " avx2" in line for line in lines)
    if not able or "OPENBLAS_CORETYPE" in os.environ:
        return "OpenBLAS's own choice"
    child = os.fork()
    if not child:
        load()
        os._exit(
            any(
                _text(library, "get_corename", suffix) not in WITH_AVX2
                for library, suffix in _loaded()
            )
        )
    if os.waitpid(child, 0)[1] == 0:
        return "OpenBLAS's own choice"
    os.environ["OPENBLAS_CORETYPE"] = "Haswell"
    return "Haswell, set since OpenBLAS does not know this processor"


def describe():
    """Version and kernel of each loaded OpenBLAS, as one string; "" where there is none."""
    return "; ".join(
        "{} runs {}".format(
            _text(library, "get_config", suffix), _text(library, "get_corename", suffix)
        )
        for library, suffix in _loaded()
    )


def count_threads():
    """The largest number of threads that a loaded OpenBLAS uses; 1 where there is none."""
    counts = [
        getattr(library, "openblas_get_num_threads" + suffix)() for library, suffix in _loaded()
    ]
    return max(counts + [1])


def _loaded():
    """Loaded libraries with the ending of their functions' names: wheels of numpy have one with 64-bit integers."""
    with open("/proc/self/maps") as lines:
        paths = sorted({line.split()[-1] for line in lines if "openblas" in line})
    found = []
    for path in paths:
        library = ctypes.CDLL(path)
        for suffix in ("", "64_"):
            if hasattr(library, "openblas_get_num_threads" + suffix):
                found.append((library, suffix))
    return found


def _text(library, name, suffix):
    function = getattr(library, "openblas_" + name + suffix)
    function.restype = ctypes.c_char_p
    return function().decode()
