"""All frameworks beside all networks, and versions of a framework beside one another."""

from dataclasses import replace

import pandas as pd
import pytest
from examples import CELL, PEAK, inputs, measured

from steptime.artefacts.results import efficiency, history, ratios, startup, zoo
from steptime.merge import measured as merged
from steptime.plan.cell import key_of
from steptime.reading import InputError

FAST = {"vector": "AVX2", "blas": ["reference BLAS", "OpenBLAS", "oneDNN"], "at_run_time": True}
SLOW = {"vector": "SSE", "blas": ["Eigen", "reference BLAS"], "at_run_time": False}
OLD = {
    "environment": "tensorflow-1.2",
    "framework": "tensorflow",
    "framework_version": "1.2.0",
    "mode": "graph",
}
OLDER = OLD | {
    "environment": "tensorflow-0.12",
    "framework_version": None,
    "status": "unsupported",
    "reason": "no layer",
}
NEW = OLD | {"environment": "tensorflow-1.15", "framework_version": "1.15.5"}


@pytest.fixture
def read(tmp_path):
    read = measured(
        tmp_path,
        {"seconds": 0.5, "framework_version": "9.9.0"},
        NEW | {"seconds": 1.0, "mode": "graph"},
        OLD | {"seconds": 4.0},
        OLDER | {"seconds": None},
    )
    arithmetic = {
        "torch-9.9.eager": FAST,
        "tensorflow-1.2.graph": SLOW,
        "tensorflow-1.15.graph": FAST,
    }
    plain = read.cells.drop(columns=merged.ARITHMETIC)
    told = [key_of(CELL | OLD)]
    return replace(read, cells=merged._with_arithmetic(plain, arithmetic, told))


def started(read, **known):
    """What an artefact reads: a row for each cell, a process whose start took as many seconds as it has parts."""
    starts = read.cells.assign(repeat=1)
    starts = starts.assign(**dict.fromkeys([*startup.PARTS, startup.READY], 1.0))
    return inputs(measured=replace(read, rows=starts), peaks={"local-cpu": PEAK}, **known)


def test_every_framework_has_its_time_or_its_reason(read):
    told = started(read)
    data, layout = told.table = zoo.table(told)
    frameworks = list(dict.fromkeys(layout.index.get_level_values("Framework")))
    assert frameworks == [
        "TensorFlow 0.12",
        "TensorFlow 1.2.0",
        "TensorFlow 1.15.5",
        "PyTorch 9.9.0",
    ]
    times = {framework: rows.iloc[0, 0] for framework, rows in layout.groupby(level=0)}
    assert times["TensorFlow 0.12"].text == "not supported" and times[
        "TensorFlow 0.12"
    ].footnotes == ("no layer",)
    # Of one process each nobody is shown to be the fastest.
    assert not any(time.best for time in times.values())
    assert data["ratio"].dropna().tolist() == pytest.approx([8, 2, 1])
    said = times["TensorFlow 1.2.0"].footnotes
    words = ("without AVX", "reference BLAS", "was told to use AVX2")
    assert all(any(word in text for text in said) for word in words)
    assert not times["PyTorch 9.9.0"].footnotes and not times["TensorFlow 1.15.5"].footnotes
    registers = dict(
        zip(layout.index.get_level_values(0), layout.index.get_level_values(2), strict=True)
    )
    assert (
        registers["TensorFlow 1.2.0"] == "SSE" and registers["PyTorch 9.9.0"] == "AVX2, at run time"
    )
    _, drawing = zoo.figure(told)
    words = [text.get_text() for text in drawing.axes[0].texts]
    assert {"unsupported", "8.00 ×", "4000 ms"} <= set(words)
    lines = [label.get_text() for label in drawing.axes[0].get_yticklabels()]
    assert lines[0] == "PyTorch 9.9.0", "the fastest first"


