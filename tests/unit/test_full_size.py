"""A cell proves itself at its own size: what is the same there passes with room, what is not is refused."""

import json
import threading
from functools import cache

import numpy as np
import pytest
from defects import dropping
from defects.full_size import LATE, NEVER, PLANTED, OneOfBlock, in_bits, last_alone, late, rounded
from defects.generative import detached, untied_machine, without_divergence
from defects.optimisers import Dampened, Decaying, Uncorrected
from defects.planting import CATALOGUE, DROPPING, HONEST, losing
from defects.stand_in import RIGHT, Trainer, adapter, job, replacing
from defects.transformers import seeing

from shared import data
from shared.precisions import PRECISIONS
from shared.specification import at_rate
from steptime import networks
from steptime.prove import golden, reference, steady
from worker import building, full_size, timing
from worker.contract import NotEquivalent
from worker.tasks import step

BATCH = 32
STEP_SECONDS = 0.005
FLOAT32 = PRECISIONS["float32"]
DEEP = ("resnet50", "lstm32")
SAMPLING = {"budget_seconds": 0.1, "precision": 0.5, "least_samples": 3}


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """The path of the reference of a network at its narrow sizes and at BATCH."""

    @cache
    def of(network, precision="float32"):
        path = tmp_path_factory.mktemp("references") / f"{network}.npz"
        spec = networks.specify(network, CATALOGUE, narrow=True)
        np.savez(path, **reference.compute(spec, BATCH, precision))
        return path

    return of


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """By the clock a step takes as long on a busy machine, so that as many are taken; returns a list of its seconds."""
    now, step, seconds = [0.0], Trainer.step, [STEP_SECONDS]

    def counted(trainer):
        now[0] += seconds[0]
        return step(trainer)

    def clock():
        now[0] += 1e-6
        return now[0]

    monkeypatch.setattr(Trainer, "step", counted)
    monkeypatch.setattr(building, "clock", clock)
    monkeypatch.setattr(timing, "WARMUP_SECONDS", 0.0)
    monkeypatch.setattr(timing, "LEAST_SECONDS", 0.0)
    return seconds


def measure(network, trainer, path, gradients=True, precision="float32"):
    """What the worker says of a cell, by event."""
    spec, said = networks.specify(network, CATALOGUE, narrow=True), {"order": []}

    def emit(event, **facts):
        said["order"].append(event)
        said[event] = facts

    asked = job(spec) | {
        "task": "step",
        "proves": "",
        "batch": BATCH,
        "parameters": networks.count_parameters(spec),
        "sampling": SAMPLING,
        "reference": str(path),
        "gradients": gradients,
        "masks": networks.masks.of_network(spec, BATCH),
        "precision": precision,
    }
    planted = adapter(trainer)
    planted.versions = dict
    step.run(building.Loaded(planted, {}, 0.0), asked, emit)
    json.dumps(said)
    return said


@pytest.mark.parametrize(
    "network",
    ["fcn5", "alexnet", "resnet50", "lstm32", "gpt-small", "fcn5-momentum", "gpt-small-adamw"]
    + ["vae", "gan", "dbn", *DROPPING],
)
def test_the_right_network_is_proven_with_room(network, references):
    said = measure(network, Trainer, references(network))["proven"]
    assert said["lacking"] == "" and 0 <= said["loss"] < FLOAT32.loss / 3
    assert 0 < said["change"] < FLOAT32.change / 3


@pytest.mark.seldom
@pytest.mark.parametrize(("network", "rate"), [("convnext-tiny", 4.0), ("vit-tiny", 2.0)])
def test_a_first_step_may_take_the_loss(network, rate, tmp_path, monkeypatch):
    """Later ones then change little, or nothing, of what it has changed."""
    spec = at_rate(networks.specify(network, CATALOGUE, narrow=True), rate)
    monkeypatch.setattr(networks, "specify", lambda *_, **__: spec)
    monkeypatch.setitem(globals(), "BATCH", 1)
    np.savez(tmp_path / "reference.npz", **reference.compute(spec, BATCH))
    said = measure(network, Trainer, tmp_path / "reference.npz")["proven"]
    assert said["lacking"] == "" and 0 < said["change"] < FLOAT32.change


