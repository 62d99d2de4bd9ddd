"""The artefacts that belong to no paper: proofs, efficiency with its roofline, ratios."""

from types import SimpleNamespace

import pandas as pd
import pytest
from examples import CATALOGUE, PEAK, inputs, measured

from steptime import networks
from steptime.artefacts.results import efficiency, matrix, proofs, ratios, throughput
from steptime.render import tables
from steptime.render.words import significant


def spec_of(layers, shape, **sizes):
    entry = {
        "input": {"kind": "dense", "shape": shape},
        "sizes": sizes,
        "narrow": {},
        "layers": layers,
    }
    return networks.specify("small", {"small": entry})


def test_bytes_of_dense_layers_counted_by_hand():
    spec = spec_of([{"dense": {"units": 4}}, "relu", {"dense": {"units": 5}}], [3])
    first = 5 * (3 * 4 + 4) + 2 * 2 * 3 + 2 * 2 * 4
    second = 6 * (4 * 5 + 5) + 3 * 2 * 4 + 2 * 2 * 5
    loss = 2 * 2 * 5
    assert networks.bytes_per_step(spec, batch=2) == 4 * (first + second + loss)


def test_share_of_peak_is_that_of_the_same_thread_count(tmp_path):
    read = measured(tmp_path, {"threads": 1, "seconds": 1.0}, {"threads": 2, "seconds": 0.5})
    data = efficiency.shares(inputs(measured=read, peaks={"local-cpu": PEAK}))
    flops = networks.flops_per_step(networks.specify("fcn5", CATALOGUE), 64)
    assert data["share_of_peak"].tolist() == pytest.approx([flops / 1e11, flops / 0.5 / 2e11])
    assert [efficiency.percent(share) for share in (0.956, 1.034)] == ["96 %", "103 %"]


@pytest.mark.parametrize(
    ("cell", "known", "says"),
    [
        (
            {"seconds": None, "status": "crashed", "reason": "SIGSEGV"},
            {"local-cpu": PEAK},
            "crashed: SIGSEGV",
        ),
        (
            {"seconds": 1.0, "threads": 3},
            {"local-cpu": PEAK},
            "no peak of this machine is measured",
        ),
        (
            {"seconds": 1.0},
            {"local-cpu": PEAK | {"machine_id": "m2"}},
            "the peak of this machine is another machine's",
        ),
        ({"seconds": 1.0}, {}, "no peak of this machine is measured"),
    ],
)
def test_a_share_that_cannot_be_told_says_why(tmp_path, cell, known, says):
    read = measured(tmp_path, cell)
    told = inputs(measured=read, peaks=known)
    data, layout = told.table = efficiency.table(told)
    shares = layout[[column for column in layout.columns if "share" in column[0]]].iloc[0, 0]
    assert shares.text == "–" and shares.footnotes[0].startswith(says)
    _, drawing = efficiency.figure(told)
    assert any(says in note for note in drawing.notes)


def test_words_and_images_are_counted_a_second(tmp_path):
    """GPT's words are 256 a sample; the optimiser stands beside them, and a cell without a time says why."""
    cells = [
        {"network": "gpt-small", "variant": "gpt-small-adamw", "batch": 4, "seconds": 0.5},
        {"network": "vit-tiny", "batch": 8, "seconds": 2.0},
        {"network": "lstm32", "batch": 2, "seconds": None, "status": "timeout", "reason": "60 s"},
    ]
    told = inputs(measured=measured(tmp_path, *cells), peaks={"local-cpu": PEAK})
    told.table = throughput.table(told)
    data = told.table[0].set_index("network")
    assert data.loc["gpt-small-adamw", "items_per_second"] == pytest.approx(4 * 256 / 0.5)
    assert data.loc["vit-tiny", ["items_per_second", "item"]].tolist() == [4.0, "images"]
    assert data["optimiser"].tolist() == ["sgd", "sgd", "adamw"]
    texts = [entry.text for entry in told.table[1].loc["ViT-tiny, batch 8"].iloc[0]]
    flops = networks.flops_per_step(networks.specify("vit-tiny", CATALOGUE), 8)
    trained = ["8 images", "5,717,416 parameters", "sgd"]
    assert texts == [*trained, "2.00", "4.00", f"{significant(50 * flops / 1e11, 2)} %"]
    wide = told.table[0]["network"] == "vit-tiny"
    told.table[0].loc[wide, ["low", "high"]] = 0.1, 40.0
    drawn, drawing = throughput.figure(told)
    assert len(drawn) == 2 and len(drawing.axes) == 2
    # Behind the end of an axis words are not drawn.
    assert all(axes.texts[0].xy[0] <= axes.get_xlim()[1] for axes in drawing.axes)
    assert any("60 s" in note for note in drawing.notes)


