"""A cell and its path say the same."""

import re
from dataclasses import replace

import pytest
from examples import PLANNED

from steptime.plan.cell import IDENTITY, MARK, apart_of, axes_of, key_of, proof_name

CELL = replace(PLANNED, network="fcn5-table2", threads=2, repeat=3)
TRAINING = replace(CELL, task="training", network="mnist-cntk", dataset="digits")
PARALLEL = replace(CELL, device="gpu", devices=4, exchange="async", precision="tf32")


@pytest.mark.parametrize("cell", [CELL, TRAINING, PARALLEL])
def test_a_key_says_all_axes_again(cell):
    told = {
        name: value for name, value in cell.facts().items() if name not in ("framework", "device")
    }
    assert axes_of(cell.key) == told


def test_a_row_has_the_key_of_its_cell():
    row = TRAINING.facts() | {"network": "mnist", "variant": "mnist-cntk"}
    assert key_of(row) == TRAINING.key
    assert set(IDENTITY) <= row.keys()


def test_each_number_of_devices_has_a_proof_of_its_own():
    assert proof_name(CELL.facts()) == "torch-9.9.eager-fcn5-table2"
    assert proof_name(axes_of(PARALLEL.key)) == "torch-9.9.eager-fcn5-table2-d4async"
    assert apart_of("-d4async") == {"devices": 4, "exchange": "async"}
    assert re.fullmatch(MARK, "-d4async") and apart_of("") == {}


def test_what_is_no_key_is_told():
    with pytest.raises(ValueError, match="'local-cpu/fcn5' is not the key of a cell"):
        axes_of("local-cpu/fcn5")
