"""Locks of the kernel's: one cell at a time on a machine, and a folder that nobody holds any more."""

import os
import subprocess
import sys

import pytest

from steptime.machine import alone
from steptime.run import holding

HOLDS = """
import sys, time
from steptime.machine.alone import alone
with alone(beside="beside" in sys.argv):
    print("has it", flush=True)
    time.sleep(60)
"""
STARTS = """
import sys, time
from pathlib import Path
from steptime.run.holding import hold
held = hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPTIME_LOCKS", str(tmp_path))
    return tmp_path


def start(text, *arguments):
    """A process with the locks of this one."""
    scripts = os.pathsep.join(sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": scripts},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_cell_waits_for_that_of_another_run_and_says_so_once(folder):
    with start(HOLDS) as first:
        assert first.stdout.readline() == "has it\n"
        with start(HOLDS) as second:
            said = second.stderr.readline()
            assert f"another run measures on this machine (process {first.pid})" in said
            # However the first one ends.
            first.kill()
            assert second.stdout.readline() == "has it\n"
            second.kill()
            assert second.stderr.read() == ""


def test_what_is_not_measured_may_be_beside_its_like_but_not_beside_a_cell(folder):
    with start(HOLDS, "beside") as first, start(HOLDS, "beside") as second:
        assert first.stdout.readline() == second.stdout.readline() == "has it\n"
        with start(HOLDS) as cell:
            assert "another run" in cell.stderr.readline()
            for each in (first, second, cell):
                each.kill()


def test_another_users_file_is_locked_and_a_link_is_not_followed(folder):
    (folder / "steptime.lock").touch()
    (folder / "steptime.lock").chmod(0o444)
    with alone.alone():
        assert os.access(folder / "steptime.lock", os.R_OK)
    old = os.umask(0o077)
    try:
        (folder / "steptime.lock").unlink()
        with alone.alone():
            assert (folder / "steptime.lock").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(old)


def test_where_nothing_can_be_locked_it_is_told_and_measured_all_the_same(folder, capsys):
    (folder / "steptime.lock").symlink_to(folder / "of another program")
    with alone.alone():
        assert "nothing keeps another run from measuring beside this one" in capsys.readouterr().err
    assert not (folder / "of another program").exists()


def locked(folder):
    locks = folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("results/tables/times.md\n")
    return locks


def test_the_lock_of_a_killed_run_is_opened_and_that_of_a_live_one_is_not(tmp_path, capsys):
    with start(STARTS, tmp_path) as first:
        first.stdout.readline()
        locks = locked(tmp_path)
        with start(STARTS, tmp_path) as second:
            second.stdout.readline()
            assert list(locks.iterdir())
            second.kill()
        first.kill()
    os.close(holding.hold(tmp_path))
    assert locks.is_dir() and not list(locks.iterdir())
    assert "it is open again" in capsys.readouterr().err


@pytest.mark.parametrize("last", ["another-host", ""])
def test_the_lock_of_another_host_or_an_older_version_is_left_with_the_command(
    tmp_path, capsys, last
):
    locks = locked(tmp_path)
    (tmp_path / "steptime").mkdir()
    (tmp_path / "steptime/held").write_text(last)
    os.close(holding.hold(tmp_path))
    assert list(locks.iterdir())
    assert "open it with `.venv/bin/snakemake --unlock`" in capsys.readouterr().err
