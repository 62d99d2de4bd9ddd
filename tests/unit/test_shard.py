"""Shards: what is written is read again, and what is broken is told with the command that helps."""

import json
import struct
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from steptime.cells import schema, shard

FACTS = {
    "platform": "local-cpu",
    "environment": "torch-9.9",
    "task": "step",
    "network": "fcn5",
    "status": "ok",
    "threads": 2,
}
SAMPLES = [{"sample": 1, "steps": 3, "seconds": 0.5}, {"sample": 2, "steps": 3, "seconds": 0.25}]


def test_a_sample_is_a_row_and_the_rest_is_constant(tmp_path):
    path = tmp_path / "a" / "cell.parquet"
    shard.write(path, FACTS, SAMPLES, {"machine": {"cpu": "x"}})
    rows, footer = shard.read(path)
    assert rows.select(["sample", "steps", "seconds", "threads"]).to_pylist() == [
        {"sample": 1, "steps": 3, "seconds": 0.5, "threads": 2},
        {"sample": 2, "steps": 3, "seconds": 0.25, "threads": 2},
    ]
    assert (footer["machine"], footer["schema"]) == ({"cpu": "x"}, schema.SCHEMA_VERSION)


@pytest.mark.parametrize("task", ["step", "training"])
def test_the_parts_of_a_shard_are_those_of_its_columns(tmp_path, task):
    path = tmp_path / "cell.parquet"
    facts = FACTS | {"task": task, "started_at": datetime(2026, 1, 2, 3, tzinfo=UTC)}
    shard.write(path, facts, [{"seconds": 0.5, "cpu_seconds": 1.0}, {"seconds": 0.25}], {})
    row, rows, _ = shard.read_parts(path)
    assert rows.schema.names == schema.rows_of(task).names
    # CPU seconds are a number of the cell, but of a training one of each epoch.
    assert ("cpu_seconds" in row) == (task == "step")
    assert [row | each for each in rows.to_pylist()] == shard.read(path)[0].to_pylist()


def test_a_cell_without_samples_has_one_row(tmp_path):
    shard.write(tmp_path / "cell.parquet", FACTS | {"status": "timeout", "reason": "slow"}, [], {})
    (row,) = shard.read(tmp_path / "cell.parquet")[0].to_pylist()
    assert (row["status"], row["reason"], row["seconds"]) == ("timeout", "slow", None)


def test_another_schema_version_is_told(tmp_path):
    path = tmp_path / "cell.parquet"
    shard.write(path, FACTS, [], {})
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({shard.FOOTER: json.dumps({"schema": 0})}), path)
    said = "has schema version 0 and this workflow reads 2: measure"
    with pytest.raises(shard.ShardError, match=said):
        shard.read(path)
    # As any table is.
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(shard.ShardError, match="is no shard: shards are files below results/cells"):
        shard.read(path)


def test_one_bit_of_a_sample_that_a_disk_has_lost_is_told(tmp_path):
    """Parquet reads it as another number."""
    path = tmp_path / "cell.parquet"
    shard.write(path, FACTS, SAMPLES, {})
    content = path.read_bytes()
    # 0.5 becomes 0.75.
    assert content.count(struct.pack("<d", 0.5)) == 1
    path.write_bytes(content.replace(struct.pack("<d", 0.5), struct.pack("<d", 0.75)))
    with pytest.raises(shard.ShardError, match="its rows are not those that were written"):
        shard.read_parts(path)


def test_a_shard_with_another_column_is_of_a_newer_version(tmp_path):
    path = tmp_path / "cell.parquet"
    shard.write(path, FACTS, SAMPLES, {})
    table, footer = shard.read(path)
    for row, said in (
        (footer["row"] | {"brand_new": 1}, "from a newer version of steptime, which has brand_new"),
        ({"task": "step", "brand_new": 1}, "does not have the columns of a shard"),
    ):
        content = {shard.FOOTER: json.dumps(footer | {"row": row})}
        pq.write_table(table.replace_schema_metadata(content), path)
        with pytest.raises(shard.ShardError, match=said):
            shard.read_parts(path)


@pytest.mark.parametrize("reads", [shard.read, shard.read_parts])
@pytest.mark.parametrize("lost", ["seconds", "reason"])
def test_a_shard_without_a_column_is_told(tmp_path, reads, lost):
    path = tmp_path / "cell.parquet"
    shard.write(path, FACTS, SAMPLES[:1], {})
    table, footer = shard.read(path)
    footer["row"].pop(lost, None)
    metadata = {shard.FOOTER: json.dumps(footer)}
    pq.write_table(table.drop_columns([lost]).replace_schema_metadata(metadata), path)
    said = "does not have the columns of a shard: measure its cell again with `rm"
    with pytest.raises(shard.ShardError, match=said):
        reads(path)


def test_a_broken_and_a_missing_shard_are_told(tmp_path):
    broken = tmp_path / "cell.parquet"
    broken.write_bytes(b"PAR1 and no more")
    with pytest.raises(
        shard.ShardError,
        match=r"is broken \(.*\): measure its cell again with `rm .*cell.parquet && ",
    ):
        shard.read(broken)
    with pytest.raises(shard.ShardError, match="is missing: `.venv/bin/snakemake "):
        shard.read(tmp_path / "none.parquet")
