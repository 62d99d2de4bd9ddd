"""A cell, one point of the grid, is one measurement and one shard. Here are its axes, its key and its files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.precisions import PRECISIONS, USUAL, marked
from steptime.tasks import TASKS

# The folder of shards below the results.
FOLDER = "cells"
# The columns that identify a cell in rows, where its repeats have all of them in common. A cell's `network` is in rows
# `network` and `variant`, which is '' for the network itself.
IDENTITY = [
    "platform",
    "environment",
    "mode",
    "precision",
    "task",
    "network",
    "variant",
    "dataset",
    "device",
    "devices",
    "exchange",
    "threads",
    "batch",
]


def without(*names: str) -> list[str]:
    """Returns the columns of IDENTITY but these."""
    return [name for name in IDENTITY if name not in names]


# What cells have in common that are compared: all but who does the work.
PLACE = without("environment", "mode")
# The mode of a user who leaves every switch of a framework alone.
PLAIN = "plain"
# What cells have in common that are on one line over the size of the mini-batch.
LINE = without("batch")

# What follows in the name of a proof for several devices, or for a task that training steps do not prove. Names of
# networks and data sets have no dot.
APART = [name for name, task in TASKS.items() if task.proof]
MARK = "|".join(["", r"\.d\d+[a-z]+", *(rf"\.{name}" for name in APART)])
# What follows in the name of a reference for another precision than the usual one.
ROUNDED = "|".join(["", *(f"-{name}" for name in PRECISIONS if name != USUAL)])


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid. `dataset` is '' unless it is a training; `exchange` is '' on one device."""

    platform: str
    environment: str
    framework: str
    mode: str
    precision: str
    task: str
    network: str
    dataset: str
    batch: int
    threads: int
    device: str
    devices: int
    exchange: str
    repeat: int

    @property
    def key(self) -> str:
        return key_of(self.facts())

    @property
    def proof(self) -> str:
        return proof_name(self.facts())

    def facts(self) -> dict[str, Any]:
        # Not `asdict`, which copies the values too and takes ten times as long: there are thousands of cells.
        return {name: getattr(self, name) for name in self.__slots__}


def key_of(axes: Mapping[str, Any]) -> str:
    """Returns a cell's key from its axes or from a row: its shard's path below FOLDER, without the ending."""
    network = network_of(axes)
    subject = f"{network}.{axes['dataset']}" if axes["dataset"] else network
    return (
        f"{axes['platform']}/{axes['task']}/{axes['environment']}.{axes['mode']}.{axes['precision']}"
        f"-{subject}-b{axes['batch']}-t{axes['threads']}-d{axes['devices']}{axes['exchange']}"
        f"-r{axes['repeat']}"
    )


def network_of(axes: Mapping[str, Any]) -> str:
    """Returns the network of a cell, from its axes or from a row; a variant has its own name."""
    network: str = axes.get("variant") or axes["network"]
    return network


def proof_name(axes: Mapping[str, Any]) -> str:
    """Returns the name of the proof of a cell, from its axes or from a row of its shard."""
    return f"{axes['environment']}.{axes['mode']}-{network_of(axes)}{proof_mark(axes)}"


def proof_mark(axes: Mapping[str, Any]) -> str:
    """Returns the end of such a name: devices and exchange, if several, and a task that has its own proof."""
    devices = f".d{axes['devices']}{axes['exchange']}" if axes["devices"] > 1 else ""
    return devices + (f".{axes['task']}" if axes.get("task") in APART else "")


def apart_of(text: str) -> dict[str, Any]:
    """Returns devices and exchange, or the task, from the text that MARK matches; {} from ''."""
    match = re.fullmatch(r"\.d(\d+)([a-z]+)", text)
    if match:
        return {"devices": int(match[1]), "exchange": match[2]}
    return {"task": text.removeprefix(".")} if text else {}


def precision_of(text: str) -> str:
    """Returns the precision from the text that ROUNDED matches."""
    return text.removeprefix("-") or USUAL


def proof_path(name: str) -> str:
    return f"results/proofs/{name}.json"


def manifest_path(environment: str) -> str:
    """Returns the path of an environment's manifest."""
    return f"results/environments/{environment}.json"


def reference_path(axes: Mapping[str, Any]) -> str:
    """Returns the path of the reference with which steps of cells with these axes are compared."""
    rounded = marked(axes["precision"], "-")
    return f"results/references/{axes['network']}-b{axes['batch']}{rounded}.npz"


def images_of(dataset: str) -> list[str]:
    """Returns the paths of a data set's images to train on and to test on; [] for ''."""
    splits = ("train", "test") if dataset else ()
    return [f"results/datasets/{dataset}/{split}.npz" for split in splits]


def carried(reference: Path) -> Path:
    """Returns the path of the same reference from another machine: it judges no cell that is measured here."""
    return reference.parent / "carried" / reference.name


def shard_path(key: str, results: str = "results") -> str:
    return f"{results}/{FOLDER}/{key}.parquet"
