"""Decides which of the results here stay and which are made again: the one place that does.

Shards, proofs, manifests and references hold digests of what they were made with. A file whose digests are those that
the configuration gives stays. Any other is made again. The times of files do not count: `cp -r` changes all of them.
"""

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from shared.precisions import marked
from steptime import machine, npz
from steptime.cells import footers
from steptime.cells.expected import Expected
from steptime.cells.footers import NEVER, age
from steptime.datasets import DatasetError, sums
from steptime.environments import interpreter
from steptime.plan import digests
from steptime.plan.cell import (
    Cell,
    carried,
    images_of,
    manifest_path,
    proof_mark,
    proof_path,
    reference_path,
    shard_path,
)

# What a proof depends on: it is of one network, adapter, set of variables and environment, and was judged by one code.
OF_A_PROOF = ("network_digest", "worker_digest", "proof_digest", "variables", "environment_digest")
# What a cell may end in for the limits of its grid.
LIMITED = ("timeout", "out_of_memory")


class Current:
    """Compares the results here with what a configuration expects. Looks at each file once: the run makes the rest."""

    def __init__(self, expected: Expected) -> None:
        self.expected, self._read = expected, cache(_read)
        self.lacks_environment = cache(self._lacks_environment)
        self.reference = cache(self._reference)
        self.shard, self.differing = cache(self._shard), cache(self._differing)

    @cached_property
    def here(self) -> str:
        """Returns the id of this machine, as rows have it."""
        return machine.own_id()

    @cached_property
    def is_as_measured(self) -> bool:
        """Tells whether nothing is to be measured and all is shown as it was, by whatever version of this project."""
        configuration = self.expected.configuration
        asked = configuration.grid["platforms"]
        return all(configuration.platforms[name].get("as_measured") for name in asked)

    def manifest(self, environment: str) -> bool:
        """Tells whether a manifest holds here; what failed elsewhere, or without an index, is tried again."""
        made = self._read(manifest_path(environment))
        if self.is_as_measured and made:
            return True
        failed_here = made.get("machine", self.here) == self.here and not made.get("passing", False)
        is_of = made.get("digest") == self.expected.environment_digest(environment)
        return is_of and (made.get("status") == "ok" or failed_here)

    def _lacks_environment(self, environment: str) -> bool:
        """Tells whether an environment was made, as its manifest says, but is no longer here as it was made."""
        made = self._read(manifest_path(environment))
        return made.get("status") == "ok" and not interpreter.stands_as(made)

    def proof(self, environment: str, mode: str, network: str, mark: str) -> bool:
        """Tells whether a proof is the one asked for, in the environment here; for `mark` see `cell.proof_mark`."""
        proof = self._read(proof_path(f"{environment}.{mode}-{network}{mark}"))
        if self.is_as_measured and proof:
            return True
        job = self.expected.proving_job(environment, mode, network, mark)
        expected = job | {"variables": digests.digest(job["variables"])}
        expected["environment_digest"] = self.expected.environment_digest(environment)
        if any(proof.get(name) != expected[name] for name in OF_A_PROOF):
            return False
        failed = proof["status"] == "install_failed"
        return not failed or (self.manifest(environment) and not self.is_installed(environment))

    def _reference(self, network: str, batch: int | str, precision: str) -> bool:
        """Tells whether the reference of a network, mini-batch and precision is whole, and of today's code."""
        axes = {"network": network, "batch": batch, "precision": precision}
        made_of = f"{self.expected.network_digest(network)} {batch}{marked(precision, ' ')}"
        try:
            known = npz.text(Path(reference_path(axes)), "of")
        except (KeyError, OSError, ValueError):
            return False
        return known == f"{made_of} {self.expected.reference_digest(network)}"

    def _shard(self, cell: Cell) -> bool:
        """Tells whether the shard of a cell stays."""
        path = shard_path(cell.key)
        if age(path) == NEVER:
            return False
        row = footers.row(path)
        # What is broken is named where rows are merged.
        if not row or not self.is_of_here(cell):
            return True
        if self.differing(cell):
            return False
        return row["status"] == "ok" or self._fails_again(cell, row)

    def _differing(self, cell: Cell) -> tuple[str, ...]:
        """Names what of a cell's shard is not as it is asked for; () also where there is no shard."""
        row = footers.row(shard_path(cell.key))
        return footers.differing(row, self.expected.of(cell)) if row else ()

    def is_of_here(self, cell: Cell) -> bool:
        """Tells whether a cell's shard may be measured again in its place: it is no other machine's."""
        if "cluster" in self.expected.configuration.platforms[cell.platform]:
            return True
        return footers.row(shard_path(cell.key)).get("machine_id") in (None, self.here)

    def _fails_again(self, cell: Cell, row: footers.Facts) -> bool:
        """Tells whether a cell that failed would fail again: its limits, proof and environment are as they were."""
        status, axes = row["status"], cell.facts()
        if status == "install_failed" and self.is_installed(cell.environment):
            return False
        if status in LIMITED and row["limits"] != self.expected.job_of(cell)["limits"]:
            return False
        reference = Path(reference_path(axes))
        if row["reference"] and reference.exists():
            # What was measured elsewhere was compared with what was computed there.
            files = [path for path in (reference, carried(reference)) if path.exists()]
            is_its_own = row["reference"] in map(_digest, files)
            if not (is_its_own and self.reference(cell.network, cell.batch, cell.precision)):
                return False
        named = cell.environment, cell.mode, cell.network, proof_mark(axes)
        path = proof_path("{}.{}-{}{}".format(*named))
        if not Path(path).exists():
            return True
        proof = self._read(path)
        judged_alike = row["proof_id"] == proof.get("proof_id")
        return self.proof(*named) and judged_alike and proof["status"] in ("ok", status)

    def is_older_than_its_images(self, cell: Cell) -> bool:
        """Tells whether a training's shard is older than its images only by the files' times."""
        path, images = shard_path(cell.key), list(map(Path, images_of(cell.dataset)))
        if not images or not age(path) < max(map(age, images)) < NEVER:
            return False
        try:
            return footers.row(path)["dataset_sha256"] == sums(*images)
        except (DatasetError, KeyError):
            return False

    def is_installed(self, environment: str) -> bool:
        """Tells whether an environment was made, as its manifest says."""
        return self._read(manifest_path(environment)).get("status") == "ok"


def _read(path: str) -> dict[str, Any]:
    """Returns the content of a manifest or a proof; {} where the file is not one."""
    try:
        content = json.loads(Path(path).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


_digest = cache(digests.file_digest)