def test_a_framework_may_add_up_the_gradients_of_many_places_one_by_one(tmp_path, monkeypatch):
    """Biases of convolutions over 4096 steps were refused."""
    monkeypatch.setitem(CATALOGUE, "series", HONEST["series"] | {"narrow": {}})
    monkeypatch.setitem(globals(), "BATCH", 16)
    spec, path = networks.specify("series", CATALOGUE, narrow=True), tmp_path / "series.npz"
    np.savez(path, **reference.compute(spec, BATCH))

    def one_by_one(node, own, x):
        y, backward = RIGHT["grouped_conv"](node, own, x)

        def summed(dy):
            found, gradients = backward(dy)
            rows = np.moveaxis(dy, 1, -1).reshape(-1, dy.shape[1])
            return found, gradients | {"bias": np.cumsum(rows, 0, np.float32)[-1]}

        return y, summed

    said = measure("series", replacing(grouped_conv=one_by_one), path)["proven"]
    assert said["lacking"] == "" and said["change"] > FLOAT32.change
    for rough in (in_bits(8, kind="grouped_conv"), in_bits(11)):
        with pytest.raises(NotEquivalent, match="at full size"):
            measure("series", rough, path)


def cut_off(values, bits):
    """With so many bits of a significand, and the others gone."""
    own = np.ascontiguousarray(values, np.float64).view(np.int64) & (-1 << (53 - bits))
    return own.view(np.float64)


def products_of(bits, shortened):
    """A trainer all of whose products take factors of so many bits."""
    kinds = ("dense", "conv", "lstm")
    return replacing(
        **{kind: in_bits(bits, kind=kind, rounded=shortened).operations[kind] for kind in kinds}
    )


@pytest.mark.seldom
@pytest.mark.parametrize("network", ["fcn5", *DEEP])
def test_tf32_has_limits_of_its_own(network, references):
    path = references(network, "tf32")
    for shortened in (rounded, cut_off):
        held = measure(network, products_of(11, shortened), path, precision="tf32")["proven"]
        assert held["lacking"] == ""
    # What turns behind ResNet-50's many ReLUs hides one bit or two, or more.
    refused = products_of(4 if network == "resnet50" else 8, cut_off)
    with pytest.raises(NotEquivalent, match="at full size"):
        measure(network, refused, path, precision="tf32")


@pytest.mark.parametrize(
    "network", ["fcn5", *(pytest.param(each, marks=pytest.mark.seldom) for each in DEEP)]
)
def test_bfloat16_is_what_keeps_no_fewer_bits_and_no_more(network, references):
    path = references(network, "bfloat16")
    right = measure(network, products_of(8, rounded), path, precision="bfloat16")["proven"]
    assert right["lacking"] == "" and right["change"] > PRECISIONS["bfloat16"].least
    with pytest.raises(NotEquivalent, match="in the median: products keep more bits"):
        measure(network, Trainer, path, precision="bfloat16")
    with pytest.raises(NotEquivalent, match="at full size"):
        measure(network, products_of(4, rounded), path, precision="bfloat16")


def test_the_last_samples_are_those_that_another_trainer_repeats(references, short):
    last = ["resumed", "sample", "ended", "proven", "timed", "proven", "done"]
    order = measure("fcn5", Trainer, references("fcn5"))["order"]
    assert order[order.index("resumed") :] == last
    # Of blocks of several steps in each process, which shows that a block takes them all.
    order = measure("fcn5", Trainer, references("fcn5"), gradients=False)["order"]
    assert order[order.index("resumed") :] == last
    short[0] = 2 * timing.BLOCK_SECONDS
    assert "resumed" not in measure("fcn5", Trainer, references("fcn5"), gradients=False)["order"]


