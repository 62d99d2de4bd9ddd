"""The printed numbers as data, and the artefacts that are made beside them."""

import json
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import CELL, ROOT

from steptime.artefacts import make as program
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import times
from steptime.reading import InputError, read_yaml
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.words import significant, spread

PAPERS = ROOT / "resources" / "papers"
SHI2016 = PAPERS / "shi2016"
ENTRIES = read_yaml(SHI2016 / "paper.yaml")["artefacts"]
MACHINES = {
    "m1": {
        "cpu": {"model": "A CPU", "physical_cores": 2, "logical_cores": 2},
        "memory_bytes": 24 * 2**30,
        "os": "Linux",
        "gpus": [],
    }
}
OPENBLAS = "OpenBLAS 0.3.13 NO_LAPACKE DYNAMIC_ARCH Zen MAX_THREADS=64 runs Zen"
BLAS = f"{OPENBLAS}; {OPENBLAS}; Intel(R) MKL-DNN v3.12.0 (Git Hash 80afa71049cd)"
SOFTWARE = {
    "torch-9.9": {"python": "3.11.7", "framework_version": "9.9.0", "blas": BLAS, "cuda": None}
}
CELLS = [
    # environment, framework, version, network, threads, batch, times or (status, reason)
    ("torch-9.9", "torch", "9.9.0", "fcn5", 1, 64, [0.50, 0.51, 0.49, 0.50, 0.50, 0.52]),
    ("torch-9.9", "torch", "9.9.0", "fcn5", 4, 64, [0.20] * 6),
    ("torch-9.9", "torch", "9.9.0", "fcn5", 1, 8, [0.10] * 6),
    ("torch-9.9", "torch", "9.9.0", "fcn5-table2", 1, 64, [0.30] * 6),
    ("tensorflow-2.21", "tensorflow", "2.21.0", "fcn5", 1, 64, [0.60] * 6),
    ("mxnet-1.9", "mxnet", None, "fcn5", 1, 64, ("install_failed", "no wheel | for this Python")),
    ("torch-9.9", "torch", "9.9.0", "resnet50", 1, 16, ("out_of_memory", "killed at 23 GiB")),
]


def rows_of(environment, framework, version, network, threads, batch, outcome):
    """The merged rows of one cell."""
    status, reason = ("ok", "") if isinstance(outcome, list) else outcome
    cell = CELL | {"environment": environment, "framework": framework, "framework_version": version}
    cell |= {
        "mode": "graph",
        "network": network.partition("-")[0],
        "threads": threads,
        "batch": batch,
    }
    cell |= {"variant": network if "-" in network else "", "status": status, "reason": reason}
    cell |= {"effective_threads": float(threads), "peak_memory_bytes": 2**30}
    cell |= {"started_at": "2026-01-02T03:04:05+00:00"}
    cell |= {} if status == "ok" else {"timed_region": None}
    samples = outcome if status == "ok" else [None]
    return [cell | {"sample": index, "seconds": seconds} for index, seconds in enumerate(samples)]


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """A function that gives the inputs of an artefact, made of CELLS or of others."""
    monkeypatch.chdir(tmp_path)

    def make(artefact, cells=CELLS, **others):
        table = pa.Table.from_pandas(
            pd.DataFrame([row for cell in cells for row in rows_of(*cell)])
        )
        words = json.dumps({"machines": MACHINES, "software": SOFTWARE}).encode()
        pq.write_table(
            table.replace_schema_metadata({b"steptime": words}), tmp_path / "merged.parquet"
        )
        printed = ENTRIES[artefact].get("printed", artefact)
        files = {
            "cells": tmp_path / "merged.parquet",
            "printed": SHI2016 / f"{printed}.csv",
            "catalogue": SHI2016 / "paper.yaml",
            "frameworks": ROOT / "resources" / "papers" / "frameworks.yaml",
            "networks": ROOT / "config" / "networks.yaml",
            "releases": ROOT / "resources/steptime/releases.yaml",
        }
        files = {word: [str(path)] for word, path in (files | others).items()}
        return Inputs(f"shi2016_{artefact}", files, {})

    return make


def test_every_framework_has_a_colour_and_marker_of_its_own():
    known = read_yaml(PAPERS / "frameworks.yaml")
    assert set(read_yaml(ROOT / "config/frameworks.yaml")) <= set(known)
    assert len({(entry["colour"], entry["marker"]) for entry in known.values()}) == len(known)


