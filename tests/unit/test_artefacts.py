"""Artefacts that are no table of times: the transfer model, what frameworks can do, the machine's build, LaTeX."""

import json
import os
from types import SimpleNamespace

import pandas as pd
import pytest
from examples import CATALOGUE, FRAMEWORKS, ROOT, inputs, words
from examples import CELL as STEP

from steptime.artefacts.devices import scaling, transfer
from steptime.artefacts.papers import abilities, agreement, machines, popularity, principles, sets
from steptime.artefacts.papers import topology as drawn
from steptime.artefacts.results import times
from steptime.artefacts.trainings import resources, trainings, wrappers
from steptime.claims import answers
from steptime.claims.evidence import their_times
from steptime.claims.papers import read_papers, read_printed
from steptime.environments import metadata
from steptime.machine import topology
from steptime.merge.measured import Measured
from steptime.merge.others import Grid
from steptime.merge.summary import BY_REPEAT
from steptime.merge.trainings import CELL, Trained
from steptime.reading import InputError, read_yaml
from steptime.render import tables

PAPERS = ROOT / "resources" / "papers"
PEAK = {"threads": {"1": {"streams": {"copy": 4e10}}, "2": {"streams": {"copy": 6.3e10}}}}


def test_the_transfer_model_gives_the_papers_numbers_and_those_of_a_machine():
    printed = read_printed(PAPERS / "wuensche2018/transfer.csv")
    data, layout = transfer.table(inputs(printed=printed, peaks={"local-cpu": PEAK}))
    calculated = data[data["place"] == transfer.AS_PRINTED].set_index("key")["value"]
    assert calculated["transfer_one"] == pytest.approx(0.253968, abs=5e-7)
    assert calculated["transfer_all"] == pytest.approx(1.015873, abs=5e-7)
    assert calculated["transfer_others"] == pytest.approx(0.7619, abs=5e-5)
    assert calculated["effective_share"] == pytest.approx(65.62, abs=0.0051)
    # 63 GB/s of STREAM's copy move 31.5 GB/s, which are the paper's own.
    here = data[data["place"] == "this machine"].set_index("key")["value"]
    assert here["transfer_one"] == pytest.approx(calculated["transfer_one"])
    assert "0.253968" in [entry.text for entry in layout.loc["Transfer to one device"].iloc[0]]


def test_copies_between_gpus_are_a_column_of_the_transfer_model_or_a_dash_with_a_reason():
    printed = read_printed(PAPERS / "wuensche2018/transfer.csv")
    peers = [{"bytes_per_second": 50e9}, {"bytes_per_second": 6e9}]
    alone = {"transfers": {"to_device_pinned": 2e10}, "peers": [], "no_peers": "only one"}
    several = alone | {"peers": peers, "no_peers": ""}
    peaks = {"one": {"threads": {"2": alone}}, "two": {"threads": {"2": several}}}
    data, layout = transfer.table(inputs(printed=printed, peaks=peaks | {"cpu": PEAK}))
    found = data.set_index(["place", "key"])
    assert found.loc[("two, between GPUs", "bandwidth"), "value"] == 6
    assert found.loc["one, between GPUs"]["value"].isna().all()
    columns = layout["Measured bandwidth"]
    assert list(columns) == ["one", "two", "cpu", "two, between GPUs", "one, between GPUs"]
    entry = columns["one, between GPUs"].iloc[0]
    assert (entry.text, entry.footnotes) == ("–", ("only one",))


def test_a_device_that_calculates_longer_than_it_waits_is_never_idle():
    found = transfer.evaluate(bandwidth=8, memory=8, devices=4, waited_for=3, compute=10)
    assert (found["idle"], found["effective_share"]) == (0, 100)


