"""What the shards of a run tell of its course: what a start costs, and that no two cells overlapped."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from examples import CATALOGUE, CELL, FRAMEWORKS, words

from steptime.artefacts import startup, timeline
from steptime.cells import shard

MACHINE = {"cpu": {"model": "A CPU", "logical_cores": 2}, "memory_bytes": 2**34, "gpus": []}


def write_shard(warmup, **changes):
    """Writes a shard below results/; returns the key of its cell."""
    samples = [(1, 0.5)] * 5 if warmup else []
    facts = (
        CELL
        | {"import_seconds": 2.0, "build_seconds": 0.25, "warmup_steps": 9 if warmup else None}
        | changes
    )
    key = f"local-cpu/{shard.file_name(facts)}".removesuffix(".parquet")
    footer = {"machine": MACHINE, "software": {}, "worker": {"warmup": warmup} if warmup else {}}
    shard.write(
        Path("results/shards") / f"{key}.parquet", facts | {"started_at": None}, samples, footer
    )
    return key


def test_startup_takes_the_first_step_apart_from_the_warm_up_and_keeps_what_failed(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    keys = [
        write_shard(
            {"first_seconds": first, "seconds": first + 1, "steady": True},
            repeat=n,
            steal_share=0.02 * (n == 2),
        )
        for n, first in enumerate((3.0, 5.0, 4.0), 1)
    ]
    keys.append(write_shard(None, network="alexnet", status="timeout", reason="not done after 9 s"))
    data, layout = startup.build(startup.starts(keys), FRAMEWORKS, CATALOGUE, words())
    first = data.iloc[0]
    assert [first[name] for name in startup.PARTS] == [2.0, 0.25, 4.0, 1.0]
    assert (first["total_seconds"], first["repeats"]) == (7.25, 3)
    assert all("`make again`" in entry.footnotes[0] for entry in layout.iloc[0][:5])
    texts = [entry.text for entry in layout.iloc[1]]
    assert texts[:2] == ["2.00", "0.250"] and set(texts[2:]) == {"–"}
    _, drawing = startup.draw(data, startup.PARTS)
    assert "over the time limit" in drawing.texts[-1].get_text()


def write_span(folder, began, ended, **changes):
    day = datetime(2026, 1, 1, tzinfo=UTC)
    path = folder / f"{began}-{ended}-{changes.get('machine_id', 'm1')}.parquet"
    facts = CELL | changes | {"started_at": day + timedelta(seconds=began)}
    footer = {
        "machine": {},
        "software": {},
        "worker": {},
        "ended_at": (day + timedelta(seconds=ended)).isoformat(),
    }
    shard.write(path, facts, [], footer)
    return path


def test_cells_of_one_machine_that_overlap_are_named(tmp_path):
    apart = [
        write_span(tmp_path, 0, 10),
        write_span(tmp_path, 10, 20),
        write_span(tmp_path, 500, 510),
    ]
    elsewhere = write_span(tmp_path, 5, 15, machine_id="m2")
    spans = timeline.spans_of([*apart, elsewhere])
    assert (
        timeline.sentence(spans) == "No two of 4 cells overlapped of the same machine (2 machines)."
    )
    # A short cell within a long one, and one after both that still lies within the long one.
    within = [
        write_span(tmp_path, 12, 40),
        write_span(tmp_path, 13, 14),
        write_span(tmp_path, 30, 35),
    ]
    spans = timeline.spans_of([*apart, *within])
    assert timeline.overlaps(spans) == [
        ("10-20-m1", "12-40-m1"),
        ("12-40-m1", "13-14-m1"),
        ("12-40-m1", "30-35-m1"),
    ]
    assert (
        "3 of 6 cells began before another had ended: 10-20-m1 and 12-40-m1;"
        in timeline.sentence(spans)
    )
    data, drawing = timeline.draw(spans, FRAMEWORKS)
    assert data["overlaps_with"].notna().sum() == 3
    assert any("Dotted: a pause" in text.get_text().replace("\n", " ") for text in drawing.texts)


def test_a_shard_that_does_not_say_when_it_ended_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("results/shards") / f"{write_shard(None, status='crashed')}.parquet"
    with pytest.raises(
        shard.ShardError, match=f"{path} does not say when its cell ended: measure its cell again"
    ):
        timeline.spans_of([path])
