"""An honest network passes its proof; every planted defect is refused with a sentence that names it."""

import importlib
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from prove import compare, golden
from worker import networks, prove

sys.path.insert(0, str(Path(__file__).parents[1]))
planted = importlib.import_module("defects.planted")
CATALOGUE, PLANTED, adapter = planted.CATALOGUE, planted.PLANTED, planted.adapter


@cache
def expected(network):
    spec = networks.specify(network, CATALOGUE, narrow=True)
    return spec, golden.expect(spec)


def proof_of(network, tried, path):
    spec, wanted = expected(network)
    prove.write(path, prove.collect(tried, spec, prove.BATCH, "eager", 1, "cpu"))
    return compare.judge(spec, wanted, compare.read(path))


# Those that are trained on images: tests/unit/test_training.py.
@pytest.mark.parametrize(
    "network", [name for name in CATALOGUE if not {"variant_of", "dataset"} & set(CATALOGUE[name])]
)
def test_honest_network_passes(network, tmp_path):
    proof = proof_of(network, adapter(), tmp_path / "collected")
    assert proof.passed, proof.reason
    assert json.dumps(proof.details)


@pytest.mark.parametrize("defect", PLANTED)
def test_defect_is_refused(defect, tmp_path):
    network, tried, words = PLANTED[defect]
    proof = proof_of(network, tried, tmp_path / "collected")
    print(f"{defect}: {proof.reason}")
    assert not proof.passed
    assert words in proof.reason


def test_gradient_is_recovered_from_the_timed_step():
    spec, wanted = expected("fcn8")
    found = compare.gradients_of(wanted, prove.collect(adapter(), spec, prove.BATCH, "eager", 1, "cpu"))
    for name, gradient in wanted.first.gradients.items():
        assert np.linalg.norm(found[name] - gradient) < 1e-6 * np.linalg.norm(gradient), name


def test_proof_id_follows_what_was_proven(tmp_path):
    spec, _ = expected("fcn5")
    passed, failed = (proof_of("fcn5", tried, tmp_path / "c") for tried in (adapter(), PLANTED["NaN"][1]))

    def made(proof=passed, mode="eager", environment="abc", worker="123"):
        return compare.proof_id(spec, mode, "cpu", environment, worker, proof)

    assert made() == made(proof_of("fcn5", adapter(), tmp_path / "c"))
    others = {made(failed), made(mode="graph"), made(environment="abd"), made(worker="124")}
    assert len(others | {made()}) == 5