def test_table4_sets_like_beside_like_only(inputs):
    data, layout = inputs("table4").table
    ours = data[(data["source"] == "ours") & (data["variant"] == "")]
    ours = ours.set_index(["environment", "network", "threads", "batch"])
    assert ours.loc[("torch-9.9", "fcn5", 1, 64), "theirs"] == 1.227
    assert ours.loc[("torch-9.9", "fcn5", 1, 64), "ratio"] == pytest.approx(0.50 / 1.227)
    assert ours.loc[("tensorflow-2.21", "fcn5", 1, 64), "theirs"] == 7.205
    # Another mini-batch size, a variant, and a framework that the paper has not have nothing beside them.
    assert data.loc[data["variant"] == "fcn5-table2", "theirs"].isna().all()
    assert pd.isna(ours.loc[("torch-9.9", "fcn5", 1, 8), "theirs"])
    assert pd.isna(ours.loc[("mxnet-1.9", "fcn5", 1, 64), "theirs"])
    assert (data["source"] == "paper").sum() == 286
    assert ("FCN-5, batch 64", "Torch", "PyTorch 9.9.0 (stands for Torch)") in layout.index


def test_table1_names_each_library_once_and_the_data_has_its_own_words(inputs):
    data, layout = inputs("table1").table
    assert BLAS in data["ours"].tolist()
    shown = [entry.text for entry in layout["Here", "BLAS, oneDNN"] if entry.text]
    assert "OpenBLAS 0.3.13 (Zen); oneDNN 3.12.0" in shown


def test_pytorch_is_called_torch_only_where_a_paper_has_torch():
    known = Frameworks(PAPERS / "frameworks.yaml")
    ours = {"source": tables.OURS, "lineage": "torch", "framework": "torch"}
    theirs = ours | {"source": tables.PAPER, "framework": "torch7"}
    assert times._lineage_names(pd.DataFrame([ours]), known) == {"torch": "PyTorch"}
    assert times._lineage_names(pd.DataFrame([ours, theirs]), known) == {"torch": "Torch"}


def test_every_dash_of_table4_has_a_footnote(inputs, tmp_path):
    made = inputs("table4")
    data, layout = made.table
    entries = [entry for row in layout.itertuples(index=False) for entry in row]
    assert sum(entry.text == tables.DASH for entry in entries) == 16 + 2
    assert all(entry.footnotes for entry in entries if entry.text == tables.DASH)
    tables.write(tmp_path / "table", data, layout, made.page)
    page = (tmp_path / "table.html").read_text()
    assert "does not install: no wheel | for this Python" in page
    assert "out of memory: killed at 23 GiB" in page
    assert set(re.findall(r'href="#(note-[\w-]+)"', page)) == set(
        re.findall(r'<dt id="(note-[\w-]+)"', page)
    )
    assert not re.search(r'(src|href)="(?!#)', page)


def test_ten_printed_times_need_more_than_the_peak_of_their_processor(inputs):
    data, layout = inputs("table4").table
    above = data[data["peak_share"] > 1]
    assert len(above) == 10 and {*above["framework"]} == {"cntk"}
    assert {*above["network"]} == {"lstm32", "lstm64"} and {*above["device"]} == {"cpu"}
    # LSTM-64 with one thread: 177 GFLOP in 1.026 s, of a core of 57.6 GFLOP/s.
    assert above["peak_share"].max() == pytest.approx(3.0, abs=0.01)
    assert (layout["Shi et al. 2016", "most of the peak"].map(lambda entry: entry.best)).sum() == 2


def test_table4_names_the_marked_and_calls_no_single_run_the_best(inputs):
    data, _ = inputs("table4").table
    ours = data[(data["source"] == "ours") & (data["variant"] == "")]
    ours = ours.set_index(["environment", "network", "threads", "batch"])
    assert not ours["best"].any() and data.loc[data["source"] == "paper", "best"].any()
    assert (
        ours.loc[("torch-9.9", "fcn5", 4, 64), "footnote"]
        == "more threads than the machine has CPUs"
    )


@pytest.mark.parametrize(
    "artefact", [name for name in ENTRIES if name.startswith("table") or name in ("fig1a", "fig1d")]
)
@pytest.mark.parametrize(
    "cells", [CELLS, CELLS[:1], CELLS[-2:]], ids=["some failed", "one cell", "all failed"]
)
def test_artefacts_are_complete_whatever_failed(inputs, tmp_path, artefact, cells):
    made = inputs(artefact, cells)
    made.write()
    (path,) = tmp_path.glob(f"results/*/shi2016_{artefact}.csv")
    if path.parent.name == "tables":
        assert tables.read_page(path.with_suffix(".parquet")).artefact == f"shi2016_{artefact}"
        assert len(pd.read_csv(path)) == len(made.table[0])
    else:
        assert path.with_suffix(".svg").stat().st_size > 0 and len(pd.read_csv(path))


