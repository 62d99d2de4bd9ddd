"""Ctrl-C at the terminal in mid-cell, a closed terminal, two runs at once, and the same command again."""

import itertools
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress

import psutil
import pytest
from conftest import ROOT

from steptime.cells import shard
from steptime.machine import alone

TABLE = ("--config", "grid=faults", "--", "steptime_times")
GOOD, NAN, HANGING = (
    f"standin-1.0.{mode}.float32-tiny-b16-t1-d1-r1" for mode in ("good", "nan", "hangs")
)


def test_an_interrupted_cell_is_the_only_one_to_be_measured_again(new_checkout):
    checkout = new_checkout("faults")
    chosen(checkout, 60, "good", "hangs")
    command = checkout.command(
        "--config", "grid=faults", "--", f"results/cells/local-cpu/step/{GOOD}.parquet"
    )
    assert subprocess.run(command, cwd=checkout.root, env=checkout.environment()).returncode == 0
    measured = checkout.times()
    running = checkout.start(*TABLE)
    checkout.await_doing("measuring standin-1.0 hangs tiny")
    time.sleep(2)
    # A terminal's Ctrl-C reaches every process of the foreground group.
    subprocess.run(["kill", "-INT", "--", f"-{running.pid}"], check=True)
    printed, _ = running.communicate(timeout=600)
    assert "Traceback" not in printed, printed
    assert running.returncode not in (0, -signal.SIGKILL)
    assert checkout.times() == measured
    assert not checkout.leftovers()
    chosen(checkout, 2, "good", "hangs")
    checkout.snakemake(
        "--config", "grid=faults", "--rerun-triggers", "mtime", "--", "steptime_times"
    )
    assert set(checkout.shards()) == {GOOD, HANGING}
    assert checkout.times()[GOOD] == measured[GOOD]


def chosen(checkout, seconds, *modes):
    """Only these modes of the stand-in, with another limit."""
    checkout.choose(*modes, limits={"seconds": seconds, "memory_gib": 0.3})


