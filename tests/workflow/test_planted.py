"""Faults of measuring, planted for real: a kept thread, a missing wait and a busy neighbour."""

import os
import subprocess
import sys

import pandas as pd
import pytest

from steptime import machine
from steptime.cells import shard

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def planted(new_checkout):
    checkout = new_checkout("threads")
    checkout.run("--config", "grid=threads", "--", "steptime_times")
    table = pd.read_parquet(checkout.root / "results/tables/steptime_times.parquet")
    ours = table[table["source"] == "ours"].set_index("mode")
    return checkout, ours


def test_a_thread_variable_that_stays_at_one_is_marked(planted):
    checkout, ours = planted
    assert ours.loc["graph", "effective_threads"] < 1.1
    assert "idle threads" in ours.loc["graph", "marks"]
    assert "left CPUs idle" in (checkout.root / "results/tables/steptime_times.md").read_text()
    (path,) = (path for name, path in checkout.shards().items() if ".graph." in name)
    assert shard.read(path)[1]["worker"]["ready"]["threads"] == 1


def test_an_adapter_that_does_not_wait_for_mxnet_s_engine_has_no_time(planted):
    checkout, ours = planted
    assert ours.loc["early", "status"] == "not_equivalent" and pd.isna(ours.loc["early", "ours"])
    words = "not the same training step: a synchronisation is missing: "
    assert words in (checkout.root / "results/tables/steptime_times.md").read_text()


@pytest.fixture(scope="module")
def faulty(new_checkout):
    return new_checkout("faults")


def test_threads_that_nobody_asked_for_are_marked(faulty):
    faulty.choose("greedy", "crowded")
    faulty.run("--config", "grid=faults", "--", "steptime_times")
    table = pd.read_parquet(faulty.root / "results/tables/steptime_times.parquet")
    marks = {
        row["mode"]: set(row["marks"].split(", "))
        for row in table.to_dict("records")
        if row["marks"]
    }
    if any("disturbed" in marks[mode] for mode in ("greedy", "crowded")):
        pytest.skip("a neighbour was at work in earnest, and is named instead")
    assert "oversubscribed" in marks["greedy"] and "crowded" in marks["crowded"]


def test_a_busy_neighbour_is_marked_wherever_the_cell_is_shown(faulty):
    checkout = faulty
    checkout.choose("good")
    targets = ("steptime_times", "standin2026_fig1", "steptime_startup", "steptime_ratios")
    neighbour = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"],
        preexec_fn=lambda: os.sched_setaffinity(0, machine.cpus_for(1)),
    )
    try:
        printed = checkout.run("--config", "grid=faults", "--", *targets)
    finally:
        neighbour.kill()
        neighbour.wait()
    assert " ms" in printed and "  disturbed\n" in printed
    for shown in (
        "tables/steptime_times",
        "figures/standin2026_fig1",
        "tables/steptime_startup",
        "tables/steptime_ratios",
    ):
        rows = pd.read_csv(checkout.root / f"results/{shown}.csv")
        rows = rows[rows["environment"] == "standin-1.0"]
        assert len(rows) and rows["marks"].str.contains("disturbed").all(), shown
    named = [
        str(path.relative_to(checkout.root))
        for name, path in checkout.shards().items()
        if ".good." in name
    ]
    assert selected(checkout) == named


def selected(checkout):
    """What `make again` would measure once more."""
    done = checkout.launch("cells.again", "--grid", "faults")
    assert done.returncode == 0, done.stderr
    assert bool(done.stdout) != ("there is nothing to measure again" in done.stderr)
    return done.stdout.split()