def test_seconds_to_a_loss_are_those_of_the_epochs_that_it_took(tmp_path):
    """The median of the seeds that reach it, from the cell's own place; what reaches none says how far it came."""
    place = {"environment": "torch-9.9", "mode": "eager", "platform": "local-cpu", "threads": 1}
    place |= {"devices": 1}
    runs, epochs = [], []
    for key, name, losses in (
        ("a", "mnist-vae", (0.3, 0.1, 0.05)),
        ("b", "mnist-vae", (0.1, 0.05, 0.01)),
        ("c", "mnist-lenet", (0.5, 0.4, 0.35)),
    ):
        runs.append(
            place | {"key": key, "variant": name, "status": "not_reached", "reason": "0.35"}
        )
        epochs += [
            {"key": key, "test_loss": loss, "elapsed": 2.0 * at}
            for at, loss in enumerate(losses, 1)
        ]
    trained = SimpleNamespace(runs=pd.DataFrame(runs), epochs=pd.DataFrame(epochs))
    entry = {"no_loss": {"gan": "neither comes down"}}
    entry["until"] = {
        name: {"trained": f"mnist-{name}", "loss": 0.1} for name in ("vae", "lenet", "ffn-deep")
    }

    def found(network, **changes):
        return throughput._to_a_loss(place | {"network": network} | changes, entry, trained)

    assert found("vae") == {"loss_asked": 0.1, "seconds_to_loss": 3.0}
    assert found("vae", threads=2)["no_loss"] == "mnist-vae was not trained here"
    assert "0.35" in found("lenet")["no_loss"]
    assert found("gan") == {"no_loss": "neither comes down"}


def test_a_variant_has_operations_of_its_own(tmp_path):
    read = measured(tmp_path, {"seconds": 1.0}, {"seconds": 1.0, "variant": "fcn5-table2"})
    data = efficiency.shares(inputs(measured=read, peaks={"local-cpu": PEAK}))
    assert data["network"].tolist() == ["fcn5", "fcn5-table2"]
    assert data["flops_per_step"].nunique() == 2


def repeated(environment, *seconds):
    cell = {"environment": environment, "framework": environment.partition("-")[0]}
    return [cell | {"repeat": repeat, "seconds": value} for repeat, value in enumerate(seconds, 1)]


def test_a_ratio_is_of_repeats_side_by_side_and_says_where_no_difference_is_shown(tmp_path):
    read = measured(
        tmp_path,
        *repeated("torch-9.9", 1.0, 2.0, 4.0),
        *repeated("tensorflow-2.21", 1.1, 1.9, 4.4),
        *repeated("mxnet-1.9", 1.5, 3.1, 6.1),
        *repeated("jax-1.0", None),
    )
    data, layout = ratios.table(inputs(measured=read))
    found = data.set_index("framework")
    assert found["verdict"].fillna("").to_dict() == {
        "torch": "shortest",
        "tensorflow": "not decided",
        "mxnet": "slower",
        "jax": "",
    }
    assert found.loc["mxnet", "ratio"] == pytest.approx((1.5 * 3.1 / 2 * 6.1 / 4) ** (1 / 3))
    assert found.loc["tensorflow", "low"] < 1 < found.loc["tensorflow", "high"]
    texts = dict(zip(data["framework"], layout.iloc[:, 0], strict=True))
    assert texts["torch"].text == "2000 ms" and not texts["torch"].best
    assert texts["tensorflow"].text.endswith(" not decided") and texts["jax"].footnotes


def test_one_process_of_each_decides_nothing(tmp_path):
    read = measured(tmp_path, *repeated("torch-9.9", 1.0), *repeated("mxnet-1.9", 5.0))
    told = inputs(measured=read)
    data, layout = ratios.table(told)
    assert data["verdict"].tolist() == ["shortest", "not decided"]
    assert (
        layout.iloc[1, 0].text == "5.00 not decided"
        and "`repeats`" in layout.iloc[1, 0].footnotes[0]
    )
    assert any("One run measured" in note for note in told.page.notes)