def ranks_of(run):
    """The workers of the cell that a run measures: those of proofs come before."""
    found = []
    for each in psutil.Process(run.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "cells.measure" in each.cmdline():
                found += [one for one in each.children() if one.cmdline()[1:3] == ["-m", "worker"]]
    return found


@pytest.mark.skipif(os.cpu_count() == 1, reason="two ranks need two CPUs")
def test_an_interrupt_ends_both_ranks_of_a_cell_and_leaves_nothing_of_them(
    new_checkout, tmp_path, monkeypatch
):
    """The framework is a stand-in, whose ranks speak over real sockets."""
    checkout = new_checkout("faults")
    adapters = checkout.root / "workflow/scripts/worker/frameworks"
    shutil.copy(ROOT / "tests/defects/together.py", adapters / "standin/ranks.py")
    with open(adapters / "standin/__init__.py", "a") as adapter:
        adapter.write('EXCHANGES = {"sync": "ranks"}\n')
    frameworks = checkout.root / "config/frameworks.yaml"
    told = f'STAND_IN_SCRIPTS: "{checkout.root}/workflow/scripts"'
    text = frameworks.read_text().replace("[good, killed,", "[good, slow, killed,")
    frameworks.write_text(text.replace("variables: {OMP", f"variables: {{{told}, OMP"))
    sampling = {"budget_seconds": 200, "precision": 0.05, "least_samples": 5}
    limits = {"seconds": 300, "memory_gib": 1}
    checkout.choose("slow", sampling=sampling, limits=limits, devices=[1, 2])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    cell = "results/cells/local-cpu/step/standin-1.0.slow.float32-tiny-b16-t1-d2sync-r1.parquet"
    running = checkout.start("--config", "grid=faults", "--", cell)
    checkout.await_doing("2 devices of 1 thread, sync")
    while len(ranks_of(running)) < 2:
        assert running.poll() is None
        time.sleep(0.5)
    time.sleep(2)
    below = psutil.Process(running.pid).children(recursive=True)
    assert len(ranks_of(running)) == 2 and list(tmp_path.glob("steptime-*/meeting"))
    os.killpg(running.pid, signal.SIGINT)
    printed, _ = running.communicate(timeout=600)
    _, left = psutil.wait_procs(below, timeout=60)
    assert not left and "Traceback" not in printed, (left, printed)
    assert running.returncode not in (0, -signal.SIGKILL)
    assert not checkout.shards() and not checkout.leftovers()
    # The network with their ports has ended with these processes.
    assert not list(tmp_path.glob("steptime-*"))


@pytest.mark.seldom
@pytest.mark.parametrize(("number", "group"), [(signal.SIGKILL, False), (signal.SIGHUP, True)])
def test_a_killed_run_takes_its_cell_with_it_and_the_same_command_goes_on(
    new_checkout, number, group
):
    """Snakemake alone is killed, or the terminal is closed."""
    checkout = new_checkout("faults")
    chosen(checkout, 60, "hangs")
    running = checkout.start(*TABLE)
    checkout.await_doing("measuring standin-1.0")
    time.sleep(1)
    below = psutil.Process(running.pid).children(recursive=True)
    (os.killpg if group else os.kill)(running.pid, number)
    running.wait()
    _, left = psutil.wait_procs(below, timeout=120)
    assert not left and not checkout.shards() and not checkout.leftovers()
    chosen(checkout, 2, "hangs")
    again = checkout.snakemake(*TABLE)
    assert again.returncode == 0, again.stdout
    assert "had left this folder locked: it is open again" in again.stdout
    assert set(checkout.shards()) == {HANGING}


@pytest.mark.seldom
def test_a_clock_that_was_set_back_costs_no_cell(new_checkout):
    """Snakemake removes an output that is older than its input; a cell's manifest is of tomorrow here."""
    checkout = new_checkout("faults")
    chosen(checkout, 60, "good")
    path = f"results/cells/local-cpu/step/{GOOD}.parquet"
    checkout.snakemake("--config", "grid=faults", "--", path)
    (checkout.root / path).unlink()
    tomorrow = time.time() + 86400
    for kind in ("environments", "proofs"):
        for made in (checkout.root / "results" / kind).iterdir():
            os.utime(made, (tomorrow, tomorrow))
    done = checkout.snakemake("--config", "grid=faults", "--", path)
    assert done.returncode == 0 and (checkout.root / path).exists(), done.stdout
    assert "had a time that is yet to come" in done.stdout
    again = checkout.snakemake("--config", "grid=faults", "--", path)
    assert "[1/" not in again.stdout, again.stdout


def test_a_run_leaves_alone_what_another_in_its_folder_does(new_checkout):
    """They had one file of facts and one socket: the first lost its count, and ended in a traceback."""
    checkout = new_checkout("faults")
    chosen(checkout, 30, "good", "hangs")
    running = checkout.start(*TABLE)
    checkout.await_doing("measuring standin-1.0 hangs tiny")
    # It measures nothing, makes what no run made yet, and ends before the first.
    beside = checkout.run(*TABLE[:3], "dai2019_fig3")
    assert "Traceback" not in beside, beside
    chosen(checkout, 30, "good")
    other = checkout.snakemake(*TABLE)
    assert other.returncode != 0 and "Another run in this folder" in other.stdout, other.stdout
    printed, _ = running.communicate(timeout=600)
    assert running.returncode == 0 and "Traceback" not in printed, printed
    assert "[1/2" in printed and "[2/2" in printed, printed
    assert set(checkout.shards()) == {GOOD, HANGING}


@pytest.mark.seldom
def test_cells_of_two_runs_are_never_side_by_side(new_checkout):
    """In two folders, or of two targets in one: Snakemake locks files, and none of them is of both."""
    one, other = new_checkout("faults"), new_checkout("faults")
    places = [(one, GOOD), (one, NAN), (other, GOOD)]
    for checkout in (one, other):
        chosen(checkout, 60, "good", "nan")
        targets = [f"results/cells/local-cpu/step/{cell}.parquet" for cell in (GOOD, NAN)]
        # What both need is there, so that only cells are left to be measured.
        assert checkout.snakemake(*TABLE[:3], *targets).returncode == 0
        for path in checkout.shards().values():
            path.unlink()
    # As if another run measured, until all of these wait for it.
    with alone.alone():
        runs = [
            checkout.start(*TABLE[:3], f"results/cells/local-cpu/step/{cell}.parquet")
            for checkout, cell in places
        ]
        words = "waits for its turn: another run measures on this machine"
        for run in runs:
            said = []
            while not said or (said[-1] and words not in said[-1]):
                said.append(run.stdout.readline())
            assert words in said[-1], "".join(said)
    printed = "".join(run.communicate(timeout=600)[0] for run in runs)
    rows = [shard.read_parts(path)[0] for each in (one, other) for path in each.shards().values()]
    spans = sorted((row["started_at"], row["ended_at"]) for row in rows)
    assert len(spans) == 3, printed
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(spans)), spans