def measured(**changes):
    cell = STEP | {"platform": "p", "threads": 2, "effective_threads": 1.9}
    cell |= {"seconds": 1.0, "low": 0.9, "high": 1.1}
    cell |= {"repeats": 1, "medians": {1: 1.0}} | dict.fromkeys(BY_REPEAT.values(), {})
    nothing = Measured.nothing()
    cells = pd.DataFrame(
        [{**dict.fromkeys(nothing.cells.columns), **cell, **change} for change in changes["cells"]]
    )
    return Measured(
        nothing.rows,
        cells,
        {},
        {"torch-9.9": {"framework_version": "9.9.0", "cuda": None}},
        "merged",
    )


def test_what_a_framework_can_do_is_what_was_read(tmp_path):
    site = tmp_path / "lib/python3.11/site-packages"
    (site / "torch").mkdir(parents=True)
    info = site / "torch-9.9.0.dist-info"
    info.mkdir()
    words = "Metadata-Version: 2.1\nName: torch\nVersion: 9.9.0\nLicense-Expression: BSD-3-Clause\n"
    words += "Classifier: Programming Language :: C++\nClassifier: Programming Language :: Python :: 3.11\n"
    (info / "METADATA").write_text(words)
    (info / "RECORD").write_text(
        "torch/__init__.py,,100\ntorch/lib/libtorch.so.2,,900\ntorch/notes.txt,,50\n"
    )
    package = {"environment": "torch-9.9"} | metadata.describe(metadata.find(tmp_path, "torch"))
    assert metadata.find(tmp_path, "mxnet") is None
    proofs = [
        {"environment": "torch-9.9", "network": name, "status": status} for name, status in PROOFS
    ]
    made = measured(cells=[{}, {"network": "fcn8"}])
    paper = read_yaml(PAPERS / "shatnawi2018/paper.yaml")
    told = inputs(
        measured=made,
        proofs=proofs,
        packages=[package],
        trained=Trained.nothing(),
        catalogue=paper,
        entry=paper["artefacts"]["table2"],
        printed=read_printed(PAPERS / "shatnawi2018/table2.csv"),
    )
    found = abilities.read(told).loc["torch-9.9"]
    data, layout = abilities.table(told)
    assert found["licence"].text == "BSD-3-Clause"
    assert found["core"].text == "90 % compiled" and found["core"].note.endswith(
        "names C++, Python"
    )
    assert found["threads"].text == "1.90 of 2 busy"
    assert found["networks"].text == "FCN-5"
    assert (found["gpu"].text, found["devices"].text, found["servers"].text) == ("no", "CPU", "")
    ways = [
        proofs[0] | {"devices": 2, "exchange": way, "status": "ok"} for way in ("sync", "async")
    ]
    told.proofs = proofs + ways
    together = abilities.read(told)
    assert together.loc["torch-9.9", "servers"].text == "2 ranks, async and sync"
    assert found["devices_together"].text == ""
    assert together.loc["torch-9.9", "devices_together"].text == "2 devices"
    assert (data["source"] == "paper").sum() == 24
    assert all(
        entry.footnotes for row in layout.to_numpy() for entry in row if entry.text == tables.DASH
    )


PROOFS = [("fcn5", "ok"), ("fcn8", "not_equivalent")]


def test_a_framework_that_was_not_timed_can_do_nothing_and_says_why():
    failed = measured(cells=[{"status": "install_failed", "reason": "no wheel", "seconds": None}])
    package = [{"environment": "torch-9.9"}]
    told = {"measured": failed, "proofs": [], "packages": package, "trained": Trained.nothing()}
    found = abilities.read(inputs(**told)).loc["torch-9.9"]
    assert found["cpu"] == abilities.Ability("", "does not install: no wheel")
    assert found["licence"].text == found["threads"].text == ""


