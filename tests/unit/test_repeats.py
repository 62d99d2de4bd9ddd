"""Processes that are added where intervals are wide: to which results, and until when."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from examples import MACHINE, PLANNED, ROOT
from today import MXNET, TENSORFLOW, TORCH

from steptime import run
from steptime.cells import shard
from steptime.merge import repeats
from steptime.plan import configuration, grid, written
from steptime.plan.cell import shard_path
from steptime.plan.grid import COMPARED
from steptime.render import words
from steptime.run import progress

# Of each network, the seconds of a step in each framework: in the first two of them two are equal.
TIMES = {
    "fcn5": {TORCH: 1.0, MXNET: 1.0, TENSORFLOW: 3.0},
    "fcn8": {TORCH: 2.0, MXNET: 2.0, TENSORFLOW: 3.0},
    "lstm32": {TORCH: 1.0, MXNET: 2.0, TENSORFLOW: 3.0},
}
# Seconds that a process of a cell lasts.
LASTS = {"fcn5": 10, "fcn8": 40, "lstm32": 10}


def cell(network, environment, repeat):
    of = {"environment": environment, "framework": environment.split("-")[0], "mode": "graph"}
    return replace(PLANNED, network=network, repeat=repeat, **of)


def measure(one):
    """Writes the shard of a cell, whose process differs from the others of its cell by 2 %."""
    random = np.random.default_rng([len(one.network), len(one.environment), one.repeat])
    began = datetime(2026, 1, 1, tzinfo=UTC)
    facts = one.facts() | {"variant": "", "status": "ok", "machine_id": "m1", "started_at": began}
    facts |= {"ended_at": began + timedelta(seconds=LASTS[one.network])}
    seconds = TIMES[one.network][one.environment] * np.exp(0.02 * random.standard_normal())
    footer = {"machine": MACHINE, "software": {"framework_version": "1"}, "worker": {}}
    samples = [{"sample": 1, "steps": 1, "seconds": float(seconds)}]
    shard.write(Path(shard_path(one.key)), facts, samples, footer)


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A plan of three networks in three frameworks, of which the first three trials are measured."""
    monkeypatch.chdir(tmp_path)
    cells = {
        one.key: one
        for repeat in range(1, 13)
        for network, frameworks in TIMES.items()
        for one in (cell(network, environment, repeat) for environment in frameworks)
    }
    first = [key for key, one in cells.items() if one.repeat <= 3]
    for key in first:
        measure(cells[key])
    made = grid.Plan(cells, {COMPARED: first}, looks=list(range(3, 13)))
    written.write(made, Path("plan.json"))
    run.begin(cells=0, stages={}, shown={"cells": list(cells)})
    progress.begin()
    return made


def choose(monkeypatch, trial, *before, platforms=("local-cpu",), minutes=60.0):
    """The cells that are chosen for a trial, as (network, environment, repeat), and the file that says so."""
    run.begin(**run.facts() | {"deadline": time.time() + 60 * minutes, "minutes": minutes})
    file = Path(f"{trial}.json")
    words = ["repeats", "--plan", "plan.json", "--trial", str(trial), "--platforms", *platforms]
    words += ["--added", *map(str, before), "--output", str(file)]
    monkeypatch.setattr("sys.argv", words)
    repeats.main()
    known = written.read(Path("plan.json")).cells
    found = [known[key] for key in json.loads(file.read_text())["cells"]]
    return {(one.network, one.environment, one.repeat) for one in found}, file


def test_what_is_not_decided_is_measured_once_more_until_nothing_is_asked(
    plan, monkeypatch, capsys
):
    close = {(network, name, 4) for network in ("fcn5", "fcn8") for name in (TORCH, MXNET)}
    chosen, first = choose(monkeypatch, 4)
    assert chosen == close
    said = capsys.readouterr().err
    assert "after 3 trials, 2 of 9 pairs are not decided: 4 results" in said
    assert run.facts()["cells"] == 4 == len(run.facts()["work"])
    text = first.read_text()
    for each in chosen:
        measure(cell(*each))
    # The rows of later trials change nothing of what was chosen before them.
    assert choose(monkeypatch, 4) == (chosen, first) and first.read_text() == text
    assert run.facts()["cells"] == 4
    before = [first]
    for trial in range(5, 13):
        chosen, file = choose(monkeypatch, trial, *before)
        for each in chosen:
            measure(cell(*each))
        before.append(file)
    assert chosen == set() and run.facts()["deadline"] is None


