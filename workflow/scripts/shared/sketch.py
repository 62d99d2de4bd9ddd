"""Sketches an array in a few hundred numbers, for both sides of a proof to compare: norm, projections, entries."""

import functools
import zlib

import numpy as np

SEED = 1123
# How many values stay in a processor's cache together with their signs.
PART = 2**15
SIGNS = 4 * PART
PROJECTIONS = 16
ENTRIES = 256
# Vectors are kept whole: a class that is left out is one entry of the last bias.
VECTOR = 2**15
# Gradients are read off float32 weights to this part of their length: so high is the rate of the step that shows them.
READING = 4e-6
# Entries drawn where an array is nearly 0 are compared with this share of what entries are like.
LEAST = 0.1


class Sketch(object):
    """`norm`; `projections` (PROJECTIONS), each the sum of a sixteenth of each part with random signs; and `entries`.

    The squares of a difference's projections add up, in the mean, to the square of its norm.
    """

    def __init__(self, norm, projections, entries):
        self.norm, self.projections, self.entries = float(norm), projections, entries


def take(name, shape, parts):
    """Returns the sketch of an array that comes flat in `parts`: float64, PART values each, the last one shorter."""
    wanted, signs = _positions(name, shape), _signs()
    squares, projections, entries, start = 0.0, np.zeros(PROJECTIONS), [], 0
    for number, part in enumerate(parts):
        # Other signs for each part: what repeats itself must not cancel.
        shift = number * 7919 % (SIGNS - PART)
        own, end = signs[shift : shift + len(part)], len(part) // PROJECTIONS * PROJECTIONS
        # Not products of BLAS's: its threads wait for those of the framework.
        projections += np.einsum(
            "ij,ij->i", part[:end].reshape(PROJECTIONS, -1), own[:end].reshape(PROJECTIONS, -1)
        )
        projections[: len(part) - end] += part[end:] * own[end:]
        squares += np.einsum("i,i->", part, part)
        first, last = np.searchsorted(wanted, [start, start + len(part)])
        entries.append(part[wanted[first:last] - start])
        start += len(part)
    return Sketch(np.sqrt(squares), projections, np.concatenate(entries))


def distance(found, true, share):
    """Returns how far a sketch is from the true one, as a share of the norm; `share` is the share of entries kept."""
    size = max(true.norm, 1e-300)
    apart = np.linalg.norm(found.projections - true.projections) / size
    longer = abs(found.norm - true.norm) / size
    off = np.linalg.norm(found.entries - true.entries)
    off /= max(np.linalg.norm(true.entries), LEAST * size * np.sqrt(share))
    return float(max(apart, longer, off))


def apart(found, true):
    """Returns the distance of two arrays by their sketches, not as a share; it is exact where all entries are kept."""
    return float(
        max(
            np.linalg.norm(found.projections - true.projections),
            np.linalg.norm(found.entries - true.entries),
        )
    )


def pieces(values, other=None, scale=1.0):
    """Yields parts for `take`, of an array, or of `scale` times its difference from another one of its shape."""
    values = in_one_piece(values).ravel()
    other = None if other is None else in_one_piece(other).ravel()
    for start in range(0, values.size, PART):
        part = values[start : start + PART].astype(np.float64)
        if other is not None:
            part -= other[start : start + PART]
            part *= scale
        yield part


def count_entries(shape):
    """Returns how many entries a sketch of an array of this shape keeps, and their share of all."""
    count = len(_positions("", shape))
    return count, count / max(1.0, float(np.prod(shape, dtype=np.int64)))


def _positions(name, shape):
    """Returns the places of the entries that are kept, in ascending order."""
    size = int(np.prod(shape, dtype=np.int64))
    if size <= ENTRIES or (len(shape) == 1 and size <= VECTOR):
        return np.arange(size)
    random = np.random.RandomState(zlib.crc32(name.encode()) & 0xFFFFFFFF)
    # One of each stretch, so that their number is the same for every name.
    edges = np.linspace(0, size, ENTRIES + 1).astype(np.int64)
    return edges[:-1] + (random.uniform(size=ENTRIES) * np.diff(edges)).astype(np.int64)


@functools.lru_cache(maxsize=None)
def _signs():
    return 2.0 * np.random.RandomState(SEED).randint(0, 2, SIGNS) - 1.0


def in_one_piece(values, rows=64):
    """Returns a contiguous copy of a transposed matrix, made by blocks of rows: four times as fast for a long one."""
    if values.ndim != 2 or values.flags.c_contiguous:
        return np.ascontiguousarray(values)
    copied, turned = np.empty(values.shape, values.dtype), values.T
    for start in range(0, len(turned), rows):
        copied[:, start : start + rows] = turned[start : start + rows].T
    return copied