def test_whole_trainings_join_their_table_and_bars_when_they_are_measured():
    paper = read_yaml(PAPERS / "shatnawi2018/paper.yaml")
    printed = read_printed(PAPERS / "shatnawi2018/table3.csv")
    artefacts = paper["artefacts"]
    ours = measured(cells=[{"network": "mnist", "framework": "tensorflow", "seconds": 1590.0}])
    ours.cells["marks"] = [[]]
    ours.rows["started_at"] = pd.Series(dtype=object)
    for found, joined in ((Measured.nothing(), 0), (ours, 1)):
        told = {"printed": printed, "catalogue": paper, "trained": SimpleNamespace(times=found)}
        data, _ = times.build(inputs(**told, entry=artefacts["table3"]), found)
        bars, _ = trainings.figure(inputs(**told, entry=artefacts["fig3"]))
        for made, theirs in ((data, 42), (bars, 18)):
            sides = made["source"]
            assert ((sides == "ours").sum(), (sides == "paper").sum()) == (joined, theirs)
    # 1590 s against the printed 3180 s with 2 threads, whatever the mini-batch size.
    assert data["ratio"].dropna().tolist() == [0.5]


def trained(*cells):
    """Trainings of two epochs each: (environment, mode, repeat, seconds of an epoch, CPU seconds of it, status)."""
    runs, epochs = [], []
    for environment, mode, repeat, seconds, cpu_seconds, status in cells:
        run = dict.fromkeys(CELL, "") | {"environment": environment, "mode": mode}
        run |= {"framework": environment.partition("-")[0], "platform": "here", "threads": 2}
        run |= {"key": f"{environment}.{mode}-r{repeat}", "repeat": repeat, "label": "MNIST"}
        run |= {"framework_version": None, "target_accuracy": 0.9, "status": status}
        run |= {"reason": "why", "effective_threads": cpu_seconds / seconds if seconds else None}
        run |= {"epochs": 2 if status == "ok" else 0, "peak_memory_bytes": repeat * 2**29}
        runs.append(run | {"peak_device_memory_bytes": None})
        if status == "ok":
            times = {"seconds": seconds, "cpu_seconds": cpu_seconds}
            epochs += [run | times | {"epoch": number} for number in (1, 2)]
    notes = {run["key"]: {"rows": []} for run in runs}
    return Trained(Measured.nothing(), pd.DataFrame(runs), pd.DataFrame(epochs), notes, [])


def test_what_a_layer_costs_is_its_epoch_by_that_of_the_same_seed_below_it():
    found = trained(
        ("keras-2.0.5", "theano", 1, 3.0, 3.3, "ok"),
        ("keras-2.0.5", "theano", 2, 6.0, 6.6, "ok"),
        ("keras-2.0.5", "cntk", 1, 0.0, 0.0, "unsupported"),
        ("theano-0.9", "graph", 1, 2.0, 3.0, "ok"),
        ("theano-0.9", "graph", 2, 4.0, 6.0, "ok"),
        ("cntk-2.7", "graph", 1, 1.0, 2.0, "ok"),
    )
    pairs = read_yaml(PAPERS / "shatnawi2018/paper.yaml")["artefacts"]["above"]["pairs"]
    data, layout = wrappers.table(inputs(trained=found, entry={"pairs": pairs}))
    by_pair = data.set_index("above_runner")
    theano = by_pair.loc["keras-2.0.5.theano"]
    assert theano[["above_seconds", "below_seconds"]].tolist() == [4.5, 3.0]
    assert theano[["ratio", "low", "high"]].tolist() == pytest.approx([1.5] * 3)
    assert theano[["above_cpus", "below_cpus"]].tolist() == pytest.approx([1.1, 1.5])
    assert "why" in by_pair.loc["keras-2.0.5.cntk", "reason"]
    assert "does not train" in by_pair.loc["keras-2.0.5.tensorflow", "reason"]
    assert data["ratio"].notna().sum() == 1 and len(layout) == 3


def test_what_a_training_used_is_told_by_framework_over_its_seeds():
    found = trained(
        ("theano-0.9", "graph", 1, 2.0, 3.0, "ok"),
        ("theano-0.9", "graph", 2, 2.0, 4.0, "ok"),
        ("cntk-2.7", "graph", 1, 0.0, 0.0, "crashed"),
    )
    data, layout = resources.table(inputs(trained=found))
    theano = data.set_index("environment").loc["theano-0.9"]
    assert theano[["cpus", "least_cpus", "most_cpus"]].tolist() == [1.75, 1.5, 2.0]
    assert theano[["cpu_share", "peak_memory_bytes"]].tolist() == [0.875, 1.5 * 2**29]
    # No GPU was there; and the one that crashed says why.
    assert list(layout.columns) == ["CPUs at work", "Share of its CPUs", "Peak memory"]
    assert "why" in layout.iloc[0, 0].footnotes[0]


