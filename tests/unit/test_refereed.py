"""Shi et al. refereed: what the authors' scripts trained, and Figure 1 by versions of its time and by today's."""

from pathlib import Path

import pytest
import yaml
from examples import FRAMEWORKS, inputs, measured

from steptime import networks
from steptime.artefacts.papers import defects
from steptime.artefacts.results import sweep
from steptime.claims.papers import read_printed

SHI = Path(__file__).parents[2] / "resources/papers/shi2016"
PAPER = yaml.safe_load((SHI / "paper.yaml").read_text())
CATALOGUE = yaml.safe_load((SHI.parents[2] / "config/networks.yaml").read_text())


def shown(tmp_path, *times):
    """The table of ResNet-50 and of what the TensorFlow script calls so, each by two runs."""
    cells = [
        {
            "network": "resnet50",
            "variant": variant,
            "batch": 16,
            "seconds": seconds,
            "repeat": repeat,
        }
        for variant, of_runs in zip(("", "resnet34"), times, strict=True)
        for repeat, seconds in enumerate(of_runs, 1)
    ]
    known = inputs(
        measured=measured(tmp_path, *cells),
        catalogue=PAPER,
        printed=read_printed(SHI / "table4.csv"),
    )
    return defects.table(known)


def test_a_printed_time_is_divided_by_what_the_scripts_network_takes(tmp_path):
    data, layout = shown(tmp_path, (4.0, 4.0), (1.0, 1.0))
    (row,) = data.to_dict("records")
    assert (row["variant"], row["ratio"]) == ("resnet34", pytest.approx(0.25))
    times = read_printed(SHI / "table4.csv")
    own = times[(times["network"] == "resnet50") & (times["platform"] == "desktop-cpu")]
    printed = own[own["framework"] == "tensorflow"]["number"].min()
    assert row["seconds"] == pytest.approx(4 * printed) and row["printed_seconds"] == printed
    assert row["their_order"] == "Caffe, TensorFlow, Torch"
    assert row["our_order"] == "Caffe, Torch, TensorFlow"
    assert row["state"] == defects.TURNED and layout.index[0][1] == "TensorFlow"


def test_an_order_that_runs_leave_open_is_not_decided(tmp_path):
    data, _ = shown(tmp_path, (1.0, 4.0), (0.5, 4.0))
    assert data["state"].tolist() == [defects.OPEN]


def test_every_variant_of_a_script_is_one_of_the_network_that_it_stands_for():
    named = [each for each in PAPER["caveats"] if "variant" in each]
    assert {each["variant"] for each in named} == {*PAPER["artefacts"]["defects"]["variants"]}
    for each in named:
        assert CATALOGUE[each["variant"]]["variant_of"] == each["network"]
        spec = networks.specify(each["variant"], CATALOGUE)
        assert networks.count_parameters(spec) == CATALOGUE[each["variant"]]["parameters"]
        assert FRAMEWORKS[each["framework"]].label


def test_figure_1_has_versions_of_its_time_beside_todays_and_crosses_for_failures(tmp_path):
    shared = {"network": "resnet50", "threads": 2, "mode": "graph"}
    timed = [
        shared | {"framework": framework, "environment": name, "batch": batch, "seconds": 1.0}
        for framework, name in (
            ("caffe", "caffe-1.0"),
            ("mxnet", "mxnet-1.0"),
            ("torch", "torch-2.13"),
        )
        for batch in (8, 16)
    ]
    full = shared | {"framework": "cntk", "environment": "cntk-2.5.1", "batch": 16}
    failed = full | {"seconds": None, "status": "out_of_memory"}
    known = {
        "catalogue": PAPER,
        "entry": PAPER["artefacts"]["fig1d"],
        "printed": read_printed(SHI / "table4.csv"),
        "paths": lambda word: [SHI / "paper.yaml"],
        "releases": yaml.safe_load((SHI.parents[1] / "steptime/releases.yaml").read_text()),
    }

    def drawn(*cells):
        _, drawing = sweep.figure(inputs(measured=measured(tmp_path, *cells), **known))
        lines = [len(axes.containers) for axes in drawing.axes]
        crosses = [line for axes in drawing.axes for line in axes.lines if line.get_marker() == "x"]
        titles = [axes.get_title(loc="left") for axes in drawing.axes]
        return lines, len(crosses), titles[0]

    title = "Figure 1(d): ResNet-50, time per mini-batch"
    assert drawn(*timed, failed) == ([2, 1], 1, title)
    # With versions of one time alone there is one panel.
    assert drawn(*timed[:4], failed) == ([2], 1, title)
