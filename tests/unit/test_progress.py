"""What a run says of its progress: when a trial of the grid has ended, and its table so far."""

import json
from pathlib import Path

import pytest
from examples import CELL

from steptime.cells import shard
from steptime.plan import run
from steptime.plan.cell import key_of, shard_path
from steptime.render import so_far
from steptime.supervisor import progress

MACHINE = {"cpu": {"model": "A CPU", "logical_cores": 2}, "memory_bytes": 2**34, "gpus": []}
WORDS = {"frameworks": ["resources/papers/frameworks.yaml"], "networks": ["config/networks.yaml"]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_trial_ends_with_its_last_cell_and_nothing_is_said_after_the_last():
    """A run that goes on after an interrupt has fewer cells of its first trial than the grid."""
    run.begin(cells=4, trials={"2": 1, "3": 2})
    progress.begin()
    ended = []
    for trial in ("2", "3", "-", "3"):
        progress.report("a cell", "took a second", 1.0, trial)
        ended.append(progress.ended_trial())
    assert ended == ["2", "", "", ""]


def test_a_run_without_trials_has_none_that_ends():
    run.begin(cells=1, trials={})
    progress.begin()
    progress.report("a cell", "took a second", 1.0, "1")
    assert progress.ended_trial() == ""


def test_a_program_of_a_run_that_told_nothing_ends_with_a_sentence(monkeypatch):
    assert run.facts() == {}
    monkeypatch.setenv("STEPTIME_LAUNCH", "launch")
    with pytest.raises(SystemExit, match="leave out `--no-hooks`"):
        run.facts()


def test_the_table_so_far_is_of_the_cells_that_are_there(capsys):
    first = CELL | {"network": "fcn5", "variant": "", "dataset": "", "repeat": 1}
    keys = [key_of(first | {"repeat": repeat}) for repeat in (1, 2)]
    facts = {"variant": "", "status": "ok", "reason": "", "machine_id": "m1"}
    facts |= {"timed_region": "forward,loss,backward,update,sync", "effective_threads": 1.0}
    footer = {"machine": MACHINE, "software": {"framework_version": "2.13.0"}, "worker": {}}
    samples = [{"sample": number, "steps": 1, "seconds": 0.25} for number in range(1, 6)]
    shard.write(Path(shard_path(keys[0])), first | facts, samples, footer)
    data = WORDS | {"catalogue": ["resources/steptime/catalogue.yaml"]}
    job = json.dumps({"artefact": "steptime_times", "facts": {}, "data": data})
    so_far.show({"job": job, "cells": keys})
    printed = capsys.readouterr().out
    assert "FCN-5, batch 64" in printed and "0.250" in printed and "PyTorch" in printed
    assert "Whole table" not in printed and not Path("results/tables").exists()
