"""A cell proves itself at its own size: what is the same there passes with room, what is not is refused."""

import json

import numpy as np
import pytest
from defects.full_size import PLANTED
from defects.planted import CATALOGUE
from defects.stand_in import Trainer, adapter, job

from steptime import networks
from steptime.prove import reference
from worker import building, data, limits, sketch, timing
from worker.contract import NotEquivalent
from worker.tasks import step

BATCH = 32
SAMPLING = {"budget_seconds": 0.1, "precision": 0.5, "least_samples": 3}


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """The path of the reference of a network at its narrow sizes and at BATCH."""
    made = {}

    def of(network):
        if network not in made:
            made[network] = tmp_path_factory.mktemp("references") / f"{network}.npz"
            spec = networks.specify(network, CATALOGUE, narrow=True)
            np.savez(made[network], **reference.compute(spec, BATCH))
        return made[network]

    return of


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(timing, "WARMUP_SECONDS", 0.0)
    monkeypatch.setattr(timing, "LEAST_SECONDS", 0.0)


def measure(network, trainer, path):
    """What the worker says of a cell, by event."""
    spec, said = networks.specify(network, CATALOGUE, narrow=True), {}
    asked = job(spec) | {
        "task": "step",
        "batch": BATCH,
        "parameters": networks.count_parameters(spec),
        "sampling": SAMPLING,
        "reference": str(path),
        "gradients": True,
    }
    planted = adapter(trainer)
    planted.versions = dict
    step.run(
        building.Loaded(planted, {}, 0.0), asked, lambda event, **facts: said.update({event: facts})
    )
    json.dumps(said)
    return said


@pytest.mark.parametrize("network", ["fcn5", "alexnet", "resnet50", "lstm32"])
def test_the_right_network_is_proven_with_room(network, references):
    said = measure(network, Trainer, references(network))["proven"]
    assert said["lacking"] == "" and 0 <= said["loss"] < limits.LOSS / 3
    assert 0 < said["change"] < reference.CHANGE / 3


@pytest.mark.parametrize("defect", PLANTED)
def test_what_begins_above_the_narrow_size_is_refused(defect, references):
    network, trainer, words = PLANTED[defect]
    with pytest.raises(NotEquivalent, match=words):
        measure(network, trainer, references(network))


def test_without_a_reference_a_cell_is_timed_and_nothing_is_proven(tmp_path):
    path = tmp_path / "none.npz"
    np.savez(path, reason=np.array("its reference needs more than 1 GiB"))
    said = measure("fcn5", Trainer, path)
    assert said["proven"]["loss"] is None and said["proven"]["change"] is None and "done" in said


def test_a_reference_that_cannot_be_had_says_why():
    spec = networks.specify("fcn5", CATALOGUE, narrow=True)
    found = reference.attempt(spec, BATCH, 1e-6, 10000)
    assert "took more than 1e-06 s" in str(found["reason"])


def test_a_loss_of_one_label_that_some_frameworks_cut_is_not_held():
    spec = networks.specify("fcn5", CATALOGUE, narrow=True)
    start = {name: values.astype(np.float64) for name, values in data.start_values(spec)}
    inputs, labels = data.synthetic_batch(spec, BATCH)
    loss, gradients = reference._step(spec, start, inputs, labels)
    after = [
        reference._loss_after(spec, start, gradients, rate, inputs, labels) for rate in (1e-9, -1e4)
    ]
    assert after[0] == pytest.approx(loss) and np.isnan(after[1])


def test_projections_tell_the_norm_of_a_difference_and_entries_where_it_is():
    values = np.random.default_rng(1).normal(size=(3, sketch.PERIOD // 2))
    share = sketch.count_entries(values.shape)[1]
    true = sketch.take("a", values.shape, sketch.pieces(values))
    noise = np.random.default_rng(2).normal(size=values.shape)
    found = sketch.take("a", values.shape, sketch.pieces(values + 1e-3 * noise))
    assert true.norm == pytest.approx(np.linalg.norm(values))
    assert 5e-4 < sketch.distance(found, true, share) < 2e-3
    assert sketch.distance(true, true, share) == 0
