"""Faults injected for real: a worker that is killed, hangs or takes all memory is a row, and the run goes on."""

import json
import os
import shutil
import subprocess
import sys
import time

import psutil
import pytest

from steptime.cells import shard

TABLE = ("--config", "grid=faults", "--", "steptime_times")
GOOD, HANGING = (f"standin-1.0.{mode}.float32-tiny-b16-t1-d1-r1" for mode in ("good", "hangs"))

EXPECTED = {
    "standin-1.0.good": ("ok", ""),
    "standin-1.0.killed": ("crashed", "the worker was ended by SIGKILL (Killed)"),
    "standin-1.0.segfault": ("crashed", "the worker was ended by SIGSEGV (Segmentation fault)"),
    "standin-1.0.hangs": ("timeout", "not done after 20 s, the limit of the grid (in the warm-up)"),
    "standin-1.0.memory": ("out_of_memory", "the worker held "),
    "standin-1.0.quiet": ("crashed", "the worker ended with exit code 3 before it was done"),
    "standin-1.0.nan": ("diverged", "the loss was nan after "),
    "standin-1.0.narrow": ("not_equivalent", "in the specification and 21,799 in the framework"),
    "standin-1.0.unable": ("unsupported", "the stand-in has no layer of this kind"),
    "standin-1.0.wrong": ("not_equivalent", "every update is 2 times the specification's"),
    "standin-1.0.frozen": ("not_equivalent", "at full size, the first change of dense1/"),
    "standin-1.0.early": ("not_equivalent", "a synchronisation is missing: "),
    "standin-1.0.lazy": ("not_equivalent", "the loss is a Later and not yet a number"),
    "standin-1.0.dilated": ("not_equivalent", "its clock goes wrong: what it timed took "),
    "broken-1.0.good": ("install_failed", "steptime-no-such-package"),
}


@pytest.fixture(scope="module")
def interrupted(new_checkout):
    """A run in which the supervisor of one cell is killed, as the kernel does when memory is out."""
    checkout = new_checkout("faults")
    running = checkout.start(*TABLE)
    checkout.await_doing("measuring standin-1.0 hangs")
    time.sleep(1)
    (supervisor,) = supervisors(running)
    workers = supervisor.children(recursive=True)
    supervisor.kill()
    _, left = psutil.wait_procs(workers, timeout=120)
    printed, _ = running.communicate(timeout=1200)
    return checkout, running.returncode, printed, len(workers), left


@pytest.fixture(scope="module")
def faulty(interrupted):
    """The same command once more: what the fault took, and nothing else, is measured."""
    checkout = interrupted[0]
    before = checkout.times()
    printed = checkout.run(*TABLE)
    after = checkout.times()
    assert {name: after[name] for name in before} == before
    return checkout, printed


def supervisors(running):
    """The processes of a run that measure a cell."""
    below = psutil.Process(running.pid).children(recursive=True)
    return [process for process in below if {"steptime", "cells.measure"} <= set(process.cmdline())]


def test_a_killed_supervisor_leaves_no_half_shard_and_no_worker(interrupted):
    checkout, code, printed, workers, left = interrupted
    assert code != 0
    assert workers and not left
    assert set(checkout.shards()) == {f"{cell}.float32-tiny-b16-t1-d1-r1" for cell in EXPECTED} - {
        HANGING
    }, printed
    assert not checkout.leftovers()


def test_after_it_exactly_the_lost_cell_is_measured(faulty):
    checkout, printed = faulty
    assert "standin-1.0 hangs" in printed and "[1/1 " in printed
    assert len(checkout.shards()) == len(EXPECTED)


def test_the_run_goes_on_and_the_table_is_complete(faulty):
    table = (faulty[0].root / "results/tables/steptime_times.md").read_text()
    for words in (
        "over the time limit: not done after 20 s",
        "crashed: the worker was ended by SIGSEGV",
        "out of memory: the worker held",
        "not the same training step: every update is 2 times the specification's",
        "not supported: the stand-in has no layer of this kind",
        "does not install: ",
        "diverged: the loss was nan",
    ):
        assert words in table, table


@pytest.mark.parametrize("cell", EXPECTED)
def test_a_fault_is_a_row_with_status_and_reason(faulty, cell):
    checkout, _ = faulty
    status, reason = EXPECTED[cell]
    rows, _ = shard.read(checkout.shards()[f"{cell}.float32-tiny-b16-t1-d1-r1"])
    assert rows["status"][0].as_py() == status
    assert reason in rows["reason"][0].as_py()
    assert status == "ok" or reason


