"""Results of schema 1 become results of schema 2: every number stays, nothing is measured again.

tests/data/schema1.tar.gz was packed by the last version that wrote schema 1: three real cells, a real training (its
images are but their sums), and a cell whose proof failed.
"""

import json
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from steptime.cells import migrate, pack, shard

ROOT = Path(__file__).parents[2]
PACKED = ROOT / "tests/data/schema1.tar.gz"
# What schema 2 calls otherwise.
RENAMED = {"adapter_mode": "mode"}


@pytest.fixture
def old(tmp_path):
    """The results as they were packed, and the rows and footers of their shards by the times at which they began."""
    with tarfile.open(PACKED) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    results = tmp_path / "old/results"
    tables = [pq.read_table(path, partitioning=None) for path in migrate.outdated(results)]
    return results, {table["started_at"][0].as_py(): table for table in tables}


def check(results, tables):
    """Every row of schema 1 is there with all its values, and what stood in the footer alone is a column."""
    found = [shard.read(path) for path in results.glob("cells/*/*/*.parquet")]
    assert len(found) == len(tables) == 5
    for table, _ in found:
        rows, before = table.to_pylist(), tables[table["started_at"][0].as_py()]
        known = before.to_pylist()
        assert [{RENAMED.get(name, name): row[name] for name in row} for row in known] == [
            {name: row[name] for name in row if name in map(rename, known[0])} for row in rows
        ]
        footer = json.loads(before.schema.metadata[b"steptime"])
        row = rows[0]
        assert row["ended_at"].isoformat(timespec="milliseconds") == footer["ended_at"]
        assert row["worker_digest"] == footer["job"]["worker_digest"]
        warmup = footer["worker"].get("warmup", {})
        assert row["first_step_seconds"] == warmup.get("first_seconds")
        assert row["warmup_steady"] == warmup.get("steady")
        assert (row["precision"], row["exchange"]) == ("float32", "")
    assert sorted(table["task"][0].as_py() for table, _ in found) == ["step"] * 4 + ["training"]


def rename(name):
    return RENAMED.get(name, name)


def test_a_pack_of_an_older_version_is_taken_with_every_number(old, tmp_path):
    assert pack.take(PACKED, tmp_path / "results") == 5
    check(tmp_path / "results", old[1])


def test_results_are_rewritten_where_they_lie_and_keep_their_times(old):
    results, tables = old
    times = sorted(path.stat().st_mtime_ns for path in migrate.outdated(results))
    assert migrate.migrate(results) == 5
    check(results, tables)
    assert times == sorted(path.stat().st_mtime_ns for path in results.glob("cells/*/*/*.parquet"))
    assert not (results / "shards").exists() and not (results / "training").exists()
    assert migrate.migrate(results) == 0


def test_what_cannot_be_rewritten_is_named_and_costs_nothing_else(old):
    results, tables = old
    paths = migrate.outdated(results)
    paths[0].write_bytes(paths[0].read_bytes()[:-9])
    wrong = paths[1].with_name(paths[1].name.replace("-r1", "-r2"))
    paths[1].rename(wrong)
    with pytest.raises(migrate.MigrationError) as raised:
        migrate.migrate(results)
    said = str(raised.value).splitlines()
    assert len(said) == 2 and said[0].startswith(f"{paths[0]} cannot be rewritten (")
    assert f"it holds the cell of {paths[1].name}" in said[1]
    assert len(list(results.glob("cells/*/*/*.parquet"))) == 3
    assert migrate.outdated(results) == sorted([paths[0], wrong])


def test_another_s_folder_stays_as_it_is(old, tmp_path):
    results, tables = old
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    assert pack.take(results, tmp_path / "results") == 5
    check(tmp_path / "results", tables)
    assert before == {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
