"""What lies in a results folder, read with nothing but Python: who plans a run may have Snakemake and no more.

A shard's footer says what it was measured with. `differing` holds that against what this configuration asks for.
"""

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steptime.plan import digests
from steptime.plan.cell import axes_of

# A pair of Parquet's metadata, in Thrift's compact protocol: a first field with this text, and the head of the second.
NAMED = b"\x18\x08steptime\x18"
END = b"PAR1"
# What is kept of the columns of a row.
COLUMNS = (
    "status",
    "parameters",
    "proof_id",
    "dataset_sha256",
    "machine_id",
    "workflow_commit",
    "environment_digest",
    "network_digest",
    "worker_digest",
    "proof_digest",
    "sampling_digest",
)
# What is compared, and what differs in words. `variables` is the digest of those that the worker got.
COMPARED = {
    "network_digest": "network",
    "parameters": "network",
    "worker_digest": "adapter",
    "variables": "variables",
    "environment_digest": "pins",
    "sampling_digest": "sampling",
}
# What a proof depends on: it is of one network, adapter and set of variables, and was judged by one code.
OF_A_PROOF = ("network_digest", "worker_digest", "proof_digest", "variables")
MOST_NAMED = 3

Facts = Mapping[str, Any]


class Other(NamedTuple):
    """A shard of another network, adapter or the like: its cell, what differs in words, and by which version."""

    key: str
    words: tuple[str, ...]
    commit: str | None


def footer(path: str | Path) -> dict[str, Any]:
    """The footer of a shard; {} for what is none, which those that read its rows name."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        at = content.rindex(NAMED) + len(NAMED)
        size = shift = 0
        while content[at] & 0x80:
            size |= (content[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        size |= content[at] << shift
        found = json.loads(content[at + 1 : at + 1 + size])
        whole = content.endswith(END) and isinstance(found["row"], dict)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    return found if whole else {}


def facts(footer: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a row, from its footer; {} of none."""
    if not footer:
        return {}
    job = footer.get("job") or {}
    return {name: footer["row"].get(name) for name in COLUMNS} | {
        "reference": footer.get("reference", ""),
        "variables": digests.digest(job["variables"]) if "variables" in job else None,
    }


def row(path: str | Path) -> dict[str, Any]:
    """What is compared of a row, by the path of its shard, which is read once."""
    return _row(os.path.abspath(path), age(path))


@cache
def _row(path: str, written: float) -> dict[str, Any]:
    return facts(footer(path))


def differing(facts: Facts, expected: Facts) -> tuple[str, ...]:
    """What of a row is not as a configuration asks, in words; () where all that is known of both agrees.

    What is null is not known.
    """
    # A worker that was refused may have counted others.
    skipped = () if facts["status"] == "ok" else ("parameters",)
    words = (
        word
        for name, word in COMPARED.items()
        if name not in skipped and None not in (facts.get(name), expected.get(name))
        if facts[name] != expected[name]
    )
    return tuple(dict.fromkeys(words))


def is_proof_of(proof: Facts, job: Facts) -> bool:
    """Whether a proof is of what a job asks."""
    asked = dict(job) | {"variables": digests.digest(job["variables"])}
    return all(proof.get(name) == asked[name] for name in OF_A_PROOF)


def name_others(others: Iterable[Other], folder: str, advice: str) -> str:
    """The sentence that names shards of other networks, adapters and so on, below a folder of cells.

    `advice` says what to do; `{files}` in it are patterns of the shards, for a shell.
    """
    others = list(others)
    words = " and ".join(dict.fromkeys(word for other in others for word in other.words))
    versions = ", ".join(dict.fromkeys(other.commit for other in others if other.commit))
    named = f"{folder}/{others[0].key}.parquet"
    patterns = list(dict.fromkeys(f"{folder}/{_pattern(other.key)}" for other in others))
    files = " ".join(patterns[:MOST_NAMED]) + (" ..." if len(patterns) > MOST_NAMED else "")
    of = f", by version {versions}" if versions else ""
    return (
        f"{len(others)} shards were measured with another {words} than this configuration asks for{of}, "
        f"such as {named}: " + advice.format(files=files)
    )


def _pattern(key: str) -> str:
    """Pattern of the files of all cells that differ from this one in numbers and mode alone."""
    axes = axes_of(key)
    subject = f"{axes['network']}-on-" if axes["dataset"] else f"{axes['network']}-b"
    return f"{axes['platform']}/{axes['task']}/{axes['environment']}.*-{subject}*"


def age(path: str | Path) -> float:
    """When a file was written, in ns; endlessly late for one that is not there, which is older than nothing."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return float("inf")