def test_more_devices_are_drawn_when_they_are_measured():
    paper = read_yaml(PAPERS / "wuensche2018/paper.yaml")
    printed = read_printed(PAPERS / "wuensche2018/scaling.csv")
    ours = measured(
        cells=[
            {"environment": f"torch-{version}", "framework_version": version} | cell
            for version, together in (("2.13", 0.6), ("1.4", 1.2))
            for cell in (
                {},
                {"devices": 2, "exchange": "sync", "seconds": together},
                {"devices": 2, "exchange": "async", "seconds": None}
                | {"status": "unsupported", "reason": "it waits"},
            )
        ]
    )
    ours.rows["started_at"] = pd.Series(dtype=object)
    data, drawing = scaling.figure(
        inputs(measured=ours, printed=printed, catalogue=paper, entry=paper["artefacts"]["fig2"])
    )
    drawn = data[data["source"] == "ours"].groupby("label", sort=False)["relative_time"]
    assert drawn.agg(list).tolist() == [[1.0, 0.6], [1.0, 1.2]]
    missing = "Not drawn: PyTorch 2.13, 2 devices async; PyTorch 1.4, 2"
    assert any(missing in note for note in drawing.notes)
    second = data[(data["source"] == "paper") & (data["devices"] == 2)].set_index("framework")[
        "relative_time"
    ]
    assert second.to_dict() == pytest.approx(
        {"cntk": 0.65, "mxnet": 0.65, "caffe": 0.72, "torch7": 0.9, "tensorflow": 0.9}
    )


def test_packages_and_caches_are_read_as_the_kernel_tells_of_them(tmp_path):
    for cpu in range(4):
        folder = tmp_path / f"cpu{cpu}"
        (folder / "topology").mkdir(parents=True)
        (folder / "topology/physical_package_id").write_text(f"{cpu // 2}\n")
        (folder / "topology/thread_siblings_list").write_text(
            f"{cpu - cpu % 2}-{cpu - cpu % 2 + 1}\n"
        )
        cache = folder / "cache/index3"
        cache.mkdir(parents=True)
        for name, text in (("level", "3"), ("type", "Unified"), ("size", "2048K")):
            (cache / name).write_text(text)
        (cache / "shared_cpu_list").write_text(f"{cpu - cpu % 2}-{cpu - cpu % 2 + 1}")
    found = topology.packages(tmp_path)
    shared = {"level": 3, "kind": "Unified", "bytes": 2**21}
    assert found == [
        {"cores": [[at, at + 1]], "caches": [shared | {"cpus": [at, at + 1]}]} for at in (0, 2)
    ]


def test_a_memory_node_has_the_pages_that_are_there_and_not_those_that_the_allocator_manages(
    tmp_path,
):
    zones = tmp_path / "zoneinfo"
    zone = "Node {}, zone {}\n  per-node stats\n      nr_mapped 7\n        present  {}\n        managed  1\n"
    zones.write_text(
        "".join(
            zone.format(*facts) for facts in ((0, "DMA", 3), (0, "Normal", 5), (1, "Normal", 4))
        )
    )
    for node, cpus in ((0, "0-1"), (1, "2")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}/cpulist").write_text(cpus)
    page = os.sysconf("SC_PAGE_SIZE")
    found = topology.nodes(tmp_path, zones)
    assert found == [{"bytes": 8 * page, "cpus": [0, 1]}, {"bytes": 4 * page, "cpus": [2]}]