@pytest.mark.seldom
def test_noise_turns_no_window_moved_apart_and_hides_no_layer_below(tmp_path, monkeypatch):
    """CNTK's MNIST was refused at mini-batches of 32 and more, and no other framework's."""

    def noisily(node, own, x):
        noise = np.random.RandomState(3).uniform(-1, 1, x.shape) * np.ptp(
            x, (0, 2, 3), keepdims=True
        )
        turned = RIGHT["max_pool"](node, own, x + noise * steady.NEAR / 4)
        return RIGHT["max_pool"](node, own, x)[0], turned[1]

    def roughly(node, own, x):
        y, backward = RIGHT["conv"](node, own, x)
        return y, lambda dy: backward(rounded(dy, 8))

    monkeypatch.setattr(steady, "NEAR", 2.0**-15)
    monkeypatch.setattr(reference, "MANY_WINDOWS", 1)
    spec, path = networks.specify("alexnet", CATALOGUE, narrow=True), tmp_path / "alexnet.npz"
    np.savez(path, **reference.compute(spec, BATCH))
    noisy = measure("alexnet", replacing(max_pool=noisily), path)
    assert noisy["proven"]["change"] < FLOAT32.change / 3
    for rough in (replacing(conv=roughly), in_bits(8, "dense2")):
        with pytest.raises(NotEquivalent, match="the gradient of|the first change of"):
            measure("alexnet", rough, path)


def test_every_unit_is_well_on_where_samples_are_alike():
    """In a mini-batch of two, a unit has next to no range of its own, and noise turned some."""
    spec, seen = networks.specify("alexnet", CATALOGUE, narrow=True), []
    inputs = np.repeat(data.synthetic_batch(spec, 1)[0], 2, 0)
    start = data.initial_weights(spec)
    shifts = steady.forward(spec, start, inputs)[0]
    weights = {name: steady.shifted(values, shifts.get(name)) for name, values in start.items()}

    def look(node, sources):
        seen.extend(sources if node["op"] == "relu" else ())
        return sources

    golden.forward(spec, weights, inputs, taped=False, moved=look)
    units = next(values for values in seen if values.ndim == 2)
    assert units.min() > 1e-3


def test_no_value_stands_where_the_slope_of_a_hard_swish_leaps():
    """Noise turned one slope, and MobileNetV3 was refused in TensorFlow, Keras and PaddlePaddle."""
    spec = networks.specify("mobilenet-v3", CATALOGUE, narrow=True)
    start, (inputs, _) = data.initial_weights(spec), data.synthetic_batch(spec, BATCH)

    def nearest(shifts):
        weights = {name: steady.shifted(values, shifts.get(name)) for name, values in start.items()}
        seen = []

        def look(node, sources):
            if node["op"] == "hard_swish":
                seen.append(np.abs(np.abs(sources[0]) - 3.0).min())
            return sources

        golden.forward(spec, weights, inputs, taped=False, moved=look)
        return min(seen)

    shifts = steady.forward(spec, start, inputs)[0]
    assert nearest(shifts) > 1e-3 > nearest({})


def test_two_values_a_channel_may_be_normalised_by_products_with_their_mean(tmp_path, monkeypatch):
    """As Keras does. They become about 1 and -1, and rounding these shows nothing of what float32 does before."""

    def by_products(node, own, x):
        rows, gamma, beta = map(np.float32, (x[..., 0, 0], own["gamma"], own["beta"]))
        mean, variance = rows.mean(0), rows.var(0) + np.float32(1e-5)
        factor = gamma / np.sqrt(variance)

        def backward(dy):
            dy = np.float32(dy[..., 0, 0])
            slope = (dy * rows).sum(0) - mean * dy.sum(0)
            dx = factor * (dy - dy.mean(0) - (rows - mean) * (slope / variance / 2))
            own = {"gamma": slope * factor / gamma, "beta": dy.sum(0)}
            return [np.float64(dx)[..., None, None]], own

        return np.float64(rows * factor + (beta - mean * factor))[..., None, None], backward

    layers = [{"conv": {"channels": 16, "kernel": 4}}, "batch_norm", "flatten"]
    entry = {"input": {"kind": "image", "shape": [3, 4, 4]}, "sizes": {}, "narrow": {}}
    monkeypatch.setitem(CATALOGUE, "of-two", entry | {"layers": [*layers, {"dense": {"units": 5}}]})
    monkeypatch.setitem(globals(), "BATCH", 2)
    path = tmp_path / "reference.npz"
    np.savez(path, **reference.compute(networks.specify("of-two", CATALOGUE), BATCH))
    measure("of-two", replacing(batch_norm=by_products), path)
    rough = replacing(dense=lambda node, own, x: RIGHT["dense"](node, own, rounded(x, 11)))
    with pytest.raises(NotEquivalent, match="at full size"):
        measure("of-two", rough, path)


