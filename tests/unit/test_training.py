"""Training on real images: what is proven of it, in which order images come, and when it ends."""

import copy
import json
from types import SimpleNamespace

import numpy as np
import pytest
from defects import around, stand_in
from defects import training as fed
from examples import CATALOGUE, ROOT
from today import TORCH

from shared.specification import learning_rate
from steptime import networks
from steptime.networks.losses import LOSSES
from steptime.plan import configuration, grid
from steptime.prove import compare, golden
from worker.tasks import proof as prove
from worker.tasks import training
from worker.timing import Diverged

TRAINED = [name for name in CATALOGUE if "dataset" in networks.resolve(name, CATALOGUE)]


def verdict(name, adapter):
    spec = networks.specify(name, CATALOGUE, narrow=True)
    return compare.judge(spec, golden.expect(spec), prove.collect(adapter, stand_in.job(spec)))


@pytest.mark.parametrize("name", TRAINED)
def test_a_right_training_is_proven(name):
    proof = verdict(name, fed.adapter())
    assert proof.passed, proof.reason
    assert json.dumps(proof.details)
    kept = {key: share for key, share in proof.details.items() if key.endswith("_kept")}
    nodes = networks.specify(name, CATALOGUE)["nodes"]
    assert len(kept) == len({node["rate"] for node in nodes if node["op"] == "dropout"})


@pytest.mark.parametrize(
    ("name", "defect", "check", "words"),
    [
        ("mnist", "Unfed", "feeding", "the mean loss over 3 mini-batches that were fed"),
        ("mnist-cntk", "Rateless", "feeding", "mean loss over 3 mini-batches that were fed"),
        ("mnist", "LastLoss", "feeding", "the mean loss over 3 mini-batches that were fed"),
        ("mnist", "Forgetful", "steps", "is wrong after one step and then a call of 3 steps"),
        ("cifar10", "Forgetful", "steps", "wrong after one step and then a call of 3 steps"),
        ("cifar10", "Descending", "steps", "is wrong after one step"),
        ("mnist", "DroppingScores", "scores", "dropout may be in them"),
    ],
)
def test_a_defect_of_training_is_refused(name, defect, check, words):
    build = around.DEFECTS[defect]
    proof = verdict(name, SimpleNamespace(build=lambda job: build(fed.adapter(), job)))
    assert (proof.passed, proof.check) == (False, check), proof.reason
    assert words in proof.reason


def test_learning_rates_follow_cntk_s_schedule_and_keras_s_decay():
    steps = {"learning_rate": 0.1, "after_epochs": [[10, 0.03], [20, 0.01]]}
    assert [learning_rate(steps, epoch, 0) for epoch in (1, 10, 11, 20, 21)] == [
        0.1,
        0.1,
        0.03,
        0.03,
        0.01,
    ]
    assert learning_rate({"learning_rate": 1e-4, "decay": 1e-6}, 3, 10**6) == pytest.approx(5e-5)


class Recorder:
    """A trainer that keeps what it is fed, and knows the right answers from the first pixel."""

    def __init__(self, loss=1.0):
        self.fed, self.loss = [], loss

    def train(self, batches):
        self.fed.append([(inputs.copy(), labels.copy()) for inputs, labels, _ in batches])
        return self.loss

    def scores(self, inputs):
        return np.eye(10)[np.rint(inputs[:, 0, 0, 0] * 255).astype(int)]


CLASSIFYING = {"input": {"shape": [1, 2, 2]}, "optimiser": {"learning_rate": 0.1}}


def train(trainer, spec=CLASSIFYING, **changes):
    labels = np.arange(25, dtype=np.int32) % 10
    images = np.zeros((25, 1, 2, 2), np.uint8)
    images[:, 0, 0, 0] = labels
    images[:, 0, 1, 1] = np.arange(25)
    wrong = images.copy()
    wrong[:5, 0, 0, 0] = (labels[:5] + 1) % 10
    splits, said = {"train": (images, labels), "test": (wrong, labels)}, []
    planned = {"seed": 5, "epochs": 3, "target_accuracy": 1.0, "budget_seconds": 100} | changes
    ticks = iter(range(10**6))
    stopped = training.train(
        trainer,
        spec,
        splits,
        4,
        planned,
        lambda: float(next(ticks)),
        lambda: 0.0,
        lambda event, **fields: said.append(fields),
    )
    return stopped, said


def test_an_epoch_is_every_image_once_in_an_order_of_its_own():
    recorder = Recorder()
    stopped, said = train(recorder)
    assert stopped == "epochs" and [epoch["epoch"] for epoch in said] == [1, 2, 3]
    orders = []
    for epoch in recorder.fed:
        assert [inputs.shape for inputs, _ in epoch] == [(4, 1, 2, 2)] * 6
        order = [round(float(value) * 255) for inputs, _ in epoch for value in inputs[:, 0, 1, 1]]
        assert len(set(order)) == 24 and [image % 10 for image in order] == [
            n for _, labels in epoch for n in labels
        ]
        orders.append(order)
    assert orders[0] != orders[1] != orders[2]
    again = Recorder()
    train(again)
    assert np.array_equal(again.fed[2][5][0], recorder.fed[2][5][0])
    other = Recorder()
    train(other, seed=6)
    assert not np.array_equal(other.fed[0][0][0], recorder.fed[0][0][0])