def proof(network="fcn5", **changes):
    details = {
        "parameters": 10,
        "frozen_parameters": 0,
        "loss_error": 1e-7,
        "later_loss_error": 1e-7,
    }
    details |= {"worst_cosine": 1 + 1e-15, "worst_update": 1e-6, "after1_parameters": 1e-8}
    found = {
        "environment": "torch-9.9",
        "mode": "eager",
        "network": network,
        "status": "ok",
        "reason": "",
    }
    return found | {"proof_id": "0123", "details": details} | changes


def test_every_empty_place_of_the_proofs_has_its_reason():
    found = [
        proof(),
        proof(
            "fcn8",
            status="not_equivalent",
            reason="the framework lacks dense2",
            details={"parameters": 7},
        ),
        proof("lstm32", status="install_failed", reason="no wheel", proof_id=None, details={}),
    ]
    told = inputs(proofs=found, facts={"owners": {"torch-9.9": "torch"}})
    data, layout = proofs.table(told)
    assert data["one_minus_cosine"].iloc[0] == 0
    assert told.page.facts == [
        "1 of 3 proofs passed (1 not the same training step; 1 does not install)."
    ]
    for _, row in layout.iterrows():
        assert all(entry.text and (entry.text != "–" or entry.footnotes) for entry in row)
    tables.markdown(layout, told.page)
    assert layout.iloc[1]["Proof"].footnotes == (
        "not the same training step: the framework lacks dense2",
    )


def test_the_matrix_of_proofs_says_passed_or_why_not():
    found = [proof(), proof(status="not_equivalent", reason="it lacks dense2", mode="compiled")]
    missing = "the layer 'lstm' is not written here, since no grid asks for it"
    found += [proof("fcn8", devices=2, exchange="sync"), proof("lstm32")]
    found += [proof("lstm32", mode="compiled", status="unsupported", reason=missing)]
    told = inputs(proofs=found, facts={"owners": {"torch-9.9": "torch"}})
    data, layout = matrix.table(told)
    assert set(data["network"]) == {"fcn5", "lstm32"}
    texts = [[entry.text for entry in row] for _, row in layout.iterrows()]
    assert texts == [["passed", "not the same training step"], ["passed", "not supported"]]
    assert "it lacks dense2" in layout.iloc[0, 1].footnotes[0]
    assert layout.iloc[1, 1].footnotes == (f"not supported: {missing}",)


def test_a_disturbed_cell_and_a_disturbed_peak_are_marked_wherever_they_are_shown(tmp_path):
    read = measured(
        tmp_path, {"seconds": 1.0, "foreign_cpus": 0.5}, {"seconds": 1.0, "network": "fcn8"}
    )
    threads = {"1": PEAK["threads"]["1"] | {"disturbed": True}}
    known = {"local-cpu": PEAK | {"threads": threads}}
    told = inputs(measured=read, peaks=known)
    data, layout = told.table = efficiency.table(told)
    first, second = (
        layout[[column for column in layout.columns if "share" in column[0]]].iloc[at, 0]
        for at in (0, 1)
    )
    assert [len(entry.footnotes) for entry in (first, second)] == [2, 1]
    assert "peak that was measured while other programs" in second.footnotes[0]
    assert any("so it may be too low" in fact for fact in told.page.facts)
    assert data["marks"].tolist() == ["disturbed", ""]
    _, drawing = efficiency.figure(told)
    said = " ".join(drawing.notes)
    assert "PyTorch 9.9.0, FCN-5 (another program or another guest" in said
    caption = drawing.texts[-1].get_text().replace("\n", " ")
    assert caption.endswith("it may be too low. * disturbed")
    assert [text.get_text() for text in drawing.axes[0].texts].count("*") == 1


def test_two_machines_of_one_kind_in_a_column_are_told(tmp_path):
    read = measured(
        tmp_path, {"seconds": 1.0}, {"seconds": 1.0, "network": "fcn8", "machine_id": "m2"}
    )
    told = inputs(measured=read, peaks={})
    efficiency.table(told)
    assert "this machine is 2 machines of this kind." in told.page.facts