def test_a_ratio_is_that_of_common_trials_and_a_tie_is_not_bold(tmp_path):
    """The mean of all runs would say 1.16: one framework has a slow trial that the other lacks."""
    times = [(NEW, (1.1, 1.6, None)), ({}, (1.0, 1.5, 1.0))]
    read = measured(
        tmp_path,
        *(
            facts | {"seconds": seconds, "repeat": repeat}
            for facts, own in times
            for repeat, seconds in enumerate(own, 1)
            if seconds
        ),
    )
    told = started(read)
    data, layout = zoo.table(told)
    assert sorted(data["ratio"].round(3)) == [1, round((1.1 * 1.6 / 1.5) ** 0.5, 3)]
    assert sorted(data["ratio"]) == sorted(ratios.table(told)[0]["ratio"])
    assert set(data["word"]) == {"shortest", "not decided"} and not any(
        map(_is_bold, layout.iloc[:, 0])
    )
    assert not efficiency.table(told)[0]["best"].any()


def _is_bold(entry):
    return getattr(entry, "best", False)


DAYS = {"tensorflow-0.12": "2016-12-19", "tensorflow-1.2": "2017-06-15"}


def test_versions_are_in_order_and_held_against_the_newest(read):
    told = started(read, releases=DAYS)
    data, layout = told.table = history.table(told)
    assert data["version"].tolist() == ["0.12", "1.2", "1.15"]
    assert data["ratio"].isna().tolist() == [True, False, False] and data["ratio"].tolist()[1:] == [
        4,
        1,
    ]
    old = layout.xs("1.2", level="Version")
    assert set(old.index.droplevel(-1)) == {("TensorFlow", "local-cpu", "2017-06-15", "SSE")}
    assert [entry.text for entry in old.iloc[:, 0]][1:3] == ["4.0", "3.0"]
    # A day is not known, so they stand in their order.
    _, drawing = history.figure(told)
    assert drawing.axes[0].lines[0].get_xdata().tolist() == [1, 2]
    assert "Not drawn: TensorFlow 0.12 with FCN-5 (not supported: no layer)." in drawing.notes
    hollow = [line for line in drawing.axes[0].lines if line.get_markerfacecolor() == (1, 1, 1)]
    assert len(hollow) == 1
    told = started(read, releases=DAYS | {"tensorflow-1.15": "2019-10-16"})
    told.table = history.table(told)
    _, drawing = history.figure(told)
    first, last = drawing.axes[0].lines[0].get_xdata()
    assert 2017.4 < first < 2017.5 and 2019.7 < last < 2019.8


def test_one_version_is_no_history(tmp_path):
    read = measured(tmp_path, {"seconds": 1.0})
    with pytest.raises(InputError, match="No framework of this grid has two versions"):
        history.table(started(read, releases={}))


def test_a_library_that_was_told_to_use_avx2_takes_no_wider_registers(read):
    plain = read.cells.drop(columns=merged.ARITHMETIC).set_index("environment", drop=False)
    wide = dict.fromkeys(("tensorflow-1.2.graph", "torch-9.9.eager"), SLOW | {"vector": "AVX-512"})
    vectors = merged._with_arithmetic(plain, wide)["vector"]
    assert (vectors["tensorflow-1.2"], vectors["torch-9.9"]) == ("AVX2", "AVX-512")


def test_what_has_no_time_is_not_marked_for_its_build():
    cells = pd.DataFrame([{"environment": "a", "mode": "m", "status": "crashed", "marks": []}])
    assert merged._with_arithmetic(cells, {"a.m": SLOW})["marks"].tolist() == [[]]


def test_a_network_of_a_family_of_its_own_is_drawn():
    data = pd.DataFrame({"network_label": ["A", "B"], "network": ["a", "b"]})
    known = {"a": {"family": "GNN"}, "b": {"variant_of": "a"}}
    styles = history._styles(data, known)
    assert styles["A"]["color"] != styles["B"]["color"]
