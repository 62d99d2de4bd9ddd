"""How many bits the products of a GPU keep, found by one that shows it."""

import numpy as np

from shared.precisions import PRECISIONS, USUAL

from .contract import NotEquivalent

# As large as makes libraries take their fast ways.
SIZE = 512
# Behind the first one, of a float32.
BITS = PRECISIONS[USUAL].bits


def kept_bits(product):
    """The bits of float32 that `product` keeps, a function of two matrices: of numbers times one, what comes back."""
    numbers = 1 + 2.0 ** -(1 + np.arange(SIZE) % BITS)
    left = np.repeat(numbers[:, None], SIZE, 1).astype(np.float32)
    found = np.asarray(product(left, np.eye(SIZE, dtype=np.float32)))
    right = (found == left).all(1)
    lost = [bit for bit in range(BITS) if not right[bit::BITS].all()]
    return min(lost) if lost else BITS


def require(precision, product):
    """Raises NotEquivalent where the products of a GPU keep other bits than those of a precision."""
    kept, wanted = kept_bits(product), PRECISIONS[precision].bits
    if kept == wanted:
        return
    words = "products on this GPU keep {} of {} bits, and those of {} keep {}: "
    words += "the GPU has none, or what was set for them has no effect"
    raise NotEquivalent(words.format(kept, BITS, precision, wanted))
