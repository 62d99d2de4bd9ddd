"""Takes shards and proofs that were copied from another checkout for what they are, whatever time their copy bears.

Of a file that it has not made, Snakemake knows the time alone, and `cp -r` gives all files new ones in any order. But a
shard says which proof and which environment it was measured with, that of a training which images too, and a proof of
which environment it is: where these are the ones that lie here, nothing is to be made again. No file is changed for it:
rules say of such inputs that their time does not count.
"""

import json
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from steptime.datasets import DatasetError, sums
from steptime.plan import digests
from steptime.plan.cell import Cell, proof_name, shard_path
from steptime.records import Job


def knows_shard(cell: Cell, pins_digest: str, results: Path = Path("results")) -> bool:
    """Whether the shard of a cell is older than what lies here, but was measured with just that.

    `pins_digest` is the digest of what the cell's environment is to be made of now.
    """
    path = shard_path(cell.key, str(results))
    if _age(path) == math.inf:
        return False
    manifest = _manifest(cell.environment, results)
    proof = results / "proofs" / f"{proof_name(cell.facts())}.json"
    images = (
        [results / "datasets" / cell.dataset / f"{split}.npz" for split in ("train", "test")]
        if cell.dataset
        else []
    )
    reference = results / "references" / f"{cell.network}-b{cell.batch}.npz"
    # Cells that were measured before there was one are none the worse for it.
    references = [reference] if reference.exists() and not cell.dataset else []
    newest = max(_age(made) for made in (manifest, proof, *images, *references))
    return (
        _age(path) < newest < math.inf
        and _json(manifest).get("digest") == pins_digest
        and _is_of(_json(proof), _json(manifest))
        and _was_measured_with(Path(path), _json(proof), images, references)
    )


def outlives_proof(
    cell: Cell, proof_digest: str, job: Callable[[], Job], results: Path = Path("results")
) -> bool:
    """Whether only the proof of a measured cell is to be made again: another proof may judge it, and times nothing.

    Such a cell is newer than a proof that passed, which other code made than that of `proof_digest`, and was measured
    as `job` asks. Snakemake looks for no other reason to run a job where one of its inputs is made again.
    """
    path = shard_path(cell.key, str(results))
    made = results / "proofs" / f"{proof_name(cell.facts())}.json"
    proof = _json(made)
    if proof.get("status") != "ok" or proof.get("proof_digest") == proof_digest:
        return False
    return _age(made) <= _age(path) < math.inf and _was_measured_by(Path(path), job())


def knows_proof(
    environment: str, proof_name: str, pins_digest: str, results: Path = Path("results")
) -> bool:
    """Whether a proof is older than the manifest of its environment, but is of just that."""
    proof, details = (
        results / "proofs" / f"{proof_name}{ending}.json" for ending in ("", ".details")
    )
    manifest = _manifest(environment, results)
    return (
        min(_age(proof), _age(details)) < _age(manifest) < math.inf
        and _json(manifest).get("digest") == pins_digest
        and _is_of(_json(proof), _json(manifest))
    )


def _manifest(environment: str, results: Path) -> Path:
    return results / "environments" / f"{environment}.json"


def _age(path: str | Path) -> float:
    """When a file was written, in ns; endlessly late for one that is not there, which is older than nothing."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return math.inf


def _json(path: Path) -> dict[str, Any]:
    try:
        return _parsed(path.absolute(), path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return {}


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


def _was_measured_by(path: Path, job: Job) -> bool:
    from steptime.cells import shard

    try:
        row, *_ = shard.read_parts(path)
    except shard.ShardError:
        return False
    asked = {name: job[name] for name in ("network_digest", "worker_digest")}
    asked["sampling_digest"] = digests.digest(job["asked"])
    return all(row[name] == value for name, value in asked.items())


def _was_measured_with(
    path: Path, proof: dict[str, Any], images: list[Path], references: list[Path]
) -> bool:
    # Only where it is needed: it takes a tenth of a second.
    from steptime.cells import shard

    try:
        row, _, footer = shard.read_parts(path)
        seen = {"dataset_sha256": sums(*images)} if images else {}
    except (shard.ShardError, DatasetError):
        return False
    known = {name: proof.get(name) for name in ("environment_digest", "proof_id")} | seen
    held = footer.get("reference", "")
    same = all(row.get(name) == value for name, value in known.items()) and (
        held in ("", digests.file_digest(*references))
    )
    return same and (proof["status"] == "ok" or row["status"] == proof["status"])
