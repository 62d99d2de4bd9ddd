"""A network in use is proven by its outputs, narrow and at full size: what trains, keeps or leaves out is refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from defects.planting import CATALOGUE
from defects.stand_in import RIGHT, computing, job
from examples import CATALOGUE as EXAMPLES
from examples import FRAMEWORKS, deep_seldom, measured, words

from shared import evaluation
from steptime import networks
from steptime.artefacts.results import forward as artefact
from steptime.prove import outputs as judging
from worker import building, timing
from worker.contract import NotEquivalent, Unsupported
from worker.tasks import forward, outputs

BATCH = 8
SAMPLING = {"budget_seconds": 0.1, "precision": 0.5, "least_samples": 3}


class Predictor:
    """The golden run in float32; a defect overrides what it breaks."""

    operations = RIGHT
    threads, settings = 1, {}
    passes = 0

    def __init__(self, job):
        self.spec, self.weights, self.inputs = job.spec, dict(job.weights), job.inputs
        self.parameters = networks.count_parameters(job.spec)

    def infer(self, passes):
        for _ in range(passes):
            type(self).passes += 1
            self.found = self.compute()

    def compute(self):
        with computing(self.operations):
            return judging.outputs(self.spec, self.weights, self.inputs).astype(np.float32)

    def give(self, inputs):
        self.inputs = inputs

    def outputs(self):
        return self.found


def masked(node, own, x):
    kept = np.random.default_rng(1).uniform(size=x.shape) >= node["rate"]
    return x * kept / (1 - node["rate"]), None


def of_the_batch(node, own, x):
    return RIGHT["batch_norm"](node, {name: own[name] for name in ("gamma", "beta")}, x)


def using(**operations):
    return type("Using", (Predictor,), {"operations": dict(RIGHT, **operations)})


class Half(Predictor):
    def compute(self):
        half = super().compute()[: len(self.inputs) // 2]
        return np.concatenate([half, half])


class Keeping(Predictor):
    def infer(self, passes):
        self.found = getattr(self, "found", None)
        if self.found is None:
            super().infer(1)


class LeavingOut(Predictor):
    """Computes one pass of a block."""

    def infer(self, passes):
        super().infer(1)


DEFECTS = [
    (using(dropout=masked), "mnist", "the outputs are off by"),
    (using(batch_norm=of_the_batch), "resnet50", "the outputs are off by"),
    (Half, "lenet", "the outputs are off by"),
    (Keeping, "lenet", "a result is kept"),
]
# What is put in front of the patches knows nothing of them: all samples have the same outputs.
IMAGE, CONV = {"kind": "image", "shape": [3, 2, 2]}, {"conv": {"channels": 4, "kernel": 2}}
LAYERS = [CONV, "patches", "class_token", "first_step", {"dense": {"units": 3}}]
ALIKE = {"input": IMAGE, "layers": LAYERS, "sizes": {}, "narrow": {}}
NETWORKS = ["alexnet", "resnet50", "mobilenet", "lstm32", "gpt-small", "vit-tiny", "alike"]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """By the clock, a pass takes 5 ms, however busy the machine is; returns a list of its seconds."""
    now, seconds = [0.0], [0.005]

    def clock():
        now[0] += 1e-6
        return now[0] + seconds[0] * (Predictor.passes + LeavingOut.passes)

    monkeypatch.setattr(building, "clock", clock)
    monkeypatch.setattr(timing, "WARMUP_SECONDS", 0.0)
    monkeypatch.setattr(timing, "LEAST_SECONDS", 0.0)
    return seconds


def adapter(predictor):
    return SimpleNamespace(build=predictor, LAYOUT={}, versions=dict)


def asked_of(network, batch):
    spec = networks.specify(network, CATALOGUE | {"alike": ALIKE}, narrow=True)
    known = {"task": "forward", "proves": "forward", "batch": batch}
    return job(spec) | known | {"parameters": networks.count_parameters(spec)}


def narrow(network, predictor, batch=BATCH):
    asked = asked_of(network, batch)
    return judging.judge(asked, outputs.collect(adapter(predictor), asked))


def at_full_size(network, predictor, path, batch=BATCH):
    """What the worker says of a cell, by event; the size of the network is the narrow one's."""
    asked, said = asked_of(network, batch), {"samples": []}
    found = judging.reference(asked["spec"], batch, "float32")
    np.savez(path / "reference.npz", reason=np.array(""), **found)

    def emit(event, **facts):
        said[event] = facts
        said["samples"] += [facts["steps"]] if event == "sample" else []

    asked |= {"sampling": SAMPLING, "reference": str(path / "reference.npz")}
    forward.run(building.Loaded(adapter(predictor), {}, 0.0), asked, emit)
    json.dumps(said)
    return said