@pytest.mark.parametrize("cores", [2, 96])
def test_small_and_large_machines_are_drawn(cores):
    caches = [{"level": 3, "kind": "Unified", "bytes": 2**25, "cpus": list(range(cores))}]
    machine = {
        "cpu": {"model": "A CPU", "virtual": False},
        "memory_bytes": 2**34,
        "gpus": [{"model": "A GPU"}],
    }
    machine |= {"packages": [{"cores": [[cpu] for cpu in range(cores)], "caches": caches}]}
    machine |= {"nodes": [{"bytes": 2**34, "cpus": []}]}
    machine |= {
        "devices": [
            {"kind": "GPU", "address": "1", "node": 0, "speed": "32.0 GT/s PCIe", "width": "16"}
        ]
    }
    data, drawing = drawn.figure(
        inputs(
            topologies={"p": machine}, entry={"title": "T", "caption": "C", "sources": ["Figure 4"]}
        )
    )
    texts = [text.get_text() for axes in drawing.axes for text in axes.texts]
    assert (data["part"] == "core").sum() == cores
    assert "A GPU\n32.0 GT/s × 16" in texts and "L3 32 MiB" in texts


def test_latex_is_escaped_and_has_booktabs_rules(tmp_path):
    columns = pd.MultiIndex.from_tuples([("A & B", "1"), ("A & B", "2")])
    row = [tables.Entry("5 %", ("a_b is 100 % sure",)), tables.Entry("0.1 ±2 %", best=True)]
    layout = pd.DataFrame([row], pd.Index(["x_y"], name="Row"), columns, object)
    text = tables.latex(layout, words())
    for part in (
        r"\toprule",
        r"\multicolumn{2}{c}{A \& B}",
        r"x\_\allowbreak{}y & 5 \%\textsuperscript{a} & \textbf{0.1 $\pm$2 \%} \\",
    ):
        assert part in text
    assert r"\textsuperscript{a} a\_\allowbreak{}b is 100 \% sure." in text
    tables.write(tmp_path / "t", pd.DataFrame({"x": [1]}), layout, words())
    assert (tmp_path / "t.tex").read_text() == text
    assert json.loads((tmp_path / "t.csv").read_text().splitlines()[1]) == 1


@pytest.mark.parametrize("timed", [True, False])
def test_every_artefact_is_made_whatever_failed(tmp_path, timed):
    status = {} if timed else {"status": "crashed", "reason": "SIGSEGV", "seconds": None}
    cells = [
        {**status, "network": name, "repeats": int(timed), "marks": []}
        for name in ("fcn5", "alexnet")
    ]
    found = measured(cells=cells)
    columns = "platform environment mode network variant devices threads batch repeat framework device".split()
    columns += (
        "energy_joules host_energy_joules steps flops_per_step import_seconds build_seconds".split()
    )
    rows = [dict.fromkeys(columns) | cell for cell in found.cells.to_dict("records")]
    rows = pd.DataFrame(rows).assign(wall_seconds=1.0, started_at=None)
    found = Measured(rows, found.cells, {}, {}, "merged")
    paper = read_yaml(PAPERS / "dai2019/paper.yaml")
    printed = read_printed(PAPERS / "dai2019/table1.csv")
    files = list(PAPERS.glob("*/*"))
    told = inputs(measured=found, peaks={}, proofs=[], printed=printed, catalogue=paper)
    told.paths, made = lambda word: files, []
    for kind, name in ((machines, "table1"), (principles, "principles"), (agreement, "table1")):
        told.entry = paper["artefacts"][name]
        made.append(kind.table(told))
    papers = read_papers(files)
    claims = answers.build(papers, [Grid(steps=[found])], FRAMEWORKS, CATALOGUE, "wuensche2018")
    assert len(claims) > 10
    for number, (data, layout) in enumerate(made):
        tables.write(tmp_path / str(number), data, layout, words())
        assert len(data) and (tmp_path / f"{number}.tex").stat().st_size
    both = agreement.points(*[their_times(papers[0], FRAMEWORKS)] * 2)
    for drawn_points in (both, both.iloc[:0]):
        agreement.draw(drawn_points.assign(paper="a", short="A"), told)