class Halving(Trainer):
    """Takes half of the steps where many are asked for."""

    def run(self, steps):
        return super().run(steps // 2 if steps > full_size.MOST_STEPS // 2 else steps)


@pytest.mark.parametrize(
    ("network", "trainer", "step_seconds"),
    [
        ("fcn5", Halving, 1e-4),
        ("fcn5-momentum", OneOfBlock, STEP_SECONDS),
        ("fcn5-momentum", Halving, 1e-4),
        ("fcn5-adamw", Halving, 1e-4),
        pytest.param("mnist", Halving, 1e-4, marks=pytest.mark.seldom),
    ],
)
def test_a_block_that_leaves_steps_out_is_refused_whatever_the_optimiser(
    network, trainer, step_seconds, references, short
):
    short[0] = step_seconds
    said = measure(network, Trainer, references(network))
    assert said["proven"]["lacking"] == "" and said["warmup"]["per_block"] <= full_size.MOST_STEPS
    with pytest.raises(NotEquivalent, match="after the samples"):
        measure(network, trainer, references(network))


@pytest.mark.parametrize("network", [*DROPPING])
@pytest.mark.parametrize("defect", ["left out", "not scaled", "the same for all samples"])
def test_dropout_that_is_wrong_above_the_narrow_size_is_refused(defect, network, references):
    mask, words, _ = dropping.MASKS[defect]
    wrong = dropping.masking(mask, above=dropping.NARROW)
    with pytest.raises(NotEquivalent, match=f"its dropout takes the first changes|{words}"):
        measure(network, wrong, references(network))


@pytest.mark.parametrize(
    ("network", "optimiser", "trainer", "words"),
    [
        ("drop-mlp", None, dropping.AnEighth, "the first loss|its dropout takes|the gradient of"),
        ("drop-mlp", None, dropping.LeftOut, "its dropout takes the first changes"),
        ("drop-shares", None, dropping.LeftOut, "its dropout takes the first changes"),
        ("drop-mlp", {"name": "adam"}, dropping.LeftOut, "first losses are those without dropout"),
        ("drop-seq", {"name": "adam"}, dropping.AnEighth, "the first loss"),
        ("drop-mlp", None, late(last_alone(NEVER)), "stands still"),
    ],
)
def test_the_trainer_that_is_timed_is_looked_at_where_it_drops(
    network, optimiser, trainer, words, references, monkeypatch
):
    if optimiser:
        # Under a name of its own, by which its reference is kept.
        own = {"optimiser": CATALOGUE["gpt-small-adam"]["optimiser"]}
        monkeypatch.setitem(CATALOGUE, f"{network}-adam", CATALOGUE[network] | own)
        network += "-adam"
        said = measure(network, Trainer, references(network))["proven"]
        assert said["lacking"] == "" and 0 < said["change"] < FLOAT32.change / 3
    with pytest.raises(NotEquivalent, match=words):
        measure(network, trainer, references(network))


@pytest.mark.parametrize("defect", PLANTED)
def test_what_begins_above_the_narrow_size_is_refused(defect, references):
    network, trainer, words = PLANTED[defect]
    with pytest.raises(NotEquivalent, match=words):
        measure(network, trainer, references(network))


@pytest.mark.parametrize(
    ("network", "trainer", "words"),
    [
        ("gpt-small", replacing(attention=seeing(None)), "the first change of"),
        ("fcn5-momentum", Dampened, "the loss of step 3"),
        ("gpt-small-adamw", Decaying, "the loss of step 2"),
        ("gpt-small-adam", Uncorrected, "the loss of step 3"),
        ("vae", losing(without_divergence), "the first change of"),
        ("gan", replacing(reversal=detached), "the first change of"),
        ("rbm", replacing(rbm=untied_machine), "the first change of"),
    ],
)
def test_another_mask_or_optimiser_is_refused_at_full_size(network, trainer, words, references):
    """Of what carries something from step to step, the losses of the first three say whether it is right."""
    with pytest.raises(NotEquivalent, match=words):
        measure(network, trainer, references(network))


def test_where_each_step_is_a_block_what_every_second_one_leaves_out_is_refused(
    references, short, monkeypatch
):
    network, trainer, _ = PLANTED["the last layer alone in every second step after a while"]
    short[0] = 2 * timing.BLOCK_SECONDS
    monkeypatch.setitem(SAMPLING, "least_samples", LATE)
    monkeypatch.setitem(SAMPLING, "budget_seconds", 10.0)
    assert measure(network, Trainer, references(network))["warmup"]["per_block"] == 1
    with pytest.raises(NotEquivalent, match="the loss after the samples|the change of"):
        measure(network, trainer, references(network))


@pytest.mark.parametrize(
    "defect",
    [
        "every twentieth update skipped",
        "no update after a while",
        "one step of a block",
        "the last layer alone in every second step after a while",
        "the last layer alone after a while, by momentum",
        "the last layer alone after a while, by AdamW",
    ],
)
def test_an_update_that_is_left_out_is_refused_in_each_repeat(defect, references):
    network, trainer, words = PLANTED[defect]
    with pytest.raises(NotEquivalent, match=words):
        measure(network, trainer, references(network), gradients=False)


def test_what_stands_still_is_right_where_it_has_no_gradient(references):
    spec = networks.specify("fcn5-momentum", CATALOGUE, narrow=True)
    proof = full_size.Proof(
        job(spec) | {"batch": BATCH, "reference": str(references("fcn5-momentum"))}
    )
    cut = {"dense2/weight": np.zeros_like(data.initial_weights(spec)["dense2/weight"])}
    proof.still = ["dense1/weight"], data.initial_weights(spec) | cut
    proof._hold_still(adapter())
    proof.still = ["dense1/weight"], data.initial_weights(spec)
    with pytest.raises(NotEquivalent, match="dense1/weight stands still"):
        proof._hold_still(adapter())


def test_of_steps_that_are_blocks_the_losses_show_an_update_that_is_left_out(references):
    """In between, or in all of the last ones; a fall that float32 no longer shows is none."""
    spec = networks.specify("fcn5", CATALOGUE, narrow=True)
    asked = job(spec) | {"batch": BATCH, "reference": str(references("fcn5"))}
    inputs, labels = data.synthetic_batch(spec, BATCH)
    trainer, proof = (
        Trainer(spec, data.initial_weights(spec), inputs, labels),
        full_size.Proof(asked),
    )
    gone = [3.0, 1.0, 0.0, 0.0, 0.0]
    for falling in ([3.0, 2.9, 2.8, 2.7], [3.0, 2.9, 2.9 - 3e-7, 2.9 - 3e-7], gone):
        proof.hold_steps(trainer, falling, 1)
    for number, left_out in ((3, [3.0, 2.9, 2.9, 2.8]), (4, [3.0, 2.9, 2.8, 2.8, 2.8])):
        with pytest.raises(NotEquivalent, match=f"left out: step {number} has the loss"):
            proof.hold_steps(trainer, left_out, 1)


@pytest.mark.seldom
def test_where_noise_hides_a_layer_of_lower_precision_it_is_shown_where_no_sign_turns(
    tmp_path, monkeypatch
):
    spec, path = networks.specify("resnet50", CATALOGUE, narrow=True), tmp_path / "noisy.npz"
    # So noisy is ResNet-50 at full size.
    monkeypatch.setitem(PRECISIONS, "float32", FLOAT32._replace(share=2e4))
    np.savez(path, **reference.compute(spec, BATCH))
    assert measure("resnet50", Trainer, path)["proven"]["change"] < FLOAT32.change / 3
    with pytest.raises(NotEquivalent, match="the gradient of"):
        measure("resnet50", in_bits(11, "conv26", kind="conv"), path)


def test_a_framework_that_builds_but_once_shows_no_gradients(references):
    built = []

    class Once(Trainer):
        def __init__(self, *arguments):
            built.append(1)
            if len(built) > 1:
                raise MemoryError("no room for another")
            super().__init__(*arguments)

    said = measure("fcn5", Once, references("fcn5"))["proven"]
    assert (said["gradients"], said["lacking"]) == (False, "MemoryError: no room for another")
    assert measure("fcn5", Trainer, references("fcn5"))["proven"]["gradients"]
    assert not measure("fcn5", Trainer, references("fcn5"), gradients=False)["proven"]["gradients"]


def test_without_a_reference_a_cell_is_timed_and_nothing_is_proven(tmp_path):
    path = tmp_path / "none.npz"
    np.savez(path, reason=np.array("its reference needs more than 1 GiB"))
    said = measure("fcn5", Trainer, path)
    assert said["proven"]["loss"] is None and said["proven"]["change"] is None and "done" in said


def test_by_a_reference_without_a_limit_nothing_is_proven(tmp_path, references):
    with np.load(references("fcn5")) as content:
        endless = {
            name: values * np.inf if name in ("limits", "spreads") else values
            for name, values in content.items()
        }
    np.savez(path := tmp_path / "endless.npz", **endless | {"spreads": np.full(3, np.inf)})
    said = measure("fcn5", Trainer, path, gradients=False)["proven"]
    assert said["loss"] is None and said["change"] is None


def test_a_reference_that_cannot_be_had_says_why(monkeypatch):
    spec = networks.specify("fcn5", CATALOGUE, narrow=True)
    found = reference.attempt(spec, BATCH, 1e-6, 10000)
    assert "took more than 1e-06 s" in str(found["reason"])
    monkeypatch.setattr(reference, "compute", lambda *_: [][0])
    found = reference.attempt(spec, BATCH, 600, 10000)
    assert str(found["reason"]) == "its reference ended with IndexError: list index out of range"


def test_a_network_whose_rate_is_too_large_diverges_and_is_no_fault_of_the_framework(
    tmp_path, monkeypatch
):
    spec = at_rate(networks.specify("fcn5", CATALOGUE, narrow=True), 1000.0)
    monkeypatch.setattr(networks, "specify", lambda *_, **__: spec)
    np.savez(tmp_path / "reference.npz", **reference.compute(spec, BATCH))
    with pytest.raises(timing.Diverged, match="the loss did not fall"):
        measure("fcn5", Trainer, tmp_path / "reference.npz")


def test_a_reference_is_the_same_where_two_steps_are_computed_side_by_side(monkeypatch):
    """And where there is memory for one alone."""
    monkeypatch.setitem(PRECISIONS, "float32", FLOAT32._replace(share=2e4))
    spec = networks.specify("resnet50", CATALOGUE, narrow=True)
    one, stepped = reference.compute(spec, BATCH), reference._step
    for lacking, beside, steps in ((False, 2, 5), (True, 1, 7)):
        threads = []

        def step(*arguments, lacking=lacking, threads=threads):
            threads.append(threading.current_thread() is not threading.main_thread())
            if lacking and threads[-1]:
                raise MemoryError
            return stepped(*arguments)

        monkeypatch.setattr(reference, "_step", step)
        two = reference.attempt(spec, BATCH, 600, 2**20, threads=2)
        assert (sum(threads), len(threads)) == (beside, steps)
        assert one["steady"] and list(one) == list(two)
        for name in set(one) - {"reason"}:
            # Sums of float32 in another order; limits are powers of two.
            rest = 2.0 if "limits" in name or "middle" in name else 1e-5
            np.testing.assert_allclose(two[name], one[name], rest, 1e-7, err_msg=name)
