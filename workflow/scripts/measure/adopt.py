"""Takes shards and proofs that were copied from another checkout for what they are, whatever time their copy bears.

Of a file that it has not made, Snakemake knows the time alone, and `cp -r` gives all files new ones in any order. But a
shard says which proof and which environment it was measured with, and a proof of which environment it is: where these
are the ones that lie here, nothing is to be made again.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grid import Cell


def adopt(cells: Iterable[Cell], results: Path = Path("results")) -> None:
    """Gives the shards of `cells` and their proofs a new time where they are older than what they were made of."""
    proofs: dict[str, tuple[Path, Path]] = {}
    shards: list[tuple[Path, Path, Path]] = []
    for cell in cells:
        manifest = results / "environments" / f"{cell.environment}.json"
        name = f"{cell.environment}.{cell.adapter_mode}-{cell.network}"
        proof = results / "proofs" / f"{name}.json"
        proofs[name] = proof, manifest
        shards.append((results / "shards" / f"{cell.key}.parquet", proof, manifest))
    for proof, manifest in proofs.values():
        details = proof.with_suffix(".details.json")
        if (_older(proof, manifest) or _older(details, manifest)) and _is_of(_json(proof), _json(manifest)):
            os.utime(proof)
            os.utime(details)
    for shard, proof, manifest in shards:
        if (_older(shard, proof) or _older(shard, manifest)) and _was_measured_with(shard, _json(proof)):
            os.utime(shard)


def _older(path: Path, source: Path) -> bool:
    try:
        return path.stat().st_mtime_ns < source.stat().st_mtime_ns
    except OSError:
        return False


def _json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def _is_of(proof: dict[str, Any], manifest: dict[str, Any]) -> bool:
    """Whether a proof is of the environment of a manifest, and of one that did or did not install as this one."""
    installed = manifest.get("status") == "ok"
    return proof.get("environment_digest") == manifest.get("digest") and installed == (
        proof.get("status") != "install_failed"
    )


def _was_measured_with(shard: Path, proof: dict[str, Any]) -> bool:
    # Only where it is needed: it takes a tenth of a second.
    from measure import shard as shards

    try:
        rows, _ = shards.read(shard)
    except shards.ShardError:
        return False
    row = rows.select(["environment_digest", "proof_id", "status"]).slice(0, 1).to_pylist()[0]
    same = all(row[name] == proof.get(name) for name in ("environment_digest", "proof_id"))
    return same and (proof["status"] == "ok" or row["status"] == proof["status"])
