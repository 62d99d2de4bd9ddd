"""Makes libraries of matrix products take fast code on processors that they do not know.

They choose when they are loaded. So an adapter names the library in `KERNELS`, and the worker calls `choose` before it
imports the adapter.
"""

import ctypes
import importlib
import importlib.util
import os

# OpenBLAS's kernels that use AVX2, under the names that `openblas_get_corename` gives them.
WITH_AVX2 = ("Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids", "Excavator")


def choose(library):
    """Makes a library take code for AVX2 on a processor that has it; returns what was done.

    "mkl" is an MKL up to 2020.0, "openblas:X" an OpenBLAS that comes with X: a module, a shared library, or one that is
    beside a module, as "mxnet/libopenblas.so.0".
    """
    name, _, loaded_by = library.partition(":")
    return {"mkl": _choose_mkl, "openblas": _choose_openblas}[name](*filter(None, [loaded_by]))


def _choose_mkl():
    """Makes MKL take fast code: it asks for the maker's name first, and takes code for SSE where that is not Intel."""
    with open("/proc/cpuinfo") as lines:
        facts = {name.strip(): value for name, _, value in (line.partition(":") for line in lines)}
    if (
        "Intel" in facts["vendor_id"]
        or " avx2" not in facts["flags"]
        or "MKL_DEBUG_CPU_TYPE" in os.environ
    ):
        return "MKL's own choice"
    os.environ["MKL_DEBUG_CPU_TYPE"] = "5"
    return "AVX2, set since MKL takes it by itself on Intel's processors only"


def _choose_openblas(loaded_by):
    """Makes OpenBLAS take AVX2 on a processor that it does not know (2.3 times as fast here); a child looks first."""
    with open("/proc/cpuinfo") as lines:
        able = any(line.startswith("flags") and " avx2" in line for line in lines)
    package, _, name = loaded_by.rpartition("/")
    if package:
        loaded_by = os.path.join(os.path.dirname(importlib.util.find_spec(package).origin), name)
        able = able and os.path.exists(loaded_by)
    if not able or "OPENBLAS_CORETYPE" in os.environ:
        return "OpenBLAS's own choice"
    child = os.fork()
    if not child:
        if ".so" in loaded_by:
            ctypes.CDLL(loaded_by)
        else:
            importlib.import_module(loaded_by)
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


def describe_openblas():
    """Returns version and kernel of each loaded OpenBLAS, as one string; "" where there is none."""
    return "; ".join(
        "{} runs {}".format(
            _text(library, "get_config", suffix), _text(library, "get_corename", suffix)
        )
        for library, suffix in _loaded()
    )


def count_threads():
    """Returns the largest number of threads that a loaded OpenBLAS uses; 1 where there is none."""
    counts = [
        getattr(library, "openblas_get_num_threads" + suffix)() for library, suffix in _loaded()
    ]
    return max(counts + [1])


def _loaded():
    """Returns loaded libraries with the ending of their functions' names: wheels of numpy have 64-bit integers."""
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
