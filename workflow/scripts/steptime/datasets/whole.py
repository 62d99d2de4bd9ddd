"""Checks that the files of a data set are what they say, before a network is trained on them."""

import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from steptime.datasets import DatasetError, sums


def check(entry: dict[str, Any], train: Path, test: Path) -> str:
    """Returns the sums of both splits of a data set, after comparing them with the arrays.

    `entry` is {} for a data set outside of the catalogue. Raises DatasetError for a file that was changed, or is of
    another data set or split.
    """
    told = sums(train, test)
    for split, path in (("train", train), ("test", test)):
        try:
            with np.load(path, allow_pickle=False) as content:
                images, labels, digest = map(content.__getitem__, ("images", "labels", "sha256"))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise DatasetError(f"{path} is broken ({error}): remove it, and run again.") from error
        computed = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
        wanted = (entry["counts"][split], *entry["shape"]) if entry else images.shape
        if images.shape != wanted or computed != str(digest):
            of = f" of {entry['label']}" if entry else ""
            raise DatasetError(
                f"{path} does not hold the {wanted[0]:,} images{of} that it should: remove it, and run again."
            )
    return told
