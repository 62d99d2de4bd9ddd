"""Cells on GPUs in tables: beside each GPU of a paper, with their own memory and energy."""

from types import SimpleNamespace

import pytest
from examples import ROOT, measured
from examples import inputs as given
from matplotlib.text import Text

from steptime.artefacts.results import energy, memory, sweep, times
from steptime.artefacts.trainings import trainings
from steptime.claims.papers import read_printed
from steptime.merge.measured import Measured
from steptime.reading import read_yaml

GIB = 2**30
SHI2016 = ROOT / "resources/papers/shi2016"
SHATNAWI2018 = ROOT / "resources/papers/shatnawi2018"
ON_GPU = {"platform": "local-gpu", "environment": "torch-9.9-cuda", "device": "gpu", "steps": 5}
ON_GPU |= {"peak_device_memory_bytes": GIB, "energy_joules": 480.0, "host_energy_joules": None}
ON_CPU = {"energy_joules": None, "host_energy_joules": None, "steps": 5}


def inputs(tmp_path, printed, *cells):
    return given(
        measured=measured(tmp_path, *cells),
        entry={"title": "Title", "quantity": "Seconds per mini-batch"},
        printed=read_printed(SHI2016 / printed),
        catalogue=read_yaml(SHI2016 / "paper.yaml"),
    )


def test_a_gpu_stands_beside_each_gpu_of_the_paper(tmp_path):
    made = inputs(tmp_path, "table4.csv", ON_GPU | {"seconds": 0.01}, ON_CPU | {"seconds": 0.5})
    data, layout = times.table(made)
    theirs = made.printed[(made.printed["network"] == "fcn5") & (made.printed["batch"] == "64")]
    theirs = theirs[theirs["framework"] == "torch7"].set_index("platform")["number"]
    line = layout.xs("PyTorch 9.9.0 (stands for Torch)", level="Measured here").iloc[0]
    shown = {
        group: line[group, "1 device"].text
        for group, _ in layout
        if "÷" in group and "threads" not in group
    }
    assert list(shown) == [
        f"Ours ÷ theirs on the {name}" for name in ("GTX 1080", "GTX 980", "Tesla K80")
    ]
    for platform, text in zip(("gtx1080", "gtx980", "k80"), shown.values(), strict=True):
        assert float(text) == pytest.approx(0.01 / theirs[platform], rel=0.05)
    (row,) = data[(data["source"] == "ours") & (data["device"] == "gpu")].to_dict("records")
    assert row["theirs_platform"] == "gtx1080" and row["ratio"] == pytest.approx(
        0.01 / theirs["gtx1080"]
    )
    assert (
        "those of a GPU by what it printed for the GTX 1080, GTX 980, Tesla K80"
        in made.page.notes[1]
    )


def test_two_environments_of_one_version_and_products_in_tf32_are_lines_of_their_own(tmp_path):
    jax = ON_GPU | {"framework": "jax", "mode": "compiled", "framework_version": "0.12.0"}
    cells = [
        jax | {"environment": "jax-0.12", "platform": "local-cpu", "device": "cpu", "seconds": 0.3},
        jax | {"environment": "jax-0.12-cuda12", "seconds": 0.2},
        jax | {"environment": "jax-0.12-cuda", "seconds": 0.1},
        jax | {"environment": "jax-0.12-cuda", "precision": "tf32", "seconds": 0.05},
    ]
    data, layout = times.table(inputs(tmp_path, "table4.csv", *cells))
    ours = data[data["source"] == "ours"].sort_values("ours")["framework_label"]
    names = ["JAX 0.12.0, tf32", "JAX 0.12.0", "JAX 0.12.0 (jax-0.12-cuda12)"]
    assert [name for name in ours if name in names] == [names[0], names[1], names[2], names[1]]
    assert set(names) <= {*layout.index.get_level_values("Measured here")}


def test_memory_of_a_cell_on_a_gpu_is_the_gpus_own(tmp_path):
    cells = [
        ON_GPU
        | {
            "batch": batch,
            "seconds": 1.0,
            "peak_device_memory_bytes": GIB + batch * 2**24,
            "peak_memory_bytes": 1,
        }
        for batch in (32, 64)
    ]
    data, layout = memory.table(inputs(tmp_path, "table3.csv", *cells))
    assert [entry.text for entry in layout.iloc[0]["Measured"]] == ["32, 64", "1.50, 2.00"]
    assert layout.index[0][2] == "this machine's GPU" and set(data["memory_of"]) == {"the GPU"}
    assert layout.iloc[0]["Largest in as much as a GPU has", "4 GiB (GTX 980)"].text == "192"


def test_energy_of_a_sample_is_of_the_gpu_or_of_the_processors_and_says_by_what(tmp_path):
    cells = [ON_GPU | {"seconds": 0.1}, ON_CPU | {"seconds": 1.0}]
    cells += [ON_GPU | {"seconds": 0.1, "devices": 2, "exchange": "sync"}]
    made = inputs(tmp_path, "table4.csv", *cells)
    machine = {"gpu_energy": "power", "processor_energy": "this user may not read it"}
    found = made.measured
    made.measured = Measured(found.rows, found.cells, {"m1": machine}, {}, "merged")
    data, layout = energy.table(made)
    assert "this machine's GPU, 2 devices, sync" in [place for _, _, place in layout.index]
    known = data[data["devices"] == 1].set_index("device")
    # Six samples of five steps of 64: 480 J in 3 s.
    assert known.loc["gpu", "joules_per_sample"] == pytest.approx(480 / (6 * 5 * 64))
    assert known.loc["gpu", "watts"] == pytest.approx(160)
    by_place = layout.reset_index(["Network", "Framework"], drop=True)
    assert by_place.loc["this machine's GPU", "By"].text == "NVML's power of the GPU over the time"
    (why,) = by_place.loc["this machine, 1 thread", "Watts"].footnotes
    assert why == "this user may not read it"


def test_figures_of_the_papers_gpus_hold_a_gpu_of_ours(tmp_path):
    cells = [ON_GPU | {"batch": batch, "seconds": batch / 1000} for batch in (32, 64)]
    made = inputs(tmp_path, "table4.csv", *cells)
    made.entry |= {"network": "fcn5", "sources": ["Figure 1(a)", "Table 4"]}
    data, drawing = sweep.figure(made)
    counts = data.groupby("source")["platform"].nunique().to_dict()
    assert counts == {"ours": 1, "paper": 3}
    assert "no GPU" not in str([text.get_text() for text in drawing.findobj(Text)])
    paper = read_yaml(SHATNAWI2018 / "paper.yaml")
    training = ON_GPU | {"network": "mnist", "task": "training", "framework": "tensorflow"}
    found = measured(tmp_path, training | {"seconds": 20.0})
    printed = read_printed(SHATNAWI2018 / "table3.csv")
    bars, _ = trainings.figure(
        given(
            trained=SimpleNamespace(times=found),
            printed=printed,
            catalogue=paper,
            entry=paper["artefacts"]["fig5"],
        )
    )
    assert (bars["source"] == "ours").sum() == 1 and set(bars["device"]) == {"gpu"}