def test_the_figure_names_what_it_could_not_draw(inputs, tmp_path):
    inputs("fig1d", CELLS[-1:]).write()
    drawing = (tmp_path / "results/figures/shi2016_fig1d.svg").read_text()
    assert "PyTorch 9.9.0 at 16 (out of memory: killed at 23 GiB)" in drawing
    words = " ".join(re.findall(r">([^<>]+)</text>", drawing)).replace("&apos;", "'")
    assert "this machine has no GPU; the paper's figure shows GPUs" in words


def test_a_figure_of_a_paper_without_gpus_speaks_of_none(inputs, tmp_path):
    lines = (SHI2016 / "table4.csv").read_text().splitlines(keepends=True)
    on_cpu = tmp_path / "on_cpu.csv"
    on_cpu.write_text("".join([lines[0], *[line for line in lines if ",desktop-cpu," in line]]))
    inputs("fig1a", printed=on_cpu).write()
    drawing = (tmp_path / "results/figures/shi2016_fig1a.svg").read_text()
    words = " ".join(re.findall(r">([^<>]+)</text>", drawing))
    assert "FCN-5" in words and "GPU" not in words and "flatten" not in words


@pytest.mark.parametrize(
    "name, right, wrong", [("platform", "gtx980", "gtx981"), ("network", "fcn5", "fcn55")]
)
def test_a_printed_time_of_an_unknown_place_is_refused(inputs, tmp_path, name, right, wrong):
    text = (SHI2016 / "table4.csv").read_text()
    mistaken = tmp_path / "mistaken.csv"
    mistaken.write_text(text.replace(f",{right},", f",{wrong},"))
    with pytest.raises(InputError, match=f"times of the {name} '{wrong}', which is unknown"):
        inputs("table4", printed=mistaken).write()


def test_every_difference_of_table2_is_explained(inputs):
    data, _ = inputs("table2").table
    different = data[data["same"].eq(False)]
    assert (different["note"] != "").all()
    parameters = data[data["quantity"] == "Parameters"].set_index("network")
    assert parameters.loc["fcn5", "ours"] == 117_997_696
    assert parameters.loc[["fcn5-table2", "fcn8-table2", "lstm32-table2", "alexnet"], "same"].all()


def test_numbers_are_written_for_readers():
    assert [significant(value) for value in (0.4123, 12.34, 1234.5, 0.00012345, 0.9996)] == [
        "0.412",
        "12.3",
        "1230",
        "0.000123",
        "1.00",
    ]
    assert spread(2.0, 1.9, 2.02) == "±5.0 %"
    assert spread(2.0, 0.5, 8.0) == "within a factor of 4.00"


def test_a_mistake_of_an_artefact_is_one_sentence(monkeypatch):
    data = {"catalogue": ["nowhere/paper.yaml"]}
    job = json.dumps({"artefact": "nowhere_table", "facts": {}, "data": data})
    monkeypatch.setattr("sys.argv", ["make", "--job", job, "--files", "{}"])
    with pytest.raises(InputError, match="nowhere/paper.yaml cannot be read: No such file"):
        program.main()


@pytest.mark.parametrize(
    "paper", sorted(PAPERS.glob("*/paper.yaml")), ids=lambda path: path.parent.name
)
def test_nothing_is_both_made_and_not_made(paper):
    catalogue = read_yaml(paper)
    assert not set(catalogue["artefacts"]) & set(catalogue.get("not_made", {}))


@pytest.mark.parametrize("paper", sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml")))
def test_a_verdict_is_given_all_that_its_claims_ask_for(paper):
    """A claim on trainings would say that nothing was trained, beside a table of just these trainings."""
    claims = (PAPERS / paper / "findings.yaml").read_text()
    of = {"trainings": ("varied(",), "parts": ("alone(",)}
    wanted = {word for word, calls in of.items() if any(call in claims for call in calls)}
    entries = read_yaml(PAPERS / paper / "paper.yaml")["artefacts"].values()
    verdicts = [entry for entry in entries if entry["kind"] == "verdict"]
    assert all(wanted <= set(entry.get("joins", [])) for entry in verdicts), wanted
