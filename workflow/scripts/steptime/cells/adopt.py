"""Takes shards and proofs that were copied from another checkout for what they are, whatever time their copy bears.

Of a file that it has not made, Snakemake knows the time alone, and `cp -r` gives all files new ones in any order. But a
shard says which proof and which environment it was measured with, that of a training which images too, and a proof of
which environment it is: where these are the ones that lie here, nothing is to be made again.
"""

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steptime.datasets import DatasetError, sums
from steptime.plan.grid import Cell
from steptime.plan.trainings import Training


def adopt(cells: Iterable[Cell], results: Path = Path("results")) -> None:
    """Gives the shards of `cells` and their proofs a new time where they are older than what they were made of."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        name = f"{cell.environment}.{cell.adapter_mode}-{cell.network}"
        # Joined as text, and asked of the system once: there may be thousands.
        kind, dataset = ("training", cell.dataset) if isinstance(cell, Training) else ("shards", "")
        groups.setdefault((cell.environment, name, dataset), []).append(
            f"{results}/{kind}/{cell.key}.parquet"
        )
    for (environment, name, dataset), shards in groups.items():
        manifest = results / "environments" / f"{environment}.json"
        proof, details = (
            results / "proofs" / f"{name}{ending}.json" for ending in ("", ".details")
        )
        if min(_age(proof), _age(details)) < _age(manifest) and _is_of(
            _json(proof), _json(manifest)
        ):
            os.utime(proof)
            os.utime(details)
        images = (
            [results / "datasets" / dataset / f"{split}.npz" for split in ("train", "test")]
            if dataset
            else []
        )
        newest = max(_age(path) for path in (proof, manifest, *images))
        for shard in shards if newest < math.inf else []:
            if _age(shard) < newest and _was_measured_with(Path(shard), _json(proof), images):
                os.utime(shard)


def _age(path: str | Path) -> float:
    """When a file was written, in ns; endlessly late for one that is not there, which is older than nothing."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return math.inf


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


def _was_measured_with(shard: Path, proof: dict[str, Any], images: list[Path]) -> bool:
    # Only where it is needed: it takes a tenth of a second.
    from steptime.cells import shard as shards

    try:
        row = shards.read(Path(shard))[0].slice(0, 1).to_pylist()[0]
        seen = {"dataset_sha256": sums(*images)} if images else {}
    except (shards.ShardError, DatasetError):
        return False
    known = {name: proof.get(name) for name in ("environment_digest", "proof_id")} | seen
    same = all(row.get(name) == value for name, value in known.items())
    return same and (proof["status"] == "ok" or row["status"] == proof["status"])
