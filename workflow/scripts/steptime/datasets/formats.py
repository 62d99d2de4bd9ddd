"""Reads the published forms of image data sets as arrays: images uint8 (count, channels, height, width), labels int64
(count,).

Each function takes the files of one split, as bytes by name, and raises ValueError with what is wrong with which file.
"""

import hashlib
import io
import math
import pickle
from collections.abc import Callable, Collection

import numpy as np

Split = tuple[np.ndarray, np.ndarray]
UNSIGNED_BYTES = 0x08
SUMS = {32: "md5", 40: "sha1", 64: "sha256"}
CIFAR_SHAPE = (3, 32, 32)


def idx(files: dict[str, bytes]) -> Split:
    """Reads MNIST's own form (LeCun, "The MNIST database of handwritten digits"): a file of images, one of labels."""
    images, labels = (_idx_array(name, content) for name, content in files.items())
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        names = " and ".join(files)
        raise ValueError(
            f"{names} hold arrays of {shape_in_words(images.shape)} and {shape_in_words(labels.shape)}, "
            "not images and their labels"
        )
    return images[:, None], labels.astype(np.int64)


def cifar_binary(files: dict[str, bytes]) -> Split:
    """Reads CIFAR-10's "binary version" (Krizhevsky 2009): records of a label and the planes red, green and blue."""
    size = 1 + math.prod(CIFAR_SHAPE)
    for name, content in files.items():
        if not content or len(content) % size:
            raise ValueError(
                f"{name} has {len(content):,} bytes, which is no whole number of records of {size:,}"
            )
    records = np.frombuffer(b"".join(files.values()), np.uint8).reshape(-1, size)
    return records[:, 1:].reshape(-1, *CIFAR_SHAPE).copy(), records[:, 0].astype(np.int64)


def cifar_python(files: dict[str, bytes]) -> Split:
    """Reads CIFAR-10's "python version": pickled dictionaries, which are opened only after their sums were checked."""
    batches = [pickle.loads(content, encoding="bytes") for content in files.values()]
    images = np.concatenate([batch[b"data"] for batch in batches])
    labels = np.concatenate([batch[b"labels"] for batch in batches])
    return images.reshape(-1, *CIFAR_SHAPE), labels.astype(np.int64)


def csv(files: dict[str, bytes]) -> Split:
    """Reads a line for each square image of one channel: its pixels by rows, 0 to 255, then its label."""
    ((name, content),) = files.items()
    try:
        table = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    except ValueError as error:
        raise ValueError(f"{name} is not a table of numbers ({error})") from error
    side = math.isqrt(table.shape[1] - 1)
    if side * side != table.shape[1] - 1 or not np.isin(table, np.arange(256)).all():
        raise ValueError(
            f"{name} has {table.shape[1]} columns, which are not the pixels of a square image and a label"
        )
    return table[:, :-1].astype(np.uint8).reshape(-1, 1, side, side), table[:, -1].astype(np.int64)


READERS: dict[str, Callable[[dict[str, bytes]], Split]] = {
    "idx": idx,
    "cifar_binary": cifar_binary,
    "cifar_python": cifar_python,
    "csv": csv,
}


def idx_of(array: np.ndarray) -> bytes:
    shape = np.array(array.shape, ">u4").tobytes()
    return bytes([0, 0, UNSIGNED_BYTES, array.ndim]) + shape + array.astype(np.uint8).tobytes()


def digests_of(content: bytes, wanted: Collection[str]) -> list[str]:
    """Returns the sums of `wanted` that a content has."""
    kinds = {SUMS[len(each)] for each in wanted}
    return [each for kind in kinds if (each := hashlib.new(kind, content).hexdigest()) in wanted]


def _idx_array(name: str, content: bytes) -> np.ndarray:
    if len(content) < 4 or content[:3] != bytes([0, 0, UNSIGNED_BYTES]):
        raise ValueError(f"{name} is not an IDX file of bytes")
    start = 4 + 4 * content[3]
    is_whole = len(content) >= start
    shape = np.frombuffer(content, ">u4", content[3], 4).tolist() if is_whole else [0]
    values = content[start:]
    if len(values) != math.prod(shape):
        raise ValueError(
            f"{name} announces {shape_in_words(shape)} bytes and holds {len(values):,}"
        )
    return np.frombuffer(values, np.uint8).reshape(shape)


def shape_in_words(shape: tuple[int, ...] | list[int]) -> str:
    """Returns a shape in words."""
    return " x ".join(map(str, shape))
