"""What a run says of its progress: when a trial of the grid has ended, its table and its page so far."""

import ast
import json
import os
import re
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import ROOT
from examples import CELL, MACHINE

from steptime import run
from steptime.cells import shard
from steptime.networks import written
from steptime.page import screen, so_far, summary
from steptime.plan.cell import key_of, shard_path
from steptime.run import estimate, progress
from steptime.say import doing

WORDS = {"frameworks": ["resources/papers/frameworks.yaml"], "networks": ["config/networks.yaml"]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_trial_ends_with_its_last_cell_and_nothing_is_said_after_the_last():
    """A run that goes on after an interrupt has fewer cells of its first trial than the grid."""
    run.begin(cells=5, stages={"trial 1 at 1 thread": 2, "trial 1": 3})
    progress.begin()
    ended = []
    for stages in (*2 * [["trial 1 at 1 thread", "trial 1"]], ["trial 1"], [], []):
        progress.report("a cell", "took a second", 1.0, stages, "")
        ended.append(progress.ended())
    assert ended == ["", "trial 1 at 1 thread", "trial 1", "", ""]


def test_the_last_trial_ends_where_other_cells_follow_such_as_trainings():
    run.begin(cells=3, stages={"trial 1": 2})
    progress.begin()
    progress.report("a cell", "took a second", 1.0, ["trial 1"], "")
    progress.report("a cell", "took a second", 1.0, ["trial 1"], "")
    assert progress.ended() == "trial 1"
    progress.report("a training", "took a minute", 60.0, [], "")
    assert progress.ended() == "" and not progress.goes_on()


def test_a_run_goes_by_the_networks_that_it_began_with(monkeypatch):
    """Its rows have the digests of those: an edit meanwhile would give them another network."""
    monkeypatch.setattr(run, "FILE", run.LAST)
    run.begin(entries={"net": {"label": "Net"}}, networks=[])
    Path("networks.yaml").write_text("net: {label: Edited}")
    of_file = written.of_run(Path("networks.yaml"))
    monkeypatch.setenv("STEPTIME_LAUNCH", "launch")
    assert written.of_run(Path("networks.yaml")) == {"net": {"label": "Net"}} != of_file


def test_a_run_without_trials_has_none_that_ends():
    run.begin(cells=1, stages=None)
    progress.begin()
    progress.report("a cell", "took a second", 1.0, ["trial 1"], "")
    assert progress.ended() == ""


def test_a_cell_is_of_its_trial_and_in_the_first_of_its_column_too():
    first = CELL | {"network": "fcn5", "dataset": "", "repeat": 1, "threads": 2}
    second = first | {"repeat": 2}
    shown = [key_of(first), key_of(second)]
    assert progress.stages_of(first, shown)[1:] == [
        "trial 1 at 2 threads of this machine",
        "trial 1",
    ]
    assert progress.stages_of(second, shown) == []
    assert progress.stages_of(first | {"batch": 7}, shown) == []


def test_cells_that_are_asked_for_on_the_way_are_counted():
    first = CELL | {"network": "fcn5", "dataset": "", "repeat": 4}
    run.begin(cells=6, stages={"trial 1": 6}, shown={"cells": [key_of(first)]})
    progress.expect([first, first | {"batch": 7}])
    assert run.facts()["cells"] == 8 and shard_path(key_of(first)) in run.facts()["work"]


@pytest.mark.parametrize("content", [None, "", "{", "[]", '[["cells", 4]]', "[" * 200_000])
def test_a_program_of_a_run_that_told_nothing_ends_with_a_sentence(monkeypatch, content):
    if content is not None:
        run.begin(cells=4)
        run.FILE.write_text(content)
    assert run.facts() == {}
    monkeypatch.setenv("STEPTIME_LAUNCH", "launch")
    with pytest.raises(SystemExit, match="leave out `--no-hooks`"):
        run.facts()


@pytest.fixture
def under_way():
    """A run whose first two cells of three were measured, by one process each; what it shows meanwhile."""
    cells = [
        CELL | {"network": network, "environment": name, "framework": name.partition("-")[0]}
        for network, name in (("fcn5", "torch-9.9"), ("fcn5", "mxnet-1.9"), ("fcn8", "mxnet-1.9"))
    ]
    keys = list(map(key_of, cells))
    footer = {"machine": MACHINE, "software": {"framework_version": "9.9.0"}, "worker": {}}
    for key, cell, seconds in zip(keys[:2], cells, (0.25, 0.5), strict=False):
        samples = [{"sample": number, "steps": 1, "seconds": seconds} for number in range(1, 6)]
        shard.write(Path(shard_path(key)), cell, samples, footer)
    data = WORDS | {"catalogue": ["resources/steptime/catalogue.yaml"]}
    jobs = [
        json.dumps({"artefact": f"steptime_{kind}", "facts": {}, "data": data})
        for kind in ("times", "ratios")
    ]
    shown = {"grid": "mine", "jobs": jobs, "cells": keys, "further": []}
    run.begin(began=time.monotonic(), cells=3, looks=[], shown=shown)
    return shown


def test_the_table_so_far_is_of_the_cells_that_are_there(under_way, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["page.so_far", "trial 1"])
    so_far.main()
    printed = capsys.readouterr().err
    assert "this machine, 1 thread" in printed and "250.0" in printed and "2.00×?" in printed
    page = "results/so_far/tables/steptime_times.html"
    assert "0.250" in Path(page).read_text() and not Path("results/tables").exists()
    assert "Not decided: 1 of 1 pair" in printed


def test_the_page_so_far_opens_with_the_answer_of_the_cells_that_are_there(under_way):
    so_far.show(under_way, [])
    text = so_far.PAGE.read_text()
    opening = text[: text.index('id="cells"')]
    assert "2 of 3 runs" in opening and '<meta http-equiv="refresh"' in opening
    assert f"{datetime.now(UTC):%Y-%m-%d}" in opening
    # One process of each shows nothing, and the page says so beside the numbers.
    assert "2.00 ×?" in opening
    assert "Not decided: 1 of 1 pair." in opening
    assert "2 results have one run so far" in opening and "FCN-8" not in text
    # Whatever it leads to lies in it or beside it.
    leads = re.findall(r'href="([^"]+)"', text)
    assert leads and all(
        f'id="{to[1:]}"' in text if to.startswith("#") else (so_far.FOLDER / to).exists()
        for to in leads
    )


def test_an_old_row_that_the_run_measures_anew_is_not_shown(under_way):
    first, second, _ = under_way["cells"]
    run.begin(**run.facts() | {"waiting": [first, second]})
    os.utime(shard_path(first), (1, 1))
    os.utime(shard_path(second))
    so_far.show(under_way, [])
    assert "1 of 3 runs" in so_far.PAGE.read_text()


def test_further_cells_count_where_they_are_measured(under_way):
    """An analysis may choose any cell for further trials, and chooses few."""
    further = [key.replace("-r1", f"-r{trial}") for key in under_way["cells"] for trial in (2, 3)]
    cells = {"cells": under_way["cells"] + further, "further": further}
    so_far.show(under_way | cells, [1, 3])
    assert "2 of 3 runs" in so_far.PAGE.read_text()


def test_a_run_names_the_page_once(under_way, monkeypatch, capsys):
    """One of a run before is none of this one's."""
    monkeypatch.setattr("sys.argv", ["page.so_far", ""])
    for _ in range(2):
        so_far.main()
    assert capsys.readouterr().err.count("results/so_far/index.html") == 1
    os.utime(so_far.PAGE, (1, 1))
    so_far.main()
    printed = capsys.readouterr().err
    assert "results/so_far/index.html" in printed and "fcn5" not in printed


@pytest.mark.parametrize(
    ("made", "leads"),
    [
        (["tables/steptime_times.html", "report/index.html"], "../report/index.html"),
        (["tables/steptime_times.html"], "../tables/steptime_times.html"),
        ([], None),
    ],
)
def test_what_a_run_has_made_takes_the_place_of_its_page(under_way, monkeypatch, made, leads):
    so_far.show(under_way, [])
    files = [f"results/{name}" for name in made]
    for file in files:
        Path(file).parent.mkdir(parents=True)
        Path(file).write_text("whole")
    ended = ["page.summary", "--succeeded", f"--table={under_way['jobs'][0]}", *files]
    monkeypatch.setattr("sys.argv", ended)
    progress.begin()
    summary.main()
    left = [path for path in Path("results/so_far").rglob("*") if path.is_file()]
    assert left == ([so_far.PAGE] if leads else [])
    if leads:
        assert f'content="0; url={leads}"' in so_far.PAGE.read_text()
        assert (so_far.FOLDER / leads).exists()


def test_a_page_that_raises_is_one_sentence(under_way, monkeypatch):
    monkeypatch.setattr(so_far, "merge", lambda *_, **__: [][0])
    with pytest.raises(SystemExit, match="not made .IndexError: list index out of range.; the run"):
        so_far.main()


def test_a_page_of_a_shard_that_is_gone_is_none(under_way):
    for path in Path("results/cells").rglob("*.parquet"):
        path.unlink()
    so_far.main()
    assert not so_far.PAGE.exists()


def test_a_killed_page_costs_no_shard():
    rule = (ROOT / "workflow/rules/measure.smk").read_text()
    shell = "true" + "".join(map(ast.literal_eval, rule[rule.index('" && due=') :].split("\n")[:2]))
    Path("killed").write_text("#!/bin/sh\necho $2 > after\nkill -9 $$\n")
    Path("killed").chmod(0o755)
    progress.DUE.parent.mkdir(parents=True)
    progress.DUE.write_text("trial 1")
    strict = ["bash", "-euo", "pipefail", "-c", shell.replace("        ", "")]
    own = os.environ | {"STEPTIME_LAUNCH": "./killed", "STEPTIME_RUN": ""}
    for _ in range(2):
        assert subprocess.run(strict, env=own).returncode == 0
    assert Path("after").read_text() == "trial 1\n" and not progress.DUE.exists()


def measured(repeats=3):
    """Two networks at two thread counts: torch is fastest on fcn5, mxnet equal on fcn8, jax has no time there."""
    times = {"torch-9.9": (0.1, 0.3), "mxnet-1.9": (0.2, 0.3), "jax-0.12": (0.5, None)}
    keys, footer = [], {"machine": MACHINE, "software": {"framework_version": "9"}, "worker": {}}
    for environment, seconds in times.items():
        for network, own in zip(("fcn5", "fcn8"), seconds, strict=True):
            for threads in (1, 2):
                for repeat in range(1, repeats + 1):
                    cell = CELL | {"environment": environment, "network": network}
                    cell |= {"framework": environment.partition("-")[0], "repeat": repeat}
                    cell |= {"threads": threads, "foreign_cpus": 0.9 if own == 0.2 else 0.0}
                    cell |= {"status": "crashed", "reason": "it fell"} if own is None else {}
                    off = own and own * (1 + 0.004 * (repeat + len(environment) % 2 * (repeat - 2)))
                    rows = [{"sample": at, "steps": 1, "seconds": off} for at in range(1, 7)]
                    keys.append(key_of(cell))
                    shard.write(Path(shard_path(keys[-1])), cell, rows[: 6 if own else 1], footer)
    return keys


def test_the_last_screen_is_the_answer_in_24_lines(under_way, monkeypatch, capsys):
    run.begin(
        began=time.monotonic(),
        cells=0,
        looks=[],
        grid="mine",
        shown=under_way,
        asked={"GRID": "mine"},
    )
    so_far.show(under_way | {"cells": measured()}, [])
    files = [Path("results/tables/steptime_times.html"), Path("results/report/index.html")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("whole")
    merged = Path("merged.parquet")
    merged.write_bytes((so_far.FOLDER / "merged.parquet").read_bytes())
    command = ["page.summary", "--succeeded", f"--table={under_way['jobs'][0]}"]
    monkeypatch.setattr("sys.argv", [*command, f"--cells={merged}", *map(str, files)])
    summary.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= screen.WIDEST, lines
    heading, *ordered = [line.split() for line in lines[1:5]]
    assert heading == ["this", "machine,", "2", "threads", "fcn5", "fcn8", "overall,", "of", "1"]
    assert [line[0] for line in ordered] == ["PyTorch", "MXNet", "JAX"]
    text = "\n".join(lines)
    assert re.search(r"PyTorch 9\.9\.0 +100\.8 +302\.4 ", text)
    assert re.search(r"JAX 9.* – ", text), text
    assert "\nOn 1 of 2 networks, PyTorch 9.9.0, MXNet 9.9.0 and JAX" in text
    assert "2 results disturbed by something else, as MXNet 9.9.0 on fcn5" in text
    assert "`make again GRID=mine`" in text and "Report: results/report/index.html" in text


def test_a_line_says_how_many_and_by_the_clock_when_all_is_done(capsys):
    cell = CELL | {"network": "fcn5"}
    keys = [key_of(cell | {"repeat": repeat, "threads": threads}) for repeat, threads in PLACES]
    guessed = dict.fromkeys(map(shard_path, keys), 10.0) | {"results/tables/a.parquet": 1.0}
    run.begin(cells=4, stages={}, work=guessed, kins={}, began=time.monotonic())
    progress.begin()
    progress.report("torch-9.9  fcn5", "120.8 ms ±1.0 %", 20.0, [], keys[0])
    assert re.match(
        r"\[1/4  done about (\w+ )?\d\d:\d\d\]  torch-9.9  fcn5  120.8", capsys.readouterr().err
    )


PLACES = [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_what_is_left_is_guessed_from_what_was_shown():
    """Another trial, thread count or mini-batch takes as many times its guess, another environment what all do."""
    cell = CELL | {"network": "fcn5-on-c"}
    cells = [cell | {"repeat": repeat, "threads": threads} for repeat, threads in PLACES]
    alien, longer = cell | {"environment": "mxnet-1.9"}, cell | {"batch": 7}
    kins = {shard_path(key_of(each)): estimate.kin(each) for each in (*cells, alien, longer)}
    keys = list(map(key_of, cells))
    guessed = {shard_path(key): seconds for key, seconds in zip(keys, (10, 5, 10, 5), strict=True)}
    assert estimate.left(guessed, kins, {}, 0.0) == 30.0
    Path(shard_path(keys[0])).parent.mkdir(parents=True)
    Path(shard_path(keys[0])).write_text("")
    assert estimate.left(guessed, kins, {keys[0]: 30.0}, 0.0) == 15.0 + 30.0 + 15.0
    other = shard_path(key_of(alien))
    assert 10.0 < estimate.left({**guessed, other: 10.0}, kins, {keys[0]: 30.0}, 0.0) - 60.0 < 30.0
    larger = shard_path(key_of(longer))
    assert estimate.left({**guessed, larger: 10.0}, kins, {keys[0]: 30.0}, 0.0) == 90.0
    # A file of a run before is made again.
    os.utime(shard_path(keys[0]), (1, 1))
    assert estimate.left(guessed, kins, {keys[0]: 30.0}, 2.0) == 30.0 + 60.0


def test_a_silent_run_says_what_its_programs_do(capsys):
    progress.begin()
    doing("making the environment torch-9.9")
    with progress.DOING.open("a") as file:
        file.write(json.dumps([2**22 + 1, time.time(), "what has ended"]) + "\n")
        file.write(json.dumps([os.getppid(), 1.0, "what has left its number to another"]) + "\n")
    assert progress.under_way() == "making the environment torch-9.9 (0 s)"
    os.utime(progress.DOING, (1, 1))
    progress.keep_talking()
    time.sleep(0.3)
    assert "    ... making the environment torch-9.9" in capsys.readouterr().err
