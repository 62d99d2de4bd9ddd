"""What planning reads of shards without a library, and what it compares with the configuration."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from conftest import ROOT

from steptime.cells import footers, shard
from steptime.cells.expected import Expected
from steptime.plan import configuration, digests, grid, written

LOADED = configuration.load(ROOT, {"grid": "desktop"})
PLAN = grid.expand(LOADED, 2)
EXPECTED = Expected(LOADED)
CELL = next(iter(PLAN.cells.values()))


def write(path, **changes):
    """A shard of CELL as it is expected, but for these columns."""
    job = EXPECTED.job_of(CELL)
    facts = CELL.facts() | EXPECTED.of(CELL)
    facts |= {"variant": "", "status": "ok", "proof_digest": "p", "proof_id": "i"} | changes
    footer = {"machine": {"long": "x" * 20_000}, "job": job, "reference": "r"}
    shard.write(path, facts, [{"sample": 1, "steps": 1, "seconds": 0.5}], footer)
    return path


def test_a_footer_is_what_pyarrow_reads(tmp_path):
    path = write(tmp_path / "one.parquet")
    read = json.loads(pq.read_metadata(path).metadata[shard.FOOTER])
    assert footers.footer(path) == read and read["row"]["network"] == CELL.network
    facts = footers.facts(read)
    assert facts["variables"] == digests.digest(EXPECTED.job_of(CELL)["variables"])
    assert footers.differing(facts, EXPECTED.of(CELL)) == ()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[:-9],
        lambda content: content.replace(b'"row"', b'"wor"'),
        lambda content: content.replace(footers.NAMED, b"x" * len(footers.NAMED)),
        lambda content: footers.NAMED + b"\xa0\x8d\x06" + b"[" * 100_000 + b"PAR1",
    ],
)
def test_what_is_no_shard_has_no_footer(tmp_path, spoil):
    path = write(tmp_path / "one.parquet")
    path.write_bytes(spoil(path.read_bytes()))
    assert footers.footer(path) == {} and footers.row(path) == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network_digest": "x"}, ("network",)),
        ({"parameters": 7}, ("network",)),
        ({"worker_digest": "x", "environment_digest": "y"}, ("adapter", "pins")),
        ({"sampling_digest": "x"}, ("sampling",)),
        # What a proof refuses is not counted, and what is not known is not another one.
        ({"parameters": 7, "status": "not_equivalent"}, ()),
        ({"network_digest": None, "worker_digest": None}, ()),
    ],
)
def test_a_row_of_something_else_is_told_by_what_differs(tmp_path, changes, words):
    facts = footers.row(write(tmp_path / "one.parquet", **changes))
    assert footers.differing(facts, EXPECTED.of(CELL)) == words


def test_what_rows_must_say_travels_with_the_plan_and_is_told_of_any_row(tmp_path):
    expected = {key: EXPECTED.of(cell) for key, cell in PLAN.cells.items()}
    written.write(replace(PLAN, expected=expected), tmp_path / "plan.json")
    assert written.read(tmp_path / "plan.json").expected == expected
    of_row = EXPECTED.of_row(CELL.facts())
    assert of_row | {"sampling_digest": expected[CELL.key]["sampling_digest"]} == expected[CELL.key]
    for name in ("network", "task"):
        assert EXPECTED.of_row(CELL.facts() | {name: "nobody-s"}) == {}
    trained = next(cell for cell in PLAN.cells.values() if cell.dataset)
    seeds = {EXPECTED.of(replace(trained, repeat=seed))["sampling_digest"] for seed in (1, 2)}
    assert len(seeds) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{"batch": 1}]}', "[" * 100_000])
def test_a_plan_that_was_edited_by_hand_is_one_sentence(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(configuration.ConfigurationError, match="plan.json is broken .*: remove it"):
        written.read(tmp_path / "plan.json")