@pytest.mark.parametrize("network", deep_seldom(NETWORKS))
def test_the_right_network_is_proven_with_room(network, tmp_path):
    proof, asked = narrow(network, Predictor), asked_of(network, BATCH)
    *_, limit = judging.known(asked["spec"], BATCH)
    assert proof.passed and proof.details["outputs_other"] < limit / 30
    assert at_full_size(network, Predictor, tmp_path)["proven"]["change"] < limit / 30


@pytest.mark.parametrize(("predictor", "network", "words"), DEFECTS)
def test_a_defect_is_refused_narrow_and_at_full_size(predictor, network, words, tmp_path):
    proof = narrow(network, predictor)
    assert not proof.passed and words in proof.reason
    with pytest.raises(NotEquivalent, match="at full size, the outputs are off"):
        at_full_size(network, predictor, tmp_path)


@pytest.mark.parametrize("seconds", [0.005, 0.015])
def test_a_pass_that_a_block_leaves_out_is_refused(seconds, short, tmp_path):
    """Of 15 ms, a block has two passes."""
    short[0] = seconds
    with pytest.raises(NotEquivalent, match="passes are left out"):
        at_full_size("lenet", LeavingOut, tmp_path)


def test_a_mini_batch_of_one_is_timed_pass_by_pass(tmp_path):
    said = at_full_size("resnet50", Predictor, tmp_path, batch=1)
    assert set(said["samples"]) == {1} and said["proven"]["change"] < judging.LIMIT


@pytest.mark.parametrize("network", deep_seldom(["fcn5", *NETWORKS[:-1]]))
def test_what_outputs_may_be_off_by_is_alike_at_every_mini_batch(network):
    """Of two samples, one number for each may be alike by chance: then PyTorch's FCN-5 was refused."""
    spec = networks.specify(network, CATALOGUE, narrow=True)
    one, many = (judging.reference(spec, batch, "float32")["outputs_spread"] for batch in (1, 16))
    assert 0.4 < one / many < 2.5


@pytest.mark.parametrize("network", sorted(CATALOGUE))
def test_samples_differ_by_far_more_than_the_limit(network):
    """Else a result that is kept would not be seen."""
    spec = networks.specify(network, CATALOGUE, narrow=True)
    try:
        outputs.refuse_drawn(spec)
    except Unsupported:
        return
    wanted, scale, limit = judging.known(spec, 4)
    assert evaluation.distance(wanted[:-1], wanted[1:], scale) > 2 * limit


def test_passes_stand_beside_the_steps_of_the_same_network_and_size(tmp_path):
    known = {"task": "forward", "timed_region": "forward,sync"}
    cells = [
        known | {"batch": batch, "seconds": seconds} for batch, seconds in ((64, 0.1), (1, 0.004))
    ]
    steps = measured(tmp_path, {"seconds": 0.4}, {"batch": 32, "seconds": 0.2})
    page = words()
    inputs = SimpleNamespace(
        measured=measured(tmp_path, *cells),
        every_measured=[steps],
        has=lambda word: True,
        frameworks=FRAMEWORKS,
        networks=EXAMPLES,
        page=page,
    )
    data, layout = artefact.table(inputs)
    (row,) = data.to_dict("records")
    assert (row["batch"], row["share"]) == (64, pytest.approx(0.25))
    assert row["samples_per_second"] == pytest.approx(640)
    assert row["latency"] == pytest.approx(0.004) and artefact.FEW in layout.iloc[0, 5].footnotes
    assert [entry.text for entry in layout.iloc[0, :5]] == ["0.400", "0.100", "25 %", "640", "4.00"]
