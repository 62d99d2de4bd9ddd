"""What settings are worth is a ratio of two ways of one framework, and words speak of tuned results alone."""

from dataclasses import replace

import pytest
from examples import inputs, measured

from steptime.artefacts.results import tuning

OTHER = {"framework": "mxnet", "environment": "mxnet-1.9", "framework_version": "1.9.1"}
SETTINGS = {"torch": ["one"], "mxnet": ["two"], "all": ["three"]}


@pytest.fixture
def read(tmp_path):
    """PyTorch is first with its settings on both networks, MXNet without them on one."""

    def cells(network, mode, torch, mxnet):
        for repeat, drift in enumerate((1.0, 1.01, 0.995), 1):
            facts = {"network": network, "mode": mode, "repeat": repeat}
            yield facts | {"seconds": torch * drift}
            yield OTHER | facts | {"seconds": mxnet * drift * (1.004 if repeat == 2 else 1)}

    return measured(
        tmp_path,
        *cells("fcn5", "eager", 1.0, 2.0),
        *cells("fcn5", "plain", 4.0, 2.2),
        *cells("lstm32", "eager", 1.0, 3.0),
        *cells("lstm32", "plain", 1.5, 4.5),
    )


def test_the_winner_without_settings_is_named(read):
    told = inputs(measured=read, entry={"settings": SETTINGS})
    data, layout = tuning.table(told)
    assert [round(ratio, 1) for ratio in data["ratio"]] == [4.0, 1.1, 1.5, 1.5]
    assert (data["low"] < data["ratio"]).all() and (data["ratio"] < data["high"]).all()
    assert layout.index.get_level_values("Framework")[0] == "PyTorch 9.9.0"
    said = tuning.winners(data)
    assert said == (
        "Without the settings the fastest would be MXNet 1.9.1 on FCN-5. "
        "Without the settings the fastest is the same on LSTM-32."
    )
    assert said in told.page.notes and {"PyTorch: one.", "All: three."} <= {*told.page.notes}


def test_what_nobody_tuned_gets_no_word(read):
    plain = read.cells["mode"] == "plain"
    assert read.cells.loc[plain, "word"].isna().all()
    assert list(read.cells.loc[~plain, "word"]) == ["fastest", "slower"] * 2


def test_a_result_without_the_other_says_why(read):
    alone = read.cells[(read.cells["mode"] == "plain") | (read.cells["network"] == "fcn5")]
    told = inputs(measured=replace(read, cells=alone), entry={"settings": SETTINGS})
    data, layout = tuning.table(told)
    assert data["ratio"].isna().tolist() == [False, False, True, True]
    assert "not timed in another mode" in layout.iloc[2, 2].footnotes
    assert "It is not decided on" in tuning.winners(data)
    lost = data.assign(
        verdict=["not decided", "shortest"] * 2,
        plain_verdict=["slower", "fastest", "fastest", "slower"],
    )
    assert tuning.winners(lost) == "It is not decided on FCN-5, LSTM-32."