def test_a_shard_knows_how_its_numbers_came_about(faulty):
    checkout, _ = faulty
    rows, footer = shard.read(checkout.shards()[GOOD])
    manifest = json.loads((checkout.root / "results/environments/standin-1.0.json").read_text())
    assert rows["environment_digest"][0].as_py() == manifest["digest"]
    assert footer["software"]["packages"]["numpy"] == "2.4.6"
    assert footer["seeds"]["weights"] == 20161 and footer["machine"]["cpu"]["logical_cores"]
    # Copied files are no checkout of git's, so the commit is not known here.
    assert not footer["workflow"]["commit"]


def test_a_truncated_shard_is_named_with_the_command_that_helps(faulty):
    checkout, _ = faulty
    path = checkout.shards()[GOOD]
    path.write_bytes(path.read_bytes()[:-100])
    done = checkout.snakemake(*TABLE)
    assert done.returncode != 0
    name = path.relative_to(checkout.root)
    assert f"measure its cell again with `rm {name} && .venv/bin/snakemake {name}`" in done.stdout
    # The table of the run before is none of this one's.
    assert "overall" not in done.stdout and "results/tables/" not in done.stdout, done.stdout
    assert "The run did not end well" in done.stdout
    path.unlink()
    checkout.run(*TABLE[:3], str(name), "steptime_times")
    shard.read(path)
    table = checkout.root / "results/tables/steptime_times.md"
    assert table.stat().st_mtime_ns > path.stat().st_mtime_ns


@pytest.fixture
def small_disk(faulty):
    """The results on a file system of 1 MiB."""
    results = faulty[0].root / "results"
    kept = results.with_name("kept")
    shutil.copytree(results, kept)
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", results], capture_output=True, text=True
    )
    if mount.returncode != 0:
        shutil.rmtree(kept)
        pytest.skip(f"a file system cannot be mounted here: {mount.stderr.strip()}")
    shutil.copytree(kept, results, dirs_exist_ok=True)
    yield faulty[0]
    subprocess.run(["umount", "--lazy", results], check=True)
    shutil.rmtree(kept)


def fill_up(folder):
    """Leaves 4 KiB, which are not enough for a shard."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(ballast, ballast.stat().st_size - 4096)
    return ballast


def check_a_full_disk(checkout, target, fill, free, **variables):
    """The shard of one cell finds no space: a sentence, no half shard, nothing else lost; then there is space."""
    path = checkout.shards()[GOOD]
    path.unlink()
    before = checkout.times()
    fill()
    checkout.variables |= variables
    done = checkout.snakemake(*TABLE[:3], target)
    checkout.variables.clear()
    assert done.returncode != 0
    sentence = f"The shard {path.relative_to(checkout.root)} cannot be written ("
    assert sentence in done.stdout and "Traceback" not in done.stdout, done.stdout
    assert checkout.times() == before and not checkout.leftovers()
    free()
    checkout.run(*TABLE[:3], target)
    assert shard.read(path)[0]["status"][0].as_py() == "ok"
    assert {name: time for name, time in checkout.times().items() if name != GOOD} == before


@pytest.mark.seldom
def test_a_full_file_system(small_disk):
    results, ballast = small_disk.root / "results", []
    # As in a first run: Snakemake does not miss a shard whose table is there.
    for made in ("merged", "tables"):
        shutil.rmtree(results / made)
    check_a_full_disk(
        small_disk,
        "steptime_times",
        fill=lambda: ballast.append(fill_up(results)),
        free=lambda: ballast[0].unlink(),
    )


def test_a_limit_on_files(faulty, tmp_path):
    """As a quota sets it; where nothing can be mounted, this is the full disk."""
    python = tmp_path / "python"
    # Blocks of 512 bytes; a shard has 7 KiB.
    python.write_text(f'#!/bin/sh\nulimit -f 8\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    shard_of_it = str(faulty[0].shards()[GOOD].relative_to(faulty[0].root))
    check_a_full_disk(
        faulty[0], shard_of_it, lambda: None, lambda: None, STEPTIME_PYTHON=str(python)
    )
    merge = ("merge.cells", "--artefact", "steptime_times", "--output", "merged")
    plan = ("--plan", "results/plan/faults.json")
    done = faulty[0].launch(*merge, *plan, STEPTIME_PYTHON=str(python))
    said = "merge.cells: a file could not be written (File too large): free some space and run again.\n"
    assert (done.returncode, done.stderr) == (1, said)
