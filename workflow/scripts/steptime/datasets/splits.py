"""Reads the files of a data set, checks them, and writes one plain array file for each of its splits.

A file has `images` (uint8: count, channels, height, width), `labels` (int64: count), and as text `name`, `classes`,
`source` and the `sha256` of both arrays' bytes: every worker can read it, whatever its Python. The run says where the
files are.
"""

import argparse
import hashlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from steptime import project, run
from steptime.atomic import atomic_write
from steptime.datasets import DatasetError, files, formats
from steptime.reading import read_yaml

HELD_OUT = 0.2
SPLIT_SEED = 20181


def main() -> None:
    """Runs the command line; a mistake in the data ends it with one sentence."""
    parser = argparse.ArgumentParser(description="Write the splits of a data set as plain arrays.")
    parser.add_argument("--dataset", required=True, help="its name in config/datasets.yaml")
    for name in ("train", "test"):
        parser.add_argument(f"--{name}", required=True, type=Path, help="the file to write")
    options = parser.parse_args()
    catalogue = read_yaml(project.path("config/datasets.yaml"))
    location = run.facts().get("data", {}).get(options.dataset)
    try:
        prepare(catalogue[options.dataset], location, options.train, options.test)
    except DatasetError as error:
        sys.exit(f"{error}{rather(catalogue, options.dataset, location)}")


def rather(catalogue: dict[str, Any], wanted: str, location: str | None) -> str:
    """Says that the files at a path are a subset of the wanted data set, which has its own name; '' if not so."""
    for name, entry in catalogue.items():
        if location and "://" not in location and entry.get("subset_of") == wanted:
            try:
                files.fetch(entry, location)
            except DatasetError:
                continue
            return f" What lies there is {entry['label']}: write {name} in the place of {wanted}."
    return ""


def prepare(entry: dict[str, Any], location: str | None, train: Path, test: Path) -> None:
    """Writes both splits of a data set, or neither. Raises DatasetError."""
    if location is None and "package" not in entry:
        raise DatasetError(
            f"{entry['label']} is not there: write the folder, archive or URL of its files under 'data' in "
            "config/config.yaml, as docs/reference/training.md says."
        )
    version, contents, came_in = files.fetch(entry, location)
    splits = _splits(entry, version, contents)
    with ExitStack() as stack:
        for path, split in ((train, "train"), (test, "test")):
            images, labels = splits[split]
            words = {"name": entry["label"], "classes": entry["classes"], "source": came_in}
            words["sha256"] = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
            np.savez(stack.enter_context(atomic_write(path)), images=images, labels=labels, **words)


def _splits(
    entry: dict[str, Any], version: dict[str, Any], contents: dict[str, bytes]
) -> dict[str, formats.Split]:
    pickled = version["format"] == "cifar_python"
    if pickled:
        # A pickle can run code: what it is must be known before it is opened.
        _check_sums(entry, contents)
    found: dict[str, formats.Split] = {}
    try:
        for split in filter(version.get, ("train", "test", "all")):
            own = {name: contents[name] for name in version[split]}
            found[split] = formats.READERS[version["format"]](own)
    except ValueError as error:
        raise DatasetError(f"{entry['label']}: {error}.") from error
    for split, (images, labels) in found.items():
        wanted = sum(entry["counts"].values()) if split == "all" else entry["counts"][split]
        if images.shape != (wanted, *entry["shape"]):
            raise DatasetError(
                f"{entry['label']}: {', '.join(version[split])} hold {len(images):,} images of "
                f"{formats.shape_in_words(images.shape[1:])}, and {wanted:,} of "
                f"{formats.shape_in_words(entry['shape'])} are needed."
            )
        if labels.min() < 0 or labels.max() >= len(entry["classes"]):
            raise DatasetError(
                f"{entry['label']}: there are labels outside of 0 to {len(entry['classes']) - 1}."
            )
    if not pickled:
        _check_sums(entry, contents)
    return _hold_out(*found["all"]) if "all" in found else found


def _check_sums(entry: dict[str, Any], contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        wanted = entry["sums"][name]
        algorithm = formats.SUMS[len(wanted)]
        if (digest := hashlib.new(algorithm, content).hexdigest()) != wanted:
            raise DatasetError(
                f"{entry['label']}: {name} is not the published file: its {algorithm} is {digest}, not {wanted}; "
                "fetch it again."
            )


def _hold_out(images: np.ndarray, labels: np.ndarray) -> dict[str, formats.Split]:
    """Splits a data set without test images: HELD_OUT of each class, by a fixed seed, in the order of the file."""
    random = np.random.RandomState(SPLIT_SEED)
    kept = np.ones(len(labels), bool)
    for label in np.unique(labels):
        own = random.permutation(np.flatnonzero(labels == label))
        kept[own[: round(HELD_OUT * len(own))]] = False
    return {"train": (images[kept], labels[kept]), "test": (images[~kept], labels[~kept])}


if __name__ == "__main__":
    main()
