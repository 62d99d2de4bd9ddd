"""Shards of trainings: beside which machine's they may come, when they are made again, and what is told of them."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from examples import PLANNED, inputs

from steptime import machine
from steptime.artefacts.trainings import until_loss, varied
from steptime.cells import schema, shard
from steptime.merge import cells, trainings
from steptime.plan.cell import shard_path

TRAINING = replace(PLANNED, task="training", network="mnist", dataset="digits", batch=128)
HERE = machine.describe()
OTHER = HERE | {"cpu": {"model": "Another CPU", "logical_cores": 8}}
EPOCH = {
    "steps": 39,
    "feed_seconds": 0.5,
    "cpu_seconds": 3.5,
    "loss": 0.25,
    "test_loss": 0.125,
    "test_seconds": 0.75,
}
RESOURCES = {"columns": ["seconds", "resident_bytes", "host_joules"], "interval_seconds": 1.0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(key=TRAINING.key, described=HERE, epochs=2, test_losses=(0.125, 0.125), **changes):
    """Writes the shard of TRAINING, with changes, under the name `key`; returns its path."""
    facts = (
        TRAINING.facts()
        | {"variant": "", "status": "ok", "stopped": "epochs", "machine_id": "m"}
        | changes
    )
    rows = [
        EPOCH
        | {"epoch": number, "seconds": 2.0 * number, "accuracy": 0.45 * number, "test_loss": loss}
        for number, loss in enumerate(test_losses, 1)
    ]
    notes = {"rows": [[1.0, 2**27, None], [2.0, 2**28, None]] if epochs else []}
    footer = {
        "machine": described,
        "software": {"framework_version": "9.9.0", "packages": {}},
        "workflow": {},
    }
    footer |= {"job": {}, "worker": {}, "resources": RESOURCES | notes}
    path = Path(shard_path(key))
    shard.write(path, facts | {"dataset_sha256": "sum of train sum of test"}, rows[:epochs], footer)
    return path


def test_a_training_s_platform_is_the_folder_that_it_lies_in():
    moved = TRAINING.key.replace("local-cpu", "server")
    write()
    write(moved, OTHER, machine_id="other")
    merged = cells.merge([TRAINING.key, moved])
    assert merged.column_names == schema.schema_of("training").names
    assert merged["platform"].to_pylist() == ["local-cpu"] * 2 + ["server"] * 2
    known = json.loads(merged.schema.metadata[shard.FOOTER])
    assert known["machines"] == {"m": HERE, "other": OTHER}
    assert set(known["resources"]) == {TRAINING.key, moved}


def test_trainings_are_set_against_what_is_varied_after_as_many_epochs(folder):
    """One diverged, which shortens no other; of one, an epoch more than the others have is left out."""
    keys = [TRAINING.key.replace("-mnist.", f"-mnist-hidden-{nodes}.") for nodes in (25, 100, 784)]
    told = {"dataset_label": "Digits", "target_accuracy": 0.99, "framework": "torch"}
    write(keys[0], variant="mnist-hidden-25", foreign_cpus=0.5, **told)
    write(keys[1], variant="mnist-hidden-100", epochs=1, stopped="seconds", **told)
    lost = told | {"status": "diverged", "reason": "the loss is nan", "stopped": None}
    write(keys[2], variant="mnist-hidden-784", **told | lost)
    write(**told)
    path = folder / "trainings.parquet"
    pq.write_table(cells.merge([*keys, TRAINING.key]), path)
    nodes = {f"mnist-hidden-{number}": number for number in (784, 25, 100)}
    entry = {"title": "Hidden nodes", "quantity": "Nodes", "varied": nodes}
    made = inputs(trained=trainings.read(path), entry=entry)
    data, layout = made.table = varied.table(made)
    assert data["varied"].tolist() == [25, 100, 784] and data["epochs"].unique() == 1
    assert data["accuracy"].tolist()[:2] == [0.45, 0.45] and pd.isna(data["accuracy"][2])
    assert data["parameters"][0] == 25 * 785 + 10 * 26
    assert "the loss is nan" in layout.iloc[2]["Loss on test images"].footnotes[0]
    assert "another program" in layout.iloc[0]["Seconds of an epoch"].footnotes[0]
    drawn, drawing = varied.figure(made)
    assert any("Marked" in note for note in drawing.notes)
    assert len(drawn) == 3 and len(drawing.axes) == 3


def test_seconds_until_a_loss_are_of_each_number_of_devices_and_way_of_sharing(folder):
    """An epoch takes 2 s and the next one 4; one is there after the first, and one never."""
    told = {"dataset_label": "Digits", "target_accuracy": 0.99, "framework": "torch"}
    told |= {"network": "mnist", "variant": "mnist-hidden-100"}
    base, keys = TRAINING.key.replace("-mnist.", "-mnist-hidden-100."), []
    for devices, exchange, losses in (
        (1, "", (0.4, 0.25)),
        (2, "sync", (0.4, 0.26)),
        (2, "async", (0.25, 0.1)),
        (4, "mixed", (0.24, 0.2)),
        (4, "async", (0.5, 0.4)),
    ):
        keys.append(base.replace("-d1-", f"-d{devices}{exchange}-"))
        several = {"devices": devices, "exchange": exchange}
        write(keys[-1], test_losses=losses, **told | several)
    path = folder / "trainings.parquet"
    pq.write_table(cells.merge(keys), path)
    entry = {"title": "Title", "caption": "Caption", "loss": 0.26}
    entry |= {"lacking": {"mixed": "it is not here", "other": "no framework has it"}}
    made = inputs(paths=lambda name: [path], entry=entry)
    data, layout = made.table = until_loss.table(made)
    found = data.set_index(["devices", "exchange"])
    assert found["seconds"].tolist()[:4] == [6.0, 6.0, 2.0, 2.0]
    assert found["share"][2, "async"] == found["share"][4, "mixed"] == 1 / 3
    assert found["status"][4, "async"] == "not_reached"
    assert found["reached"].tolist() == [1, 1, 1, 1, 0]
    assert "0.4" in layout.iloc[4]["Seconds to the loss"].footnotes[0]
    # A way that is there is not told to lack.
    notes = " ".join(made.page.notes)
    assert "other: no framework has it." in notes and "it is not here" not in notes
    drawn, drawing = until_loss.figure(made)
    lines = {line.get_linestyle() for line in drawing.axes[0].lines}
    assert len(drawn) == 4 and {"-", "--", "-."} <= lines
