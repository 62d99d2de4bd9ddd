"""Two things compared: the answer, the verdicts, the exit status, and what means nothing."""

import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pandas as pd
import pytest
import yaml
from examples import MACHINE, NETWORKS, results_of
from today import TORCH

from steptime.cells import shard
from steptime.compare import results
from steptime.compare.sides import read
from steptime.say import WIDEST
from steptime.statistics.pairs import word
from steptime.statistics.verdicts import EQUAL, FASTER, NOT_DECIDED, SLOWER
from steptime.statistics.words import estimate, key

OTHER = MACHINE | {"cpu": {"model": "Another CPU", "logical_cores": 8}}


def run(monkeypatch, capsys, *arguments):
    """The exit status, what was printed, however its lines are broken, and what was complained."""
    monkeypatch.setattr(sys, "argv", ["compare.results", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        results.main()
    printed = capsys.readouterr()
    assert max(map(len, printed.out.splitlines()), default=0) <= WIDEST
    return ended.value.code, " ".join(printed.out.split()), printed.err


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("factor", "margin", "status", "said"),
    [
        (1.5, 0.02, 1, "by result (geometric mean of 4 results; 4 slower)"),
        (0.5, 0.02, 0, "is faster than torch-1.4 on local-cpu: it takes 0.5"),
        (1.0, 0.2, 0, "4 equal within 20 %"),
        (1.0, 0.001, 2, "No difference between torch-9.9 and torch-1.4 is shown"),
    ],
)
def test_the_answer_and_the_exit_status_follow_from_the_verdicts(
    monkeypatch, capsys, factor, margin, status, said
):
    results_of(Path("results"), {"torch-1.4": 1.0, "torch-9.9": factor})
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch-9.9", "--margin", margin)
    assert (code, said in out) == (status, True), out
    # All of the name: another comparison with torch-2.12 has files of its own.
    made = "results/compare/torch-1.4_torch-9.9"
    rows = pd.read_parquet(f"{made}.parquet")
    assert rows["ratio"].tolist() == pytest.approx([factor] * 4, rel=0.05)
    # Ready for a pull request: the answer is the heading.
    assert said in Path(f"{made}.md").read_text().splitlines()[0]
    assert Path(f"{made}.html").exists() and f"{made}.md, .html" in out


def test_a_cell_that_has_no_time_any_more_is_a_slowdown(monkeypatch, capsys):
    results_of(Path("results"), {"torch-1.4": 1.0, "torch-9.9": dict.fromkeys(NETWORKS, 0.5)})
    for path in Path("results").rglob("torch-9.9*fcn8*.parquet"):
        path.unlink()
    lost = {"fcn8": 0.0} | dict.fromkeys(set(NETWORKS) - {"fcn8"}, 0.5)
    results_of(Path("lost"), {"torch-9.9": lost}, status="crashed", reason="ended by SIGSEGV")
    for path in Path("lost").rglob("*fcn8*.parquet"):
        path.rename(Path("results") / path.relative_to("lost"))
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch-9.9")
    assert code == 1 and "3 faster, 1 without a time now" in out


def test_two_packs_are_compared_and_what_else_differs_is_told_first(monkeypatch, capsys, folder):
    results_of(folder / "one", {"torch-9.9": 1.0})
    other = results_of(folder / "two", {"torch-9.9": 2.0}, OTHER, start=9, machine_id="m2")
    with tarfile.open("two.tar.gz", "w:gz") as archive:
        archive.add(other, "results")
    code, out, _ = run(monkeypatch, capsys, "one", "two.tar.gz")
    answer, caveats = out.split(" Before you rely on it: ")
    assert code == 1 and answer.startswith(
        "two.tar.gz is slower than one on local-cpu: it takes 2."
    )
    assert "A CPU with 2 logical cores" in caveats and "Another CPU" in caveats
    assert "not measured in turn" in caveats


def test_one_environment_of_another_folder_is_chosen_after_a_colon(monkeypatch, capsys, folder):
    results_of(folder / "one", {"torch-9.9": 1.0, "torch-1.4": 3.0})
    results_of(folder / "results", {"torch-9.9": 1.5}, start=9)
    code, out, _ = run(monkeypatch, capsys, "one:torch-1.4", "torch-9.9")
    assert code == 0 and "faster than one:torch-1.4" in out and "4 faster" in out


def test_within_one_run_the_verdict_is_the_word_of_its_table(monkeypatch, capsys):
    """In the run a third framework was measured, and what is beside it was paid for there."""
    results_of(Path("results"), {"torch-1.4": 1.0, "torch-9.9": 1.5})
    cells = read(Path("results"), "here").cells
    said = estimate(cells)
    assert set(said.words.values()) == {"fastest", "slower"}
    first = {key(cell) for cell in cells[cells["network"] == NETWORKS[0]].to_dict("records")}
    pairs = [pair._replace(low=0.9) if pair.one in first else pair for pair in said.pairs]
    Path("results/statistics").mkdir()
    Path("results/statistics/desktop.json").write_text(
        json.dumps(said._replace(pairs=pairs).to_json())
    )
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch-9.9")
    assert code == 1 and "3 slower, 1 not decided" in out


def test_a_run_of_an_earlier_release_has_its_words_estimated(monkeypatch, capsys):
    results_of(Path("results"), {"torch-1.4": 1.0, "torch-9.9": 1.5})
    said = estimate(read(Path("results"), "here").cells).to_json()
    del said["pairs"]
    Path("results/statistics").mkdir()
    Path("results/statistics/desktop.json").write_text(json.dumps(said))
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch-9.9")
    assert code == 1 and "4 slower" in out


def test_steps_that_take_twice_as_long_are_in_the_verdict_though_in_no_median(monkeypatch, capsys):
    results_of(Path("results"), {"torch-1.4": 1.0, "torch-9.9": 1.0})
    for path in Path("results").rglob("torch-9.9*.parquet"):
        row, samples, known = shard.read_parts(path)
        rows = samples.to_pylist()
        for each in rows[::3]:
            each["seconds"] *= 2
        shard.write(path, row, rows, known)
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch-9.9", "--margin", 0.2)
    assert code == 1 and "4 slower" in out and "takes 1.3" in out and "[mean apart]" in out


def test_a_pair_with_fewer_than_30_steps_on_a_side_says_so(monkeypatch, capsys):
    """Blocks count by their steps, and the steps of all runs of a result count together."""
    results_of(Path("results"), {"torch-1.4": 1.0, "torch-9.9": 1.5})
    for path in Path("results").rglob("*.parquet"):
        row, samples, known = shard.read_parts(path)
        is_short = "torch-9.9" in path.name and "fcn8" in path.name
        rows = [each | {"steps": 1 if is_short else 2} for each in samples.to_pylist()]
        shard.write(path, row, rows, known)
    out = run(monkeypatch, capsys, "torch-1.4", "torch-9.9")[1]
    said = "Fewer than 30 steps were timed on one side of fcn8: a step that is slow now and then"
    assert said in out


@pytest.mark.parametrize("prefix", ["torch-9.9.", ""], ids=["of an environment", "of all"])
def test_two_modes_are_compared_trial_by_trial(monkeypatch, capsys, prefix):
    """What slowed a trial slowed both: here all that differs between their processes."""
    times = dict(zip(NETWORKS, (1.0, 2.0, 3.0, 4.0), strict=True))
    for mode, factor in (("eager", 1), ("compiled", 0.8)):
        results_of(
            Path("results"),
            {"torch-9.9": {network: factor * time for network, time in times.items()}},
            start=0.001 * factor,
            mode=mode,
        )
    code, out, _ = run(monkeypatch, capsys, f"{prefix}eager", f"{prefix}compiled")
    answer = f"{prefix}compiled is faster than {prefix}eager on local-cpu: it takes 0.800 ± 0.000 times as long"
    assert code == 0 and out.startswith(f"{answer}, 0.80 to 0.80 by result (")
    rows = pd.read_parquet(f"results/compare/{prefix}eager_{prefix}compiled.parquet")
    assert rows["network"].tolist() == list(NETWORKS)
    assert set(rows["one_mode"]) == {"eager"} and set(rows["other_mode"]) == {"compiled"}
    assert rows["one_seconds"].tolist() == pytest.approx(list(times.values()), rel=0.05)
    code, _, complaint = run(monkeypatch, capsys, "torch-9.9", "torch-9.9.eager")
    assert code == 2 and "torch-9.9 has several results for the same place" in complaint


def test_a_framework_is_its_first_environment(monkeypatch, capsys):
    results_of(Path("results"), {"torch-1.4": 1.0, TORCH: 0.5})
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch")
    assert code == 0 and out.startswith("torch is ") and " faster than torch-1.4 on " in out


def test_two_platforms_are_machines_of_their_own(monkeypatch, capsys):
    """Trials of two machines have nothing in common, whatever their numbers are."""
    entries = {"server": {"label": "Server", "device": "cpu", "cores": 8}}
    Path("mine.yaml").write_text(yaml.safe_dump(entries))
    times = {"torch-1.4": 3.0, "torch-9.9": 1.0}
    results_of(Path("results"), times)
    half = {name: seconds / 2 for name, seconds in times.items()}
    results_of(Path("results"), half, OTHER, platform="server", machine_id="m2")
    code, out, _ = run(monkeypatch, capsys, "local-cpu", "server", "--platforms", "mine.yaml")
    answer, caveats = out.split(" Before you rely on it: ")
    assert code == 0 and " faster than local-cpu: it takes " in answer
    assert "A CPU with 2 logical cores" in caveats and "Another CPU with 8" in caveats
    rows = pd.read_parquet("results/compare/local-cpu_server.parquet")
    assert (rows["one_environment"] == rows["other_environment"]).all() and len(rows) == 8
    assert rows["ratio"].tolist() == pytest.approx([0.5] * 8)
    # By pairs of trials, which are alike here, the interval would be nothing.
    assert (rows["ratio_high"] / rows["ratio_low"] > 1.02).all()
    assert set(rows["verdict"]) == {FASTER}


def test_what_means_nothing_is_refused_in_one_sentence(monkeypatch, capsys, folder):
    base = results_of(folder / "results", {"torch-9.9": 1.0, "torch-1.4": 1.0})
    results_of(folder / "region", {"torch-9.9": 1.0}, start=9, timed_region="forward,sync")
    results_of(folder / "larger", {"torch-9.9": 1.0}, start=9, parameters=2000)
    results_of(folder / "batch", {"torch-9.9": 1.0}, start=9, batch=8)
    (folder / "empty").mkdir()
    refused = {
        ("results:torch-9.9", "region"): "measure both alike",
        ("results:torch-9.9", "larger"): "fcn5 is another network there: 1,000 parameters in",
        ("results:torch-9.9", "batch"): "have no result in common",
        ("torch-9.9", "torch-9.9"): "are the same processes: name different ones",
        ("torch-9.9", "torch-9"): "no environment, framework, mode or platform 'torch-9'",
        ("results", "empty"): "empty has no timed result",
        ("results", "gone.tar.gz"): "there is no such file",
    }
    for sides, words in refused.items():
        code, _, complaint = run(monkeypatch, capsys, *sides)
        assert code == 2 and words in complaint and complaint.count("\n") == 1, (sides, complaint)
    (base / "proofs/torch-9.9.eager-fcn5.json").unlink()
    code, _, complaint = run(monkeypatch, capsys, "torch-9.9", "torch-1.4")
    assert code == 2 and "a time is worth no more than its proof" in complaint


@pytest.mark.parametrize(
    ("plain", "own", "lost"),
    [
        ({"proof_id": "p", "status": "not_equivalent"}, None, 1),
        ({"proof_id": "q", "status": "not_equivalent", "environment_digest": "e"}, None, 1),
        ({"proof_id": "q", "status": "not_equivalent"}, {"proof_id": "p", "status": "ok"}, 0),
        ({"proof_id": "q", "status": "ok"}, {"proof_id": "p", "status": "not_equivalent"}, 1),
    ],
    ids=["its own", "a stricter one", "another environment's", "its own beside another"],
)
def test_a_proof_that_refuses_a_network_takes_its_time(monkeypatch, capsys, plain, own, lost):
    base = results_of(Path("results"), {"torch-9.9": 1.0, "torch-1.4": 3.0}, environment_digest="e")
    (base / "proofs/torch-9.9.eager-fcn5.json").write_text(json.dumps(plain))
    if own:
        (base / "proofs/torch-9.9.eager-fcn5.p.json").write_text(json.dumps(own))
    code, out, _ = run(monkeypatch, capsys, "torch-1.4", "torch-9.9")
    assert (code, "1 without a time now" in out) == (lost, bool(lost)), out


def shard_of(root):
    return next(root.glob("cells/*/step/torch-9.9*fcn8*-r1.parquet"))


def say_nothing_of_the_machine(root):
    row, rows, known = shard.read_parts(shard_of(root))
    shard.write(shard_of(root), row, rows.to_pylist(), known | {"machine": {}})


def copy(root):
    shutil.copy(shard_of(root), shard_of(root).with_name("copy.parquet"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (copy, "copy.parquet holds the cell of"),
        (say_nothing_of_the_machine, "does not say on which machine"),
        (lambda root: (root / "proofs/torch-9.9.eager-fcn8.json").write_text("[]"), "no record"),
    ],
)
def test_what_lies_in_a_folder_and_cannot_be_is_one_sentence(monkeypatch, capsys, spoil, said):
    base = results_of(Path("results"), {"torch-9.9": 1.0, "torch-1.4": 3.0})
    spoil(base)
    code, _, complaint = run(monkeypatch, capsys, "torch-1.4", "torch-9.9")
    assert code == 2 and re.search(said, complaint) and complaint.count("\n") == 1, complaint


def test_a_word_follows_from_the_interval_beside_it():
    assert [word(*ends) for ends in ((1.001, 1.2), (0.9, 0.99), (0.94, 1.04), (0.99, 1.06))] == [
        SLOWER,
        FASTER,
        NOT_DECIDED,
        NOT_DECIDED,
    ]
    assert word(1.01, 1.04) == word(0.96, 1.02) == EQUAL
    assert word(0.96, 1.02, 0.02) == word(None, None) == NOT_DECIDED