def test_what_many_more_runs_would_not_decide_gets_none_and_that_is_said(plan, monkeypatch, capsys):
    monkeypatch.setattr(repeats, "further_runs", lambda pair: None)
    assert choose(monkeypatch, 4)[0] == set()
    said = capsys.readouterr().err
    assert "2 of 9 pairs are not decided, and 50 more runs of each would not decide them" in said


def test_the_pair_that_is_decided_soonest_has_the_minutes_that_are_left(plan, monkeypatch, capsys):
    left = (2 * LASTS["fcn5"] + repeats.TAIL + 5) / 60
    chosen, first = choose(monkeypatch, 4, minutes=left)
    assert chosen == {("fcn5", name, 4) for name in (TORCH, MXNET)}
    for each in chosen:
        measure(cell(*each))
    assert choose(monkeypatch, 5, first, minutes=0)[0] == set()
    assert "no further run fits into the minutes" in capsys.readouterr().err
    # What lies here already costs nothing.
    assert choose(monkeypatch, 4, minutes=left)[0] == chosen


def test_of_another_machine_what_it_has_measured_is_taken_and_nothing_asked(
    plan, monkeypatch, capsys
):
    measure(cell("fcn5", MXNET, 4))
    assert choose(monkeypatch, 4, platforms=())[0] == {("fcn5", MXNET, 4)}
    assert "more runs" not in capsys.readouterr().err


def test_a_grid_plans_further_cells_of_what_is_compared_and_refuses_what_means_nothing():
    loaded = configuration.load(ROOT, {"grid": "desktop"})
    plain = grid.expand(replace(loaded, grid=loaded.grid | {"repeats": 2}), 2)
    assert plain.looks == [] and grid.expand(loaded, 2).looks == [2, 3, 4, 5, 6, 7, 8]
    asked = {"least": 2, "most": 4, "minutes": 60}
    plan = grid.expand(replace(loaded, grid=loaded.grid | {"repeats": asked}), 2)
    assert plan.looks == [2, 3, 4] and plan.artefacts == plain.artefacts
    more = [cell for key, cell in plan.cells.items() if key not in plain.cells]
    assert {one.repeat for one in more} == {3, 4} and {one.task for one in more} == {"step"}
    assert {replace(one, repeat=1).key for one in more} <= set(plan.artefacts[COMPARED])
    with pytest.raises(configuration.ConfigurationError, match="asks for 2 runs .* 2 at the"):
        wrong = asked | {"most": 2}
        grid.expand(replace(loaded, grid=loaded.grid | {"repeats": wrong}), 2)


def test_a_user_s_minutes_take_the_place_of_the_grid_s_where_it_has_some():
    assert configuration.load(ROOT, {"minutes": 7}).grid["repeats"]["minutes"] == 7
    with pytest.raises(configuration.ConfigurationError, match="leave out 'minutes'"):
        configuration.load(ROOT, {"grid": "paper", "minutes": 7})


@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        ("steptime_ratios", "default"),
        ("compare", "default"),
        ("steptime_tuning", "desktop"),
        ("shi2016_table4", "desktop"),
        ("make_shi2016", "desktop"),
    ],
)
def test_what_the_default_has_not_is_made_of_the_wider_grid(target, chosen):
    assert configuration.load(ROOT, {}, asked=[target]).grid_name == chosen
    assert configuration.load(ROOT, {"grid": "ci"}, asked=[target]).grid_name == "ci"


def test_a_table_tells_of_further_runs_only_where_there_are_some():
    cells = pd.DataFrame({"status": "ok", "repeats": [2, 2], "looks": [[2, 4, 8]] * 2})
    assert "more runs" not in words.processes(cells)
    assert "1 result got more runs" in words.processes(cells.assign(repeats=[2, 4]))
