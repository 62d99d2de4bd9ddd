"""A cell has a key and a proof of its own."""

import re
from dataclasses import replace

import pytest
from examples import PLANNED

from steptime.plan.cell import IDENTITY, MARK, apart_of, key_of, proof_name

CELL = replace(PLANNED, network="fcn5-table2", threads=2, repeat=3)
TRAINING = replace(CELL, task="training", network="mnist-cntk", dataset="digits")
PARALLEL = replace(CELL, device="gpu", devices=4, exchange="async", precision="tf32")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (replace(TRAINING, network="a-on-b", dataset="c"), replace(TRAINING, network="a", dataset="b-on-c")),
        (replace(CELL, network="a-b8"), replace(CELL, network="a", batch=8)),
        (replace(CELL, network="lenet-forward"), replace(CELL, network="lenet", task="forward")),
        (replace(PARALLEL, network="lenet-d4async", devices=1, exchange=""), replace(PARALLEL, network="lenet")),
    ],
)  # fmt: skip
def test_no_name_of_a_network_or_data_set_makes_two_cells_or_proofs_one(one, other):
    assert one.key != other.key and one.proof != other.proof


def test_a_row_has_the_key_of_its_cell():
    row = TRAINING.facts() | {"network": "mnist", "variant": "mnist-cntk"}
    assert key_of(row) == TRAINING.key
    assert set(IDENTITY) <= row.keys()


def test_each_number_of_devices_has_a_proof_of_its_own():
    assert proof_name(CELL.facts()) == "torch-9.9.eager-fcn5-table2"
    assert PARALLEL.proof == "torch-9.9.eager-fcn5-table2.d4async"
    assert apart_of(".d4async") == {"devices": 4, "exchange": "async"}
    assert re.fullmatch(MARK, ".d4async") and apart_of("") == {}
