"""MKL, for frameworks that bring one which takes its slow code on processors that are not Intel's.

Plain Python that 3.6 can import: standard library.
"""

import os


def find_kernels():
    """Makes an MKL up to 2020.0 take its code for AVX2 on a processor that has it; call it before MKL is loaded.

    MKL asks for the maker's name first, and takes code for SSE where that is not Intel. Returns what was done.
    """
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
