"""What of the results that lie here stays, and what is made again: by digests, and never by the times of files."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from examples import PLANNED as CELL
from examples import ROOT

from steptime.cells import shard
from steptime.cells.current import OF_A_PROOF, Current
from steptime.cells.expected import Expected
from steptime.plan import cell, configuration, digests
from steptime.prove import reference

PROVEN = ("torch-9.9", "eager", "fcn5", "")
JOB = {name: "p" for name in OF_A_PROOF} | {"variables": {}, "limits": {"seconds": 60}}
# The row of a cell that failed at full size, and what it stands on.
FAILED, ABSENT = {"status": "not_equivalent"}, {"status": "install_failed"}
PASSED = {"status": "ok", "proof_id": "i"}
ROW = {"variant": "", "status": "ok", "machine_id": "here", "proof_id": "i", "network_digest": "n"}


def lay(path, content):
    """Writes a manifest or a proof."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content))


class Folder(Current):
    """A folder of results, what lies in it, and what is asked for."""

    def __init__(self, **machine):
        asked = SimpleNamespace(
            configuration=SimpleNamespace(
                platforms={"local-cpu": machine}, grid={"platforms": ["local-cpu"]}
            ),
            environment_digest=lambda environment: "pins",
            network_digest=lambda network: "n",
            reference_digest=lambda network: "r",
            proving_job=lambda *named: JOB,
            job_of=lambda of: JOB,
            of=lambda of: {"network_digest": "n"},
        )
        super().__init__(asked)
        self.here = "here"
        self.lay_environment()
        self.lay_proof(PASSED)

    def lay_environment(self, **changes):
        known = {"digest": "pins", "status": "ok", "machine": "here"}
        lay(cell.manifest_path(CELL.environment), known | changes)

    def lay_proof(self, changes):
        known = dict.fromkeys(OF_A_PROOF, "p") | {"variables": digests.digest({})}
        known["environment_digest"] = "pins"
        lay(cell.proof_path(CELL.proof), known | changes)

    def lay_reference(self, of):
        path = Path(cell.reference_path(CELL.facts()))
        path.parent.mkdir(parents=True)
        np.savez(path, of=of)
        return digests.file_digest(path)

    def lay_shard(self, of=CELL, footer=None, **changes):
        path = Path(cell.shard_path(of.key))
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"machine": {}, "job": JOB, "reference": ""} | (footer or {})
        shard.write(path, of.facts() | ROW | changes, [], told)
        # Older than all that it was measured with.
        os.utime(path, ns=(0, 0))
        return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Folder()


def test_a_shard_stays_until_what_it_was_measured_with_is_another(folder):
    assert not folder.shard(replace(CELL, repeat=4))
    folder.lay_shard()
    # What a stricter proof refuses is refused where rows are merged.
    folder.lay_proof({"proof_digest": "stricter"})
    assert folder.shard(CELL)
    folder.lay_shard(replace(CELL, repeat=2), network_digest="another")
    assert not folder.shard(replace(CELL, repeat=2))
    assert folder.differing(replace(CELL, repeat=2)) == ("network",)
    folder.lay_shard(replace(CELL, repeat=3), network_digest="another", machine_id="other")
    assert folder.shard(replace(CELL, repeat=3))
    path = folder.lay_shard()
    # What is empty is made again, and what is broken is left to be named.
    path.write_bytes(b"")
    assert not Folder().shard(CELL)
    path.write_bytes(b"PAR1")
    assert Folder().shard(CELL)


@pytest.mark.parametrize(
    ("row", "proof", "made", "stays"),
    [
        (FAILED, PASSED, {}, True),
        (FAILED, PASSED | {"proof_id": "another"}, {}, False),
        (FAILED, PASSED | {"worker_digest": "another"}, {}, False),
        (FAILED, FAILED | {"proof_id": "i"}, {}, True),
        (FAILED, {"status": "crashed", "proof_id": "i"}, {}, False),
        (ABSENT, PASSED, {}, False),
        (ABSENT | {"proof_id": None}, ABSENT, ABSENT | {"passing": False}, True),
        (ABSENT | {"proof_id": None}, ABSENT, ABSENT | {"passing": True}, False),
    ],
)
def test_what_failed_is_tried_again_where_it_may_end_otherwise(folder, row, proof, made, stays):
    folder.lay_environment(**made)
    folder.lay_proof(proof)
    folder.lay_shard(**row)
    assert folder.shard(CELL) == stays


@pytest.mark.parametrize(("status", "stays"), [("timeout", False), ("crashed", True), ("ok", True)])
def test_other_limits_measure_what_has_met_them(folder, status, stays):
    folder.lay_shard(status=status, footer={"job": JOB | {"limits": {"seconds": 9}}})
    assert folder.shard(CELL) == stays


@pytest.mark.parametrize(
    ("of", "known", "stays"),
    [("n 64 r", True, True), ("n 64 r", False, False), ("n 8 r", True, False)],
)
def test_a_step_that_failed_is_of_the_reference_that_lies_here(folder, of, known, stays):
    digest = folder.lay_reference(of)
    assert folder.reference("fcn5", 64, "float32") == (of == "n 64 r")
    folder.lay_shard(footer={"reference": digest if known else "another"}, **FAILED)
    assert folder.shard(CELL) == stays


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({"digest": "other pins"}, False),
        (ABSENT | {"passing": False}, True),
        (ABSENT | {"passing": True}, False),
        (ABSENT | {"machine": "other"}, False),
    ],
)
def test_an_environment_is_tried_again_where_it_may_install(folder, changes, stays):
    folder.lay_environment(**changes)
    assert folder.manifest(CELL.environment) == stays


@pytest.mark.parametrize("name", OF_A_PROOF)
def test_a_proof_says_of_what_it_is(folder, name):
    assert Folder().proof(*PROVEN)
    folder.lay_proof({name: "another"})
    assert not folder.proof(*PROVEN)
    shown = Folder(as_measured=True)
    shown.lay_proof({name: "another"})
    assert shown.proof(*PROVEN)


@pytest.mark.parametrize("spoil", [None, "another sum"])
def test_a_copied_training_is_older_than_its_images_by_their_times_alone(folder, spoil):
    training = replace(CELL, task="training", dataset="digits")
    path = folder.lay_shard(training, dataset_sha256="of train of test")
    for image, known in zip(cell.images_of("digits"), ("train", "test"), strict=True):
        os.makedirs(os.path.dirname(image), exist_ok=True)
        np.savez(image, sha256=spoil or f"of {known}")
    assert folder.is_older_than_its_images(training) == (spoil is None)
    os.utime(path)
    assert not folder.is_older_than_its_images(training)


def test_references_that_come_with_the_project_are_of_its_code():
    """Others would be computed by each user anew, which takes minutes of a run."""
    expected = Expected(configuration.without_grid(ROOT))
    for path in sorted((ROOT / "resources/references").glob("*.npz")):
        network, batch = path.stem.rsplit("-b", 1)
        known = f"{expected.network_digest(network)} {batch} {expected.reference_digest(network)}"
        assert reference.shipped_with(path.name, known), f"{path.name}: run `make references`"