def test_training_ends_at_the_accuracy_or_at_the_budget_or_when_it_diverges():
    stopped, said = train(Recorder(), target_accuracy=0.8)
    assert stopped == "accuracy" and len(said) == 1
    # The last of seven mini-batches has one image and three that fill it up and do not count.
    assert said[0]["accuracy"] == 0.8
    stopped, said = train(Recorder(), budget_seconds=20)
    assert stopped == "seconds" and len(said) == 2
    # The clock of this test counts its readings: two for each of six mini-batches, and one at the end.
    assert said[0]["seconds"] == 13 and said[0]["feed_seconds"] == 6
    with pytest.raises(Diverged, match="the mean loss of epoch 1 was nan"):
        train(Recorder(float("nan")))


class Returner:
    """Gives back its pixels as if it were sure of them, and a code that is the noise behind them, of variance 1."""

    def __init__(self):
        self.fed = []

    def train(self, batches):
        self.fed += [(inputs.copy(), targets.copy()) for inputs, targets, _ in batches]
        return 1.0

    def scores(self, inputs):
        code = inputs[:, 4:]
        return np.concatenate([40 * inputs[:, :4] - 20, code, 0 * code], 1)


def test_what_gives_its_images_back_is_fed_noise_besides_and_judged_by_its_loss():
    spec = {"input": {"shape": [7]}, "optimiser": {"learning_rate": 0.1}, "loss": "evidence_bound"}
    trainer = Returner()
    stopped, said = train(trainer, spec, target_accuracy=0.0)
    assert stopped == "epochs" and {epoch["accuracy"] for epoch in said} == {None}
    inputs, targets = (np.concatenate(each) for each in zip(*trainer.fed, strict=True))
    assert np.array_equal(inputs[:, :4], targets) and inputs.dtype == np.float32
    assert len(np.unique(inputs[:, 4:])) == 3 * len(inputs) and abs(inputs[:, 4:].mean()) < 0.3

    (images, labels), seen = (np.full((9, 1, 2, 2), 255, np.uint8), np.zeros(9, np.int32)), []
    scores = trainer.scores
    trainer.scores = lambda inputs: seen.append(inputs) or scores(inputs)
    loss, accuracy = training.judge(trainer, spec, (images, labels), 4)
    noise = np.concatenate(seen)[:9, 4:].astype(float)
    outputs = np.concatenate([np.full((9, 4), 20.0), noise, 0 * noise], 1)
    wanted, _ = LOSSES["evidence_bound"].value(outputs, np.ones((9, 4)))
    assert accuracy is None and loss == pytest.approx(wanted)
    again, _ = training.judge(trainer, spec, (images, labels), 4)
    assert again == loss


def load(**changes):
    config = {"grid": "desktop"} | changes
    return configuration.load(ROOT, config)


def trainings(loaded):
    """The trainings of a grid by their keys."""
    cells = grid.expand(loaded, 2).cells
    return {key: cell for key, cell in cells.items() if cell.task == "training"}


def test_a_subset_has_a_name_of_its_own_and_gives_way_to_the_whole():
    subset = trainings(load())
    assert {training.dataset for training in subset.values()} == {"mnist-5k"}
    assert f"local-cpu/training/{TORCH}.eager.float32-mnist.mnist-5k-b128-t1-d1-r1" in subset
    whole = trainings(load(data={"mnist": "somewhere"}))
    assert {training.dataset for training in whole.values()} == {"mnist"} and not set(whole) & set(
        subset
    )
    without = grid.expand(load(grid="paper"), 2)
    found = {cell.network for cell in without.cells.values() if cell.task == "training"}
    assert found == {"mnist", "mnist-cntk"}
    assert without.missing == ["CIFAR-10"]


def test_a_network_that_does_not_fit_its_images_is_refused():
    loaded = load()
    loaded.datasets["mnist-5k"] = copy.deepcopy(loaded.datasets["mnist-5k"]) | {"shape": [1, 8, 8]}
    with pytest.raises(
        configuration.ConfigurationError, match=r"it takes images of \[1, 28, 28\] in 10 classes"
    ):
        grid.expand(loaded, 2)
    loaded = load()
    loaded.grid["training"]["networks"] = ["mnist-ffn-shallow", "mnist-vae"]
    assert {cell.network for cell in trainings(loaded).values()} == {
        "mnist-ffn-shallow",
        "mnist-vae",
    }
    wide = {"parameters": 636810, "sizes": {"inputs": 785}}
    loaded.networks["mnist-ffn-shallow"] = loaded.networks["mnist-ffn-shallow"] | wide
    with pytest.raises(configuration.ConfigurationError, match=r"it takes images of \[785\]"):
        grid.expand(loaded, 2)
    loaded = load()
    loaded.grid["training"]["networks"] = ["fcn5"]
    with pytest.raises(
        configuration.ConfigurationError, match="'fcn5' cannot be trained on images"
    ):
        grid.expand(loaded, 2)
