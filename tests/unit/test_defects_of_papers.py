"""What the authors' scripts trained in place of a paper's networks, beside the network itself."""

from pathlib import Path

import pytest
import yaml
from examples import FRAMEWORKS, inputs, measured

from steptime import networks
from steptime.artefacts import defects
from steptime.artefacts.inputs import read_printed

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