def test_printed_times_of_scripts_that_did_something_else_are_named_in_figures():
    printed = pd.DataFrame({"network": ["fcn5", "lstm32"], "framework": "cntk"})
    paper = read_yaml(PAPERS / "shi2016/paper.yaml")
    assert times.other_scripts(printed, paper, inputs())[0].endswith("else: CNTK's LSTM-32.")
    assert not times.other_scripts(printed.head(1), paper, inputs())


def of_machine(found, **machine):
    """What was measured, with rows as of samples, on a machine that is told."""
    columns = ["platform", "network", "seconds", "energy_joules", "steps", "started_at"]
    rows = pd.DataFrame([dict.fromkeys(columns) | {"platform": "p"}])
    cells = found.cells.assign(machine_id="m1")
    return Measured(rows, cells, {"m1": machine}, {}, "merged")


def test_devices_in_numbers_stand_beside_the_same_of_this_machine():
    found = of_machine(
        measured(cells=[{"network": "alexnet", "batch": 16, "seconds": 0.5}]), memory_bytes=24e9
    )
    peak = {"flops_per_second": 2e11, "bytes_per_second": 5e10, "blas": "blas 1"}
    peak = {"threads": {"2": peak}}
    for paper, rows in (("dai2019", {"NVIDIA K40", "TPU 2.0", "p"}), ("shi2016", {"p"})):
        catalogue = read_yaml(PAPERS / f"{paper}/paper.yaml")
        printed = read_printed(PAPERS / f"{paper}/text.csv")
        entry = catalogue["artefacts"]["devices"]
        data, layout = machines.table(
            inputs(
                measured=found, peaks={"p": peak}, printed=printed, catalogue=catalogue, entry=entry
            )
        )
        assert rows <= set(data["place"])
        ours = data[data["source"] == "ours"].set_index("quantity")["value"]
        assert ours["Performance"] == "200 GFLOP/s"
        dashes = [each for row in layout.to_numpy() for each in row if each.text == tables.DASH]
        assert all(entry.footnotes for entry in dashes)
    memory = layout.loc[("Measured here", "p"), "Memory"]
    assert (memory.text, memory.kind) == ("24.0 GB", "ours")
    k40 = data[data["place"] == "NVIDIA GTX 1080"].set_index("quantity")["value"]
    assert k40["Performance"] == "8873 GFLOP/s"


def test_each_framework_of_the_sets_runs_here_or_has_its_reason():
    entry = read_yaml(PAPERS / "dai2019/paper.yaml")["artefacts"]["fig4"]
    printed = read_printed(PAPERS / "dai2019/sets.csv")
    failed = {"framework": "neon", "environment": "neon-2.6", "seconds": None, "status": "crashed"}
    data = sets.rows_of(inputs(measured=measured(cells=[{}, failed]), printed=printed, entry=entry))
    assert data["set"].value_counts().to_dict() == {"mature": 12, "developing": 4, "inactive": 2}
    found = data.set_index("framework")
    assert (found.loc["torch", "timed"], found.loc["torch", "networks"]) == (1, "FCN-5")
    assert found.loc["neon", "why_not"] == "crashed"
    assert "CUDA 6.5" in found.loc["purine", "why_not"]
    assert (data["why_not"] != "").eq(data["timed"] == 0).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Category: All categories\n\nMonth,deep learning: (Worldwide)\n2013-12,<1\n2014-01,40\n",
            "",
        ),
        ("2014-01,40\n", "has no line such as 'Month,deep learning'"),
        ("Month,deep learning\n2014-01,many\n", "line 2: write a date and a number"),
    ],
)
def test_popularity_is_read_from_an_export_or_refused_in_one_sentence(tmp_path, text, says):
    path = tmp_path / "export.csv"
    path.write_text(text)
    if says:
        with pytest.raises(InputError, match=says):
            popularity.read(path)
    else:
        assert popularity.read(path)["percent"].tolist() == [0, 100]
