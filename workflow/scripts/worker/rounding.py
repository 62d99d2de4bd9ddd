"""Finds how many bits a framework's products keep, and which unit of a CPU adds them, by products that show it."""

import numpy as np

from shared.precisions import PRECISIONS, USUAL

from .contract import NotEquivalent

# As large as makes libraries take their fast ways.
SIZE = 512
# Behind the first one, of a float32.
BITS = PRECISIONS[USUAL].bits
# Four products whose sum is 0 if they are added one after another. VDPBF16PS adds the second of two first, TDPBF16PS
# adds first ones and second ones separately (Intel 64 and IA-32 Architectures Software Developer's Manual).
FACTORS = (2.0**12, 1.0, 0.5, -(2.0**12)), (2.0**12, 1.0, 1.0, 2.0**12)
UNITS = {0.5: ("AVX-512 BF16", "avx512_bf16"), 1.0: ("AMX", "amx_bf16")}


def kept_bits(product):
    """Returns the bits of float32 that `product`, a function of two matrices, keeps of numbers multiplied by one."""
    numbers = 1 + 2.0 ** -(1 + np.arange(SIZE) % BITS)
    left = np.repeat(numbers[:, None], SIZE, 1).astype(np.float32)
    found = np.asarray(product(left, np.eye(SIZE, dtype=np.float32)))
    right = (found == left).all(1)
    lost = [bit for bit in range(BITS) if not right[bit::BITS].all()]
    return min(lost) if lost else BITS


def require(precision, product):
    """Raises NotEquivalent where products do not keep the bits of a precision."""
    kept, wanted = kept_bits(product), PRECISIONS[precision].bits
    if kept == wanted:
        return
    words = "products here keep {} of {} bits, and those of {} keep {}: "
    words += "there are none, or what was set for them has no effect"
    raise NotEquivalent(words.format(kept, BITS, precision, wanted))


def unit(product):
    """Returns the unit that adds products of bfloat16 on this CPU, by the order in which `product` adds them."""
    left, right = np.zeros((2, SIZE, SIZE), np.float32)
    left[:, :4], right[:4] = FACTORS[0], np.array(FACTORS[1])[:, None]
    found = np.unique(np.asarray(product(left, right)))
    shown, flag = UNITS.get(float(found[0]) if len(found) == 1 else 0.0, ("", ""))
    # Shifts may follow the order of VDPBF16PS, but both units take numbers below the normal ones for 0.
    tiny = np.full((SIZE, SIZE), 2.0**-130, np.float32)
    kept = np.asarray(product(tiny, 2.0**20 * np.eye(SIZE, dtype=np.float32))).any()
    return shown if flag in flags() and not kept else "emulated by shifts"


def flags():
    """Returns the kernel's words for what this CPU has."""
    with open("/proc/cpuinfo") as lines:
        return next((line.split() for line in lines if line.startswith("flags")), [])


def in_bfloat16(product):
    """Returns settings that name the unit that multiplies; raises NotEquivalent where products are not of bfloat16."""
    require("bfloat16", product)
    return {"bfloat16": unit(product)}
