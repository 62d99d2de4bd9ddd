"""Each precision is beside float32 of the same framework, and a point for each is in the figure."""

import pytest
from examples import inputs, measured

from steptime.artefacts.results import precision
from steptime.render import tables

UNIT = {"local-cpu, eager": {"bfloat16": "AVX-512 BF16"}}
START = {"import_seconds": 1.0, "build_seconds": 0.5, "ready_seconds": None}


@pytest.fixture
def read(tmp_path):
    """PyTorch in bfloat16 is twice as fast; where float32 is missing there is no ratio."""

    def cells(network, kind, seconds, off):
        for repeat, drift in enumerate((1.0, 1.01, 0.995), 1):
            facts = {"network": network, "precision": kind, "repeat": repeat}
            facts |= START | {"first_step_seconds": 1.5}
            shown = {"proven_loss": off / 10, "proven_change": off, "proven_gradients": True}
            yield facts | shown | {"seconds": seconds * drift}

    return measured(
        tmp_path,
        *cells("fcn5", "float32", 1.0, 1e-6),
        *cells("fcn5", "bfloat16", 0.5, 5e-3),
        *cells("lstm32", "bfloat16", 0.5, 5e-3),
    )


def test_a_precision_is_beside_float32_and_says_its_unit(read):
    read.software["torch-9.9"] = {"settings": UNIT}
    told = inputs(measured=read, entry={})
    data, layout = precision.table(told)
    rows = data.set_index(["network", "precision"])
    assert rows.loc[("fcn5", "bfloat16"), "ratio"] == pytest.approx(2.0)
    assert rows["ratio"].isna().tolist().count(True) == 2
    assert rows.loc[("fcn5", "bfloat16"), "unit"] == "AVX-512 BF16"
    assert layout.index.get_level_values("Framework")[1] == "PyTorch 9.9.0, bfloat16"
    assert "0.0050" in tables.web_page(layout, told.page)


def test_a_figure_has_a_point_for_each_precision(read):
    drawn, drawing = precision.figure(inputs(measured=read, entry={}))
    assert len(drawn) == 3 and [len(each.lines) for each in drawing.axes] == [1, 1]
    assert [len(line.get_xdata()) for line in drawing.axes[0].lines] == [2]


def test_compiling_pays_when_what_steps_save_is_the_longer_start(tmp_path):
    def cells(mode, seconds, first):
        for repeat, drift in enumerate((1.0, 1.01, 0.995), 1):
            facts = {"mode": mode, "repeat": repeat, "seconds": seconds * drift}
            yield facts | START | {"first_step_seconds": first}

    known = measured(tmp_path, *cells("eager", 1.0, 1.5), *cells("compiled", 0.5, 21.5))
    data, _ = precision.table(inputs(measured=known, entry={}))
    assert data.set_index("mode")["pays"].dropna().to_dict() == {"compiled": 40}
