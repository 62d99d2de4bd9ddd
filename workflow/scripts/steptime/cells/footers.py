"""Reads what the footers of shards say, in plain Python: a planner may have Snakemake and nothing else.

A footer says what its shard was measured with. `differing` compares that with what a configuration asks for.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steptime.plain import few
from steptime.plan import digests
from steptime.plan.cell import IDENTITY, key_of, shard_path

# A pair of Parquet's metadata, in Thrift's compact protocol: a first field with this text, and the head of the second.
NAMED = b"\x18\x08steptime\x18"
END = b"PAR1"
# What is kept of the columns of a row, besides what is compared.
COLUMNS = ["status", "proof_id", "dataset_sha256", "machine_id", "workflow_commit", "proof_digest"]
COLUMNS += [*IDENTITY, "repeat"]
# What is compared, and what differs in words. `variables` is the digest of those that the worker got.
COMPARED = {
    "network_digest": "network",
    "parameters": "network",
    "worker_digest": "adapter",
    "variables": "variables",
    "environment_digest": "pins",
    "sampling_digest": "sampling",
}
# What cells of one network in one environment differ in.
VARIED = ("mode", "precision", "batch", "threads", "devices", "exchange", "repeat")
NEVER = math.inf

Facts = Mapping[str, Any]


class Outdated(NamedTuple):
    """A shard of another network, adapter or the like: its cell, the differences in words, and its row."""

    key: str
    words: tuple[str, ...]
    row: Facts


def footer(path: str | Path) -> dict[str, Any]:
    """Returns the footer of a shard; {} for a file that has none, which is named when its rows are read."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        at = content.rindex(NAMED) + len(NAMED)
        size = shift = 0
        while content[at] & 0x80:
            size |= (content[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        size |= content[at] << shift
        footer = json.loads(content[at + 1 : at + 1 + size])
        whole = content.endswith(END) and isinstance(footer["row"], dict)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    return footer if whole else {}


def facts(footer: dict[str, Any]) -> dict[str, Any]:
    """Returns what of a row is compared, from its shard's footer; {} for {}."""
    if not footer:
        return {}
    job = footer.get("job") or {}
    return {name: footer["row"].get(name) for name in (*COLUMNS, *COMPARED)} | {
        "reference": footer.get("reference", ""),
        "variables": digests.digest(job["variables"]) if "variables" in job else None,
        "limits": job.get("limits"),
    }


def row(path: str | Path) -> dict[str, Any]:
    """Returns what of a row is compared, by the path of its shard, which is read once."""
    return _row(os.path.abspath(path), age(path))


@cache
def _row(path: str, written: float) -> dict[str, Any]:
    return facts(footer(path))


def differing(facts: Facts, expected: Facts) -> tuple[str, ...]:
    """Names what of a row is not as a configuration asks; a null is not known, and is no difference."""
    words: dict[str, None] = {}
    for name, word in COMPARED.items():
        ours, theirs = facts.get(name), expected.get(name)
        # A worker that was refused may have counted others.
        counted = name != "parameters" or facts["status"] == "ok"
        if counted and ours != theirs and None not in (ours, theirs):
            words[word] = None
    return tuple(words)


def are_as_asked(key: str, expected: Mapping[str, Facts]) -> bool:
    """Tells whether a cell's rows are here and are what a plan expects of it."""
    lying = row(shard_path(key))
    return bool(lying) and not differing(lying, expected.get(key, {}))


def name_outdated(others: Iterable[Outdated], folder: str, advice: str) -> str:
    """Writes the sentence about shards of other networks, adapters and so on; `advice` may name their `{files}`."""
    others = list(others)
    words = " and ".join(dict.fromkeys(word for other in others for word in other.words))
    versions = ", ".join(
        dict.fromkeys(
            other.row["workflow_commit"] for other in others if other.row["workflow_commit"]
        )
    )
    named = f"{folder}/{others[0].key}.parquet"
    files = few(dict.fromkeys(f"{folder}/{_pattern(other.row)}" for other in others), " ")
    of = f", by version {versions}" if versions else ""
    return (
        f"{len(others)} shards were measured with another {words} than this configuration asks for{of}, "
        f"such as {named}: " + advice.format(files=files)
    )


def _pattern(row: Facts) -> str:
    """Returns a pattern for the shards of all cells that differ from a row's only in numbers, mode and precision."""
    return key_of({**row, **dict.fromkeys(VARIED, "*")}) + ".parquet"


def age(path: str | Path) -> float:
    """Returns when a file was written, in ns; infinity where there is none, or an empty one."""
    try:
        file = os.stat(path)
    except OSError:
        return NEVER
    return file.st_mtime_ns if file.st_size else NEVER
