"""A process with all loaded, which a run keeps for its tables and figures."""

import os
import subprocess
import sys
import time
from pathlib import Path

from conftest import ROOT

from steptime import run, warm

LAUNCH = str(ROOT / "workflow/scripts/launch")


def test_a_program_of_a_run_begins_with_all_loaded_and_without_a_run_by_itself(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPTIME_LAUNCH", LAUNCH)
    monkeypatch.setenv("STEPTIME_PYTHON", sys.executable)
    run.begin()
    warm.begin()
    while not Path(warm.ADDRESS).exists():
        time.sleep(0.05)
    # By itself, a program is called by its file.
    assert [asked("page.summary", "--nonsense") for _ in range(2)] == 2 * [(2, "page.summary")]
    keeper = warm.STARTED.pop()
    keeper.stdin.close()
    assert keeper.wait(60) == 0 and not Path(warm.ADDRESS).exists()
    assert asked("page.summary", "--nonsense") == (2, "summary.py")


def asked(*program):
    """The exit status of a program, and what it calls itself."""
    done = subprocess.run([LAUNCH, *program], capture_output=True, text=True, env=os.environ)
    assert done.stderr.startswith("usage: "), done.stderr
    return done.returncode, done.stderr.split()[1]
