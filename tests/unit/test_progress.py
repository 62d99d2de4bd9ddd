"""What a run says of its progress: when a trial of the grid has ended, and its table so far."""

import json
from pathlib import Path

import pytest
from examples import CELL

from steptime.cells import beside, shard
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
    run.begin(cells=5, parts={"trial 1 at 1 thread": 1, "trial 1": 2, "trial 2": 2})
    progress.begin()
    ended = []
    for parts in (["trial 1 at 1 thread", "trial 1"], ["trial 1"], ["trial 2"], [], ["trial 2"]):
        progress.report("a cell", "took a second", 1.0, parts)
        ended.append(progress.ended())
    assert ended == ["trial 1 at 1 thread", "trial 1", "", "", ""]


def test_a_run_without_trials_has_none_that_ends():
    run.begin(cells=1, parts=None)
    progress.begin()
    progress.report("a cell", "took a second", 1.0, ["trial 1"])
    assert progress.ended() == ""


def test_a_cell_is_of_its_trial_and_in_the_first_of_its_column_too():
    first = CELL | {"network": "fcn5", "dataset": "", "repeat": 1, "threads": 2}
    second = first | {"repeat": 2}
    shown = [key_of(first), key_of(second)]
    assert progress.parts_of(first, shown) == ["trial 1 at 2 threads of local-cpu", "trial 1"]
    assert progress.parts_of(second, shown) == ["trial 2"]
    assert progress.parts_of(first | {"batch": 7}, shown) == []


def test_cells_that_are_asked_for_on_the_way_are_counted():
    first = CELL | {"network": "fcn5", "dataset": "", "repeat": 4}
    run.begin(cells=6, parts={"trial 3": 6}, shown={"cells": [key_of(first)]})
    progress.expect([first, first | {"batch": 7}])
    assert run.facts()["cells"] == 8 and run.facts()["parts"] == {"trial 3": 6, "trial 4": 1}


def test_the_first_answer_of_a_place_waits_for_its_last_cell():
    cells = [
        CELL | {"repeat": 1, "environment": name}
        for name in ("torch-2.13", "mxnet-1.9", "jax-0.12")
    ]
    keys = [key_of(cell) for cell in [*cells, cells[0] | {"threads": 2}]]
    footer = {"machine": MACHINE, "software": {"framework_version": "1"}, "worker": {}}
    for cell, seconds in zip(cells, (0.25, 0.125, None), strict=True):
        assert beside.answer(cell, keys) == ""
        status = {"status": "crashed", "reason": "it fell"} if seconds is None else {}
        samples = [{"sample": 1, "steps": 1, "seconds": seconds}]
        shard.write(Path(shard_path(key_of(cell))), cell | status, samples, footer)
    assert beside.answer(cells[0], keys) == (
        "So far, by one process of each: mxnet-1.9 eager takes 0.125 s; torch-2.13 eager takes 2.00 times as long, "
        "jax-0.12 eager has no time"
    )
    assert beside.answer(cells[0], keys[:1]) == ""


@pytest.mark.parametrize("content", [None, "", "{", "[]", '[["cells", 4]]', "[" * 200_000])
def test_a_program_of_a_run_that_told_nothing_ends_with_a_sentence(monkeypatch, content):
    if content is not None:
        run.begin(cells=4)
        run.FILE.write_text(content)
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
    so_far.show({"job": job, "cells": keys}, [])
    printed = capsys.readouterr().out
    assert "FCN-5, batch 64" in printed and "0.250" in printed and "PyTorch" in printed
    page = "results/so_far/tables/steptime_times.html"
    assert f"Whole table: {page}" in printed and not Path("results/tables").exists()
    assert "0.250" in Path(page).read_text()
    # Its interval is narrow, and knows nothing of another process.
    assert "Each cell was measured by one process" in printed
