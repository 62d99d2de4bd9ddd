"""Accepts shards and proofs that were copied from another checkout, whatever the times of the copied files.

Of a file that it has not made, Snakemake knows the time alone, and `cp -r` gives all files new ones in any order. But a
shard says which proof and which environment it was measured with, that of a training which images too, and a proof of
which environment it is: where these are the ones that lie here, nothing is to be made again. No file is changed for it:
rules say of such inputs that their time does not count.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from shared.precisions import marked
from steptime import npz
from steptime.cells import found
from steptime.cells.found import Facts, age
from steptime.datasets import DatasetError, sums
from steptime.environments import interpreter
from steptime.plan import digests
from steptime.plan.cell import Cell, carried, proof_name, reference_path, shard_path


def knows_shard(cell: Cell, pins_digest: str, results: Path = Path("results")) -> bool:
    """Whether the shard of a cell is older than what lies here, but was measured with just that.

    `pins_digest` is the digest of what the cell's environment is to be made of now.
    """
    path = shard_path(cell.key, str(results))
    if age(path) == math.inf:
        return False
    manifest = manifest_path(cell.environment, results)
    proof = results / "proofs" / f"{proof_name(cell.facts())}.json"
    images, references = _data_of(cell, results)
    newest = max(age(made) for made in (manifest, proof, *images, *references))
    return (
        age(path) < newest < math.inf
        and read(manifest).get("digest") == pins_digest
        and _is_of(read(proof), read(manifest))
        and _was_judged_by(row := found.row(path), read(proof))
        and _was_fed_with(row, images, references)
    )


def knows_data(cell: Cell, results: Path = Path("results")) -> bool:
    """Whether the shard of a cell is older than its images or reference here, but was measured with just these."""
    path = shard_path(cell.key, str(results))
    images, references = _data_of(cell, results)
    newest = max((age(made) for made in (*images, *references)), default=0)
    return age(path) < newest < math.inf and _was_fed_with(found.row(path), images, references)


def knows_proof(
    environment: str, proof_name: str, pins_digest: str, results: Path = Path("results")
) -> bool:
    """Whether a proof is older than the manifest of its environment, but is of just that."""
    proof, details = (
        results / "proofs" / f"{proof_name}{ending}.json" for ending in ("", ".details")
    )
    manifest = manifest_path(environment, results)
    return (
        min(age(proof), age(details)) < age(manifest) < math.inf
        and read(manifest).get("digest") == pins_digest
        and _is_of(read(proof), read(manifest))
    )


def manifest_path(environment: str, results: Path = Path("results")) -> Path:
    """Where it is written down what was installed in an environment."""
    return results / "environments" / f"{environment}.json"


def manifest_is_of(manifest: Facts, pins_digest: str, here: str) -> bool:
    """Whether what was written down of an environment holds on this machine, whose id is `here`.

    What failed for want of a network or on another machine is tried again, and so is what other pins asked for.
    """
    failed_here = manifest.get("machine", here) == here and not manifest.get("passing", False)
    return manifest.get("digest") == pins_digest and (manifest.get("status") == "ok" or failed_here)


def is_reference_of(path: Path, batch: int | str, precision: str, *made_of: str) -> bool:
    """Whether a file is a whole reference of this mini-batch, precision, and digests of the network and the code."""
    network, code = made_of
    try:
        return npz.text(path, "of") == f"{network} {batch}{marked(precision, ' ')} {code}"
    except (KeyError, OSError, ValueError):
        return False


def lacks_environment(manifest: Facts) -> bool:
    """Whether an environment was made, as its manifest says, but does not stand on this machine as it was made."""
    return manifest.get("status") == "ok" and not interpreter.stands_as(manifest)


def read(path: Path) -> dict[str, Any]:
    """The content of a manifest or a proof; {} for what is none."""
    try:
        content = _parsed(path.absolute(), path.stat().st_mtime_ns)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


@cache
def _parsed(path: Path, time: int) -> dict[str, Any]:
    """The content of a file, read once for the thousands of cells that ask for it."""
    return json.loads(path.read_text())


def _is_of(proof: dict[str, Any], manifest: dict[str, Any]) -> bool:
    """Whether a proof is of the environment of a manifest, and of one that did or did not install as this one."""
    installed = manifest.get("status") == "ok"
    return proof.get("environment_digest") == manifest.get("digest") and installed == (
        proof.get("status") != "install_failed"
    )


def _data_of(cell: Cell, results: Path) -> tuple[list[Path], list[Path]]:
    """The images of a cell, and its reference. Cells from before there was one are none the worse for it."""
    if cell.dataset:
        return [
            results / "datasets" / cell.dataset / f"{split}.npz" for split in ("train", "test")
        ], []
    reference = Path(reference_path(cell.facts(), str(results)))
    return [], [reference] if reference.exists() else []


def _was_judged_by(row: Facts, proof: dict[str, Any]) -> bool:
    names = ("environment_digest", "proof_id")
    return bool(row) and (
        all(row[name] == proof.get(name) for name in names)
        and (proof.get("status", "ok") == "ok" or row["status"] == proof["status"])
    )


def _was_fed_with(row: Facts, images: list[Path], references: list[Path]) -> bool:
    if not row:
        return False
    try:
        fed = not images or row["dataset_sha256"] == sums(*images)
    except DatasetError:
        return False
    # What was measured elsewhere was compared with what was computed there.
    known = [path for each in references for path in (each, carried(each)) if path.exists()]
    return fed and (not row["reference"] or row["reference"] in map(digests.file_digest, known))
