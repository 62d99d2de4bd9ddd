"""The papers' claims: what their own numbers say of them, what ours say, and what the language of claims refuses."""

import functools
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from examples import CELL, inputs

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.papers import agreement, catalogue, verdict
from steptime.artefacts.results import threads
from steptime.claims import answers, checks, evidence, so_far
from steptime.claims.checks import FAILS, HOLDS, NOT_ASKED, UNDECIDED, UNKNOWN, check
from steptime.claims.expressions import evaluate, names_in, tells_seconds
from steptime.claims.functions import HIGH, LOW, NUMBERS, PLACE, ExpressionError, Scope
from steptime.claims.papers import Paper, read_papers
from steptime.merge import trainings
from steptime.merge.measured import read_measured
from steptime.merge.others import Grid
from steptime.merge.trainings import Trained
from steptime.reading import InputError
from steptime.render.frameworks import Frameworks

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "resources/papers"
FRAMEWORKS = Frameworks(PAPERS / "frameworks.yaml")
NETWORKS = ROOT / "config/networks.yaml"
FILES = list(PAPERS.glob("*/*"))
CATALOGUE = yaml.safe_load(NETWORKS.read_text())
SO_FAR = checks.SO_FAR[HOLDS]

# Contradictions within the papers that were found by reading, and calculations of theirs that are right.
KNOWN = dict.fromkeys(
    """gpu-lstm32-tensorflow-8x-cntk gpu-100x-16-cores cpu-alexnet-torch-empty-cells cpu-rnn-torch-best
    cpu-rnn-torch-12x-tensorflow laptop-8-cores cntk-fastest-cifar10-few-threads k40-highest-images-per-joule
    compatibility-gpus-asics-fpgas gpu-always-faster-than-cpu cpu-caffe-best-parallelisation-speedup
    gpu-speed-corresponds-to-flops-k80 rnn-batches-hold-512 cpu-alexnet-slightly-faster-with-cores
    cntk-alone-on-several-gpus cntk-alone-on-several-machines""".split(),
    FAILS,
)
KNOWN |= dict.fromkeys(
    """gpu-112x-4-cores transfer-one-gpu transfer-every-gpu transfer-three-gpus transfer-effective-share
    cntk-superior-in-most cpu-alexnet-caffe-own-best-to-cores""".split(),
    HOLDS,
)
# A level without a place, and mini-batches that Table 4 has not: no number is no number that is too small.
KNOWN |= dict.fromkeys(
    """asics-most-efficient gpu-resnet50-cntk-crashes-from-32 gpu-resnet50-torch-all-but-64
    gpu-resnet50-not-from-32-on-gtx980""".split(),
    UNKNOWN,
)


@functools.cache
def read():
    return read_papers(FILES)


# Claims that are asked of the specifications of networks, without any time.
OF_NETWORKS = {
    each["id"]
    for paper in read()
    for each in paper.findings
    if re.search(r"(parameters|layers)\(", each.get("ours", each.get("value", "")))
}


def checked(*claims, papers=None, measured=(), trained=None, only="", parts=(), others=()):
    """What is said of these claims, or of all, by their ids."""
    papers = papers or read()
    if claims:
        chosen = [[each for each in paper.findings if each["id"] in claims] for paper in papers]
        papers = [replace(paper, findings=own) for paper, own in zip(papers, chosen, strict=True)]
    own = Grid("", list(measured), list(parts), trained or Trained.nothing())
    made = answers.build(papers, [own, *others], FRAMEWORKS, CATALOGUE, only)
    return made.set_index("id")


@functools.cache
def as_printed():
    return checked()


def planted(file, row, column, value):
    """The papers with one printed number of shi2016 replaced."""
    papers = []
    for paper in read():
        printed = paper.printed.copy()
        place = (printed["file"] == file) & (printed["row"] == row) & (printed["column"] == column)
        if paper.name == "shi2016":
            assert place.sum() == 1
            printed.loc[place, ["value", "number"]] = str(value), value
        papers.append(Paper(paper.name, paper.catalogue, printed, paper.findings))
    return papers


def test_the_contradictions_of_the_papers_come_out_by_themselves():
    verdicts = as_printed()["theirs_verdict"]
    assert {name: verdicts[name] for name in KNOWN} == KNOWN
    assert verdicts.index.is_unique and len(verdicts) >= 175
    assert set(verdicts) == {HOLDS, FAILS, UNKNOWN}
    # What a network here has of parameters is known without any time.
    ours = as_printed()["ours_verdict"]
    assert set(ours.drop(OF_NETWORKS)) == {UNKNOWN, NOT_ASKED}
    assert ours["resnet50-3.8-billions"] == FAILS
    other = as_printed().loc["cntk-alone-on-several-machines"]
    assert other["theirs_numbers"] == "15 (with numbers of Dai and Berleant 2019)"
    assert verdict.in_short(other) == "not by the numbers of Dai and Berleant 2019"


@pytest.mark.parametrize(
    ("row", "column", "value", "finding", "before", "after"),
    [
        ("AlexNet TF", "G.1080", 0.020, "gpu-112x-4-cores", HOLDS, FAILS),
        ("FCN-8 TF", "Desktop CPU 8", 2.5, "cpu-fcn8-tensorflow-1.9s", HOLDS, FAILS),
        ("AlexNet TF", "Server CPU 16", 1.2, "gpu-100x-16-cores", FAILS, HOLDS),
        ("ResNet-50 Caffe", "G.980", 0.3, "gpu-resnet50-caffe-not-on-gtx980", HOLDS, FAILS),
    ],
)
def test_a_planted_number_turns_the_verdict(row, column, value, finding, before, after):
    assert as_printed().loc[finding, "theirs_verdict"] == before
    found = checked(finding, papers=planted("table4", row, column, value))
    assert found.loc[finding, "theirs_verdict"] == after


def cell(framework, network, threads, seconds, **changes):
    environment = {"torch": "torch-9.9", "tensorflow": "tensorflow-2.21"}.get(
        framework, f"{framework}-1.0"
    )
    row = CELL | {"environment": environment, "framework": framework, "framework_version": "1"}
    row |= {"mode": "graph", "network": network, "threads": threads, "batch": 128, "sample": 0}
    row |= {"status": "ok" if seconds else "crashed", "seconds": seconds}
    return row | {"started_at": "2026-01-02T03:04:05+00:00"} | changes


MACHINE = {"cpu": {"physical_cores": 4, "logical_cores": 8}}


def merged(path, *cells):
    table = pa.Table.from_pandas(pd.DataFrame([*cells]))
    known = {"machines": {"m1": MACHINE}, "software": {}, "resources": {}, "missing": []}
    pq.write_table(table.replace_schema_metadata({b"steptime": json.dumps(known).encode()}), path)
    return path


def measured(path, *cells, alone=False):
    """What was measured, each cell by two processes that agree where none says which it is."""
    if not alone and {cell["repeat"] for cell in cells} == {1}:
        cells += tuple(cell | {"repeat": 2} for cell in cells)
    return read_measured(merged(path, *cells))


def trained(path, *rows):
    """Trainings of one epoch and seed on a subset of MNIST, as `merge.cells` joins them."""
    facts = {"task": "training", "dataset": "mnist-5k", "batch": 128}
    facts |= {"dataset_label": "MNIST, 5,000", "whole_dataset": "mnist", "epoch": 1, "seed": 1}
    facts |= {"stopped": "accuracy", "accuracy": 0.95, "target_accuracy": 0.95}
    return trainings.read(
        merged(
            path, *(cell(name, "mnist", 2, seconds, **facts | more) for name, seconds, more in rows)
        )
    )


def test_ours_are_asked_the_same_of_the_same_frameworks(tmp_path):
    cells = [cell("torch", "lstm32", 1, 2.0), cell("tensorflow", "lstm32", 1, 1.0)]
    # A faster mode stands for its framework; a variant and another number of threads stand for nothing.
    cells += [cell("torch", "lstm32", 1, 0.5, mode="compiled"), cell("torch", "lstm32", 4, 9.0)]
    cells += [cell("tensorflow", "lstm32", 1, 0.1, variant="lstm32-table2")]
    claims = "cpu-rnn-torch-best gtx1080-always-best cpu-rnn-cntk-much-faster transfer-one-gpu"
    found = checked(*claims.split(), measured=[measured(tmp_path / "merged.parquet", *cells)])
    best = found.loc["cpu-rnn-torch-best"]
    assert (best["today_verdict"], best["today_least"], best["today_count"]) == (SO_FAR, 0.5, 1)
    # Who is missing: frameworks, and the network that those who are there lack.
    assert best["today_numbers"] == "0.500; without CNTK, TensorFlow on LSTM-64, Torch on LSTM-64"
    assert (
        found.loc["gtx1080-always-best", "today_numbers"] == "it compares machines of the paper's"
    )
    assert found.loc["cpu-rnn-cntk-much-faster", "today_verdict"] == UNKNOWN
    assert found.loc["transfer-one-gpu", "today_verdict"] == NOT_ASKED


def test_a_claim_is_undecided_where_the_intervals_of_its_times_allow_both(tmp_path):
    def asked(*seconds):
        cells = [
            cell(name, "lstm32", 1, each * how, repeat=repeat)
            for name, each in (("torch", 1.0), ("tensorflow", 1.3))
            for repeat, how in enumerate(seconds, 1)
        ]
        known = [measured(tmp_path / "merged.parquet", *cells)]
        return checked("cpu-rnn-torch-best", measured=known).loc["cpu-rnn-torch-best"]

    assert asked(0.99, 1.0, 1.01)["today_verdict"] == SO_FAR
    wide = asked(0.6, 1.0, 1.5)
    assert (wide["today_verdict"], wide["today_numbers"]) == (UNDECIDED, "0.769")
    assert verdict.in_short(dict(wide) | {"theirs_verdict": FAILS}) == (
        "not by its own numbers, undecided here, with today's versions"
    )


def test_the_platform_of_a_claim_is_any_machine_of_ours_of_its_kind(tmp_path):
    cells = [
        cell("tensorflow", "alexnet", threads, seconds, batch=16)
        for threads, seconds in ((8, 1.0), (4, 2.0), (16, 9.0))
    ]
    known = [measured(tmp_path / "merged.parquet", *cells)]
    found = checked("cpu-alexnet-tensorflow-8-on-4", measured=known)
    # Twice as many threads as this machine's 4 physical cores, divided by as many; 16 are nothing of both.
    assert found.loc["cpu-alexnet-tensorflow-8-on-4", "today_numbers"] == "0.500"


def test_times_of_another_mini_batch_than_the_papers_answer_no_claim_that_names_none(tmp_path):
    cells = [
        cell("torch", "lstm32", 1, 1.0, batch=16),
        cell("tensorflow", "lstm32", 1, 2.0, batch=16),
    ]
    known = [measured(tmp_path / "merged.parquet", *cells)]
    found = checked("cpu-rnn-torch-best", measured=known)
    assert found.loc["cpu-rnn-torch-best", "ours_verdict"] == UNKNOWN


def test_the_nearest_version_stands_for_the_papers_and_todays_is_told_beside_it(tmp_path):
    old = {"environment": "tensorflow-0.12", "mode": "graph"}
    gone = {"environment": "torch7-7.0", "mode": "eager", "status": "install_failed"}
    cells = [
        cell("tensorflow", "lstm32", 1, 9.0, **old),
        cell("tensorflow", "lstm32", 1, 1.0),
        cell("torch", "lstm32", 1, 2.0),
        # What does not install is not there, and no dash.
        cell("torch7", "lstm32", 1, None, **gone),
    ]
    known = [measured(tmp_path / "merged.parquet", *cells)]
    found = checked("cpu-rnn-torch-best", measured=known).loc["cpu-rnn-torch-best"]
    # PyTorch stands for Torch among today's, and nowhere else; one counter-example refutes, whoever is missing.
    assert (found["ours_verdict"], found["today_verdict"]) == (UNKNOWN, FAILS)
    assert found["today_asked"] == "tensorflow-2.21.graph, torch-9.9.graph"
    assert verdict.in_short(found) == "holds nowhere, with today's versions"


@pytest.mark.parametrize(
    ("name", "asked", "says"),
    [
        ("shi2016", "tensorflow-0.12.graph (grid a)", "TensorFlow 0.12 for 0.9.0"),
        ("shatnawi2018", "keras-2.0.5.tensorflow", "Keras 2.0.5 for TensorFlow 1.2.0"),
        ("wuensche2018", "torch7-7.0.eager", "Torch 7.0"),
        ("shi2016", "", "none was measured"),
    ],
)
def test_the_heading_says_which_version_answers_for_which(name, asked, says):
    paper = next(paper for paper in read() if paper.name == name)
    known = inputs(catalogue=paper.catalogue)
    column, _ = verdict._ours(pd.DataFrame({"ours_asked": [asked]}), known)
    assert column.heading == f"By ours of its time ({says})"


def test_a_version_nearest_to_the_papers_on_cpus_hides_no_times_of_gpus(tmp_path):
    gpu = {"environment": "cntk-2.7-cuda", "platform": "gpu", "device": "gpu"}
    cells = [
        cell("cntk", "lstm32", 1, 2.0, environment="cntk-2.5.1"),
        # One version represents its framework at all thread counts of a device.
        cell("cntk", "lstm32", 1, 1.0, environment="cntk-2.7"),
        cell("cntk", "lstm32", 2, 0.6, environment="cntk-2.7"),
        cell("cntk", "lstm32", 1, 0.1, **gpu),
    ]
    paper = next(paper for paper in read() if paper.name == "shi2016")
    known = evidence.measured_times([Grid(steps=[measured(tmp_path / "merged.parquet", *cells)])])
    chosen = evidence.our_times(paper, known, FRAMEWORKS)
    assert list(chosen["runner"]) == ["cntk-2.5.1.graph", "cntk-2.7-cuda.graph"]
    today = evidence.our_times(paper, known, FRAMEWORKS, today=True)
    assert list(today["seconds"]) == pytest.approx([1.0, 0.6, 0.1])


def test_all_that_was_measured_counts_whatever_grid_measured_it(tmp_path):
    own = measured(tmp_path / "own.parquet", cell("torch", "lstm32", 1, 1.0))
    rows = [cell("tensorflow", "lstm32", 1, 2.0), cell("torch", "lstm32", 1, 9.0)]
    rows = [row | {"repeat": repeat} for row in rows for repeat in (1, 2, 3)]
    # What this grid has too counts once, of the grid with more processes.
    rows[3]["status"] = rows[4]["status"] = "crashed"
    other = Grid("shi2016", [measured(tmp_path / "other.parquet", *rows)])
    found = checked("cpu-rnn-torch-best", measured=[own], others=[other]).loc["cpu-rnn-torch-best"]
    assert (found["today_verdict"], found["today_least"]) == (SO_FAR, 0.5)
    assert found["today_asked"] == "torch-9.9.graph; tensorflow-2.21.graph (grid shi2016)"


def test_a_claim_on_trainings_is_never_answered_by_step_times_nor_the_other_way_round(tmp_path):
    names = ("cntk", "tensorflow", "theano")
    steps = [
        cell(name, network, 2, 1.0, batch=128)
        for name in names
        for network in ("fcn5", "mnist", "cifar10")
    ]
    findings = {paper.name: paper.findings for paper in read()}
    claims = {each["id"]: each.get("value", "") for each in findings["shatnawi2018"]}
    own = [
        name
        for name, value in claims.items()
        if re.search("time|used", value) and not re.search("shi-|bahrampour|chintala", name)
    ]
    of_steps = checked(*own, measured=[measured(tmp_path / "steps.parquet", *steps)])
    assert len(own) > 10 and set(of_steps["ours_verdict"]) == {UNKNOWN}

    rows = [(name, 4.0**at, {}) for at, name in enumerate(names)]
    of_shi = {each["id"] for each in findings["shi2016"]} - OF_NETWORKS
    of_trainings = checked(
        *("theano-slowest", "cntk-fastest-mnist-cpu", *of_shi),
        trained=trained(tmp_path / "trainings.parquet", *rows),
    )
    assert of_trainings.loc["theano-slowest", "today_verdict"] == SO_FAR
    assert of_trainings.loc["cntk-fastest-mnist-cpu", "today_least"] == 0.25
    assert set(of_trainings.loc[[*of_shi], "ours_verdict"]) == {UNKNOWN, NOT_ASKED}


def test_what_trainings_use_is_asked_where_the_paper_has_no_number(tmp_path):
    used = {"cntk": (1.9, 2e9), "tensorflow": (1.89, 1e9), "theano": (1.0, 1e9)}
    claims = (
        "cpu-utilisation-theano-lowest cntk-tensorflow-use-all-cpus memory-close accuracies-close"
    )

    def asked(*factors):
        rows = [
            (name, 1.0, dict(effective_threads=how * cpus, peak_memory_bytes=memory, repeat=at))
            for (name, (cpus, memory)), (at, how) in product(used.items(), enumerate(factors, 1))
        ]
        return checked(*claims.split(), trained=trained(tmp_path / "trainings.parquet", *rows))

    found = asked(1.0, 1.0)
    assert found.loc["cpu-utilisation-theano-lowest", "theirs_verdict"] == UNKNOWN
    assert found.loc["cpu-utilisation-theano-lowest", "today_verdict"] == HOLDS
    assert found.loc["cntk-tensorflow-use-all-cpus", "today_verdict"] == HOLDS
    assert found.loc["memory-close", ["today_verdict", "today_most"]].tolist() == [FAILS, 2.0]
    # Each training stops at the accuracy that it is asked for: a check could not fail.
    assert found.loc["accuracies-close", "today_verdict"] == UNKNOWN
    # Of one process, or of two that differ, nobody knows.
    for factors in ((1.0,), (0.9, 1.1)):
        found = asked(*factors)["today_verdict"]
        assert found["cntk-tensorflow-use-all-cpus"] == UNDECIDED


def test_what_variants_of_a_network_reach_is_asked_after_as_many_epochs(tmp_path):
    """One has an epoch more than the others, which does not count."""
    losses = {"0001": 2.3, "001": 0.6, "01": 0.5, "1": 0.55, "10": 1.4}
    rows = [
        ("torch", 1.0, {"variant": f"mnist-start-{bound}", "test_loss": loss, "accuracy": 0.9})
        for bound, loss in losses.items()
    ]
    late = {"variant": "mnist-start-001", "test_loss": 0.1, "accuracy": 0.99, "epoch": 2}
    known = trained(tmp_path / "all.parquet", *rows, ("torch", 1.0, late))
    found = checked("start-values-near-0.1", "shallow-loses-accuracy", trained=known)
    claim = found.loc["start-values-near-0.1"]
    assert claim["theirs_verdict"] == UNKNOWN and claim["ours_verdict"] == HOLDS
    assert claim["ours_least"] == pytest.approx(0.55 / 0.5)
    assert found.loc["shallow-loses-accuracy", "ours_numbers"] == "mnist-deep was not trained"


def test_seconds_on_their_machine_are_not_asked_of_ours(tmp_path):
    cells = [
        cell("tensorflow", "fcn8", 8, 1.0, batch=64),
        cell("torch", "alexnet", 1, 1.0, batch=16),
    ]
    claims = ("cpu-fcn8-tensorflow-1.9s", "cpu-alexnet-3s", "cpu-torch-400s")
    found = checked(*claims, measured=[measured(tmp_path / "merged.parquet", *cells)])
    for name in claims:
        assert found.loc[name, "ours_numbers"] == answers.THEIR_MACHINE
    assert tells_seconds("mean(time(network='fcn5'), over='threads')")
    assert not tells_seconds("time(threads=1) / least(others(framework='caffe'))")


def test_places_that_were_not_measured_are_no_dashes(tmp_path):
    crashed = [cell("caffe", network, 1, None) for network in ("lstm32", "lstm64")]
    claim = "caffe-no-lstm"
    both = checked(claim, measured=[measured(tmp_path / "both.parquet", *crashed)])
    assert both.loc[claim, "ours_verdict"] == HOLDS
    one = checked(claim, measured=[measured(tmp_path / "one.parquet", *crashed[:1])])
    assert one.loc[claim, "ours_numbers"] == "1 of 2 places were not measured"


def test_who_stands_for_a_framework_says_nothing_of_what_it_cannot_do(tmp_path):
    claim = "cpu-fcn-caffe-torch-not-above-cores"
    cells = [cell("torch", network, 8, 1.0, batch=64) for network in ("fcn5", "fcn8")]
    cells += [each | {"framework": "caffe", "environment": "caffe-1.0"} for each in cells]
    found = checked(claim, measured=[measured(tmp_path / "merged.parquet", *cells)]).loc[claim]
    assert found["ours_numbers"] == "2 of 4 places were not measured"
    assert found["today_numbers"] == "what torch can do says nothing of another framework"


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "time.__class__",
        "(lambda: 1)()",
        "[x for x in [1]]",
        "open('/etc/hostname')",
        "number('table4', 'FCN-5', 'nowhere')",
        "time(colour='red')",
        "time(threads='3 cores')",
        "used('disk')",
        "time(",
        "least()",
    ],
)
def test_what_is_not_of_the_language_is_refused(expression):
    paper = read()[-1]
    empty = pd.DataFrame(columns=[*PLACE, "device", "cores", "runner", "seconds"])
    with pytest.raises(ExpressionError):
        evaluate(expression, Scope(paper.name, empty, paper.printed, CATALOGUE, {}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"valeu": "1"}, "there is no key 'valeu'"),
        ({"above": 1}, "write 'value' with one of"),
        ({"value": "tally('table4')"}, "write 'value' with one of"),
        ({"value": "tally('table9')", "above": 1}, "shi2016/table9.csv has no rows"),
        ({"value": "tally('table4')", "above": 1, "weight": 9}, "the weight 9 is not possible"),
        ({"value": "1", "above": 1, "paper": "doe1999"}, "there is no paper 'doe1999'"),
    ],
)
def test_a_mistake_in_a_finding_is_one_sentence(tmp_path, change, says):
    for folder in PAPERS.iterdir():
        if folder.is_dir():
            (tmp_path / folder.name).symlink_to(folder)
    (tmp_path / "shi2016").unlink()
    (tmp_path / "shi2016").mkdir()
    for path in (PAPERS / "shi2016").iterdir():
        if path.name != "findings.yaml":
            (tmp_path / "shi2016" / path.name).symlink_to(path)
    wrong = {"id": "wrong", "section": "1", "claim": "Wrong."} | change
    (tmp_path / "shi2016/findings.yaml").write_text(yaml.safe_dump([wrong]))
    with pytest.raises(InputError, match="findings.yaml, wrong: ") as raised:
        checked(papers=read_papers(list(tmp_path.glob("*/*"))))
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_a_paper_without_printed_numbers_and_claims_is_no_mistake(tmp_path):
    (tmp_path / "doe2020").mkdir()
    (tmp_path / "doe2020/paper.yaml").write_text(
        "{short: Doe 2020, citation: Doe, times: table1, artefacts: {}}"
    )
    papers = read_papers(list(tmp_path.glob("*/*")))
    assert papers[0].findings == [] and checked(papers=papers).empty
    assert evidence.their_times(papers[0], FRAMEWORKS).empty


def test_orders_agree_as_far_as_the_frameworks_are_the_same(tmp_path):
    # The processes of one framework differ by a tenth, its samples by a thousandth: torch and cntk are not told apart.
    orders = {"caffe": 1.0, "torch": 1.95, "cntk": 2.0, "tensorflow": 8.0}
    cells = [
        cell("torch", "fcn5", 1, seconds * (1 + process) * (1 + sample / 1000), sample=sample)
        | {"framework": name, "environment": name, "repeat": repeat}
        for name, seconds in orders.items()
        for repeat, process in enumerate((0, 0.1, -0.1) if name == "cntk" else (0, 0.01, -0.01))
        for sample in range(6)
    ]
    cells += [cell("torch", "alexnet", 1, 1.0), cell("tensorflow", "alexnet", 1, 2.0)]
    known = measured(tmp_path / "merged.parquet", *cells, alone=True)
    data, layout = agreement.table(inputs(measured=known, paths=lambda word: FILES))
    found = data[data["paper"] == "shi2016"].set_index("network")
    # Theirs, shortest over machines and threads: Caffe, Torch, CNTK, TensorFlow.
    assert found.loc["fcn5", "our_order"] == found.loc["fcn5", "their_order"]
    assert found.loc["fcn5", "tau"] == 1
    pairs = ["same_pairs", "decided_pairs", "pairs"]
    assert found.loc["fcn5", pairs].tolist() == [5, 5, 6]
    # The authors' script of TensorFlow times more than the others'.
    assert found.loc["fcn5", "apart_pairs"] == 3
    # Of one process each, nothing is known of how much processes differ.
    assert found.loc["alexnet", pairs].tolist() == [0, 0, 1]
    assert found.loc["alexnet", "no_tau"] == "too few: 2 frameworks in common"
    assert found.loc["every network", "points"] == 6
    assert all(entry.footnotes for row in layout.to_numpy() for entry in row if entry.text == "–")


def test_the_catalogue_says_what_is_not_made_and_why():
    targets = {
        f"{paper.name}_{name}": {"state": "made", "cells": 3}
        for paper in read()
        for name in paper.catalogue["artefacts"]
    }
    facts = {"targets": {"targets": targets, "grid": "desktop"}}
    data, layout = catalogue.table(inputs(paths=lambda word: FILES, facts=facts))
    missing = data[data["state"] == catalogue.NOT_MADE]
    assert len(data) == len(layout) and 0 < len(missing) < len(data)
    assert layout.index.is_unique
    assert (missing["why"] != "").all() and (data.drop(missing.index)["target"] != "").all()


def test_one_framework_alone_is_close_to_nobody_and_one_side_alone_is_no_best(tmp_path):
    rows = [("tensorflow", 1.0, {"effective_threads": 1.0, "peak_memory_bytes": 1e9})]
    alone = checked("memory-close", trained=trained(tmp_path / "trainings.parquet", *rows))
    assert alone.loc["memory-close", "today_numbers"] == "only one framework has times there"
    cells = [cell("torch", "alexnet", threads, 4 / threads, batch=16) for threads in (1, 4, 8)]
    for known, verdict_of_it in ((cells[:2], SO_FAR), (cells, FAILS)):
        claim = "cpu-threads-equal-to-cores"
        found = checked(claim, measured=[measured(tmp_path / "steps.parquet", *known)])
        assert found.loc[claim, "today_verdict"] == verdict_of_it


def test_a_claim_on_single_products_is_asked_of_products_alone(tmp_path):
    product = {"task": "products", "part": "64 x 2048 x 2048", "role": "forward", "batch": 64}
    steps = measured(tmp_path / "steps.parquet", cell("torch", "fcn5", 1, 1.0, batch=64))
    claims = ("gpu-sgemm-transposed-3x", "update-in-one-product-faster")
    # Its claim is of GPUs.
    for device, said in (("cpu", UNKNOWN), ("gpu", HOLDS)):
        place = product | {"device": device, "platform": device}
        rows = [cell("torch", "fcn5", 1, s, way=w, **place) for w, s in (("NN", 1.0), ("NT", 3.0))]
        parts = [measured(tmp_path / "products.parquet", *rows)]
        found = checked(*claims, measured=[steps], parts=parts)
        assert found.loc["gpu-sgemm-transposed-3x", "ours_verdict"] == said
    assert found.loc["update-in-one-product-faster", "ours_verdict"] == UNKNOWN


def test_several_devices_answer_the_claims_that_speak_of_them_and_no_other(tmp_path):
    on_cpus = {"devices": 2, "exchange": "sync", "batch": 64}
    gpu = {"device": "gpu", "platform": "gpu"}
    two = on_cpus | gpu
    cells = [cell("torch", "fcn5", 1, 1.0, batch=64, **gpu), cell("torch", "fcn5", 1, 0.9, **two)]
    claims = "two-gpus-torch-tensorflow-10-percent more-gpus-can-be-slower".split()
    claims += "asynchronous-slightly-faster first-clusters-help-most threads-gain-to-cores".split()
    found = checked(*claims, measured=[measured(tmp_path / "merged.parquet", *cells)])
    claim = found.loc["two-gpus-torch-tensorflow-10-percent"]
    assert (claim["today_verdict"], claim["today_least"]) == (SO_FAR, pytest.approx(10))
    assert found.loc["more-gpus-can-be-slower", "today_verdict"] == checks.SO_FAR[FAILS]
    # One that does not wait is faster here, and stands for no other.
    apart = cell("torch", "fcn5", 1, 0.5, **two | {"exchange": "async"})
    groups = cell("torch", "fcn5", 1, 0.1, **two | {"devices": 4, "exchange": "mixed"})
    made = measured(tmp_path / "apart.parquet", *cells, apart, groups)
    found = checked(*claims, measured=[made])
    claim = found.loc["two-gpus-torch-tensorflow-10-percent"]
    assert claim["today_least"] == pytest.approx(10)
    claim = found.loc["asynchronous-slightly-faster"]
    assert (claim["today_verdict"], claim["today_least"]) == (HOLDS, pytest.approx(0.5 / 0.9))
    assert found.loc["first-clusters-help-most", "today_verdict"] == UNKNOWN
    # Processes on CPUs answer no claim on GPUs, nor do those of two devices one on threads.
    alone = [cell("torch", "fcn5", threads, 1.0 / threads, **on_cpus) for threads in (1, 4)]
    alone += [cell("torch", "fcn5", 1, 1.0, batch=64)]
    found = checked(*claims, measured=[measured(tmp_path / "two.parquet", *alone)])
    assert set(found["today_verdict"]) == {UNKNOWN}


def test_threads_are_drawn_of_one_device_alone(tmp_path):
    two = {"devices": 2, "exchange": "sync", "batch": 64}
    cells = cell("torch", "fcn5", 4, 1.0, batch=64), cell("torch", "fcn5", 1, 2.0, **two)
    files = {"catalogue": PAPERS / "wuensche2018/paper.yaml", "networks": NETWORKS}
    files |= {"frameworks": PAPERS / "frameworks.yaml"}
    files |= {"every_cell": merged(tmp_path / "merged.parquet", *cells)}
    paths = {word: [str(path)] for word, path in files.items()}
    paths["papers"] = list(map(str, PAPERS.glob("*/*")))
    data, _ = threads.figure(Inputs("wuensche2018_threads", paths, {}))
    assert data.loc[data["source"] == "ours", "threads_per_core"].tolist() == [1.0]


def test_a_time_of_one_version_is_never_divided_by_that_of_another(tmp_path):
    old = {"environment": "torch7-7.0", "mode": "eager", "batch": 64}
    cells = [cell("torch7", "fcn5", 1, 4.0, **old)]
    cells += [cell("torch", "fcn5", threads, 1.0 / threads, batch=64) for threads in (1, 2)]
    claim = "threads-gain-to-cores"
    found = checked(claim, measured=[measured(tmp_path / "merged.parquet", *cells)])
    claim = found.loc[claim]
    assert (claim["ours_verdict"], claim["today_verdict"]) == (UNKNOWN, SO_FAR)
    assert claim["today_most"] == 2


def test_what_is_missing_is_named_whole_and_a_number_beside_its_bound_is_on_its_side():
    wanted = {*product(["cntk"], ["cifar10", "mnist"], [False, True])}
    said = so_far.named(
        wanted - {("cntk", "mnist", False)}, wanted, so_far.Names(FRAMEWORKS, CATALOGUE, {})
    )
    assert said == "CNTK on CIFAR-10, CNTK on MNIST with more threads than cores"
    words = checks.numbers_in_words({"below": 1}, pd.Series([0.9, 1.004]))
    assert words == "0.900 to 1.004; 1 of 2 within"


def test_a_gain_of_two_threads_tells_nothing_of_more(tmp_path):
    claim = "cpu-rnn-torch-cntk-no-threads"
    cells = [cell("cntk", "lstm32", threads, threads**-0.3) for threads in (1, 2, 4)]
    for known, verdict_of_it in ((cells[:2], UNKNOWN), (cells, SO_FAR)):
        found = checked(claim, measured=[measured(tmp_path / "steps.parquet", *known)])
        assert found.loc[claim, "today_verdict"] == verdict_of_it


def test_a_missing_framework_could_be_the_fastest_on_one_network_alone(tmp_path):
    cells = [cell(name, "fcn5", 1, 1.0, batch=64) for name in "torch tensorflow cntk".split()]
    cells += [each | {"network": "alexnet", "batch": 16} for each in cells]
    known = [measured(tmp_path / "merged.parquet", *cells)]
    found = checked("tools-change-with-network", measured=known)
    assert found["today_verdict"].tolist() == [checks.SO_FAR[FAILS]]


CALLS = r"\b(time|used|others|speedup|doubling)\("


def everything(about, left_out):
    """Times of all that a paper names, without one framework: each number is known for sure, so nothing is drawn."""
    names = {FRAMEWORKS[name].lineage for name in about.frameworks} - {left_out}
    batches, devices = (16, 32, 64, 128, 256), ("cpu", "gpu")
    places = product(sorted(names), about.networks, (1, 2, 4, 8), batches, devices, (1, 2, 4))
    columns = ["framework", "network", "threads", "batch", "device", "devices"]
    times = pd.DataFrame(places, columns=columns).drop_duplicates()
    times["threads"] = times["threads"].where(times["device"] == "cpu", 0)
    seconds = 1.0 + np.arange(len(times))
    numbers = dict.fromkeys([*NUMBERS, *LOW, *HIGH], seconds)
    exchange = pd.Series("", times.index).where(times["devices"] == 1, "sync")
    whose = {"runner": times["framework"], "platform": times["device"], "grid": "", "cores": 4}
    return times.assign(**numbers, **whose, task=about.task, exchange=exchange, decides=True)


@pytest.mark.seldom
@pytest.mark.parametrize("name", [paper.name for paper in read()])
def test_no_claim_holds_by_luck_where_a_framework_that_it_names_is_left_out(name):
    """Each claim is asked as one that any number fulfils: only who is missing can keep it from holding."""
    paper = next(each for each in read() if each.name == name)
    every = {each.name: each for known in read() for each in (known, *known.quoted())}
    printed = pd.concat([each.printed for each in read()])
    names = so_far.Names(FRAMEWORKS, CATALOGUE, {})
    nothing = {"alone": Scope("", *[pd.DataFrame()] * 2, {}, {}).alone}

    @functools.cache
    def scopes(about, left_out):
        cells = everything(every[about], left_out)
        return answers._scopes(every[about], cells, nothing, printed, names)

    def asked(claim, theirs, left_out):
        own = scopes(claim.get("paper", name), left_out)
        found = answers._ours(claim, own.about, own.today)
        return so_far.weakened(claim, found, own.about, own.today, theirs, names).verdict

    held = 0
    for finding in paper.findings:
        kept = finding.keys() - {*checks.BOUNDS, "of"}
        claim = {key: finding[key] for key in kept} | {"above": -np.inf}
        theirs = checks.Check(UNKNOWN, "")
        if "value" not in claim or asked(claim, theirs, "") != HOLDS:
            continue
        whole = scopes(claim.get("paper", name), "")
        theirs = theirs if "why_not" in claim else check(claim, whole.theirs)
        held += 1
        text = claim.get("ours", claim["value"])
        every_framework = "others(" in text or len(re.findall(CALLS, text)) > text.count(
            "framework="
        )
        named = {whole.ours.lineages[each] for each in names_in(text, "framework")}
        all_of_them = {FRAMEWORKS[each].lineage for each in whole.about.frameworks}
        wanted = all_of_them if every_framework else named
        # Of a framework that the paper has no time of either, its claim does not speak.
        wanted &= {framework for framework, *_ in theirs.places} or wanted
        for left_out in wanted if "parameters" not in text and "empty" not in text else ():
            assert asked(claim, theirs, left_out) != HOLDS, (finding["id"], left_out)
    assert held >= {"shi2016": 60, "shatnawi2018": 25, "wuensche2018": 10}.get(name, 1)


def test_words_of_claims_are_decided_number_by_number(tmp_path):
    """b takes 1.01 times as long as a in truth; 4 of 12 numbers came out below 1."""
    rows = pd.read_csv(ROOT / "tests/cases/statistics/claims.csv")
    cells = [
        cell(row.framework, row.network, 1, row.seconds, repeat=row.trial)
        for row in rows.itertuples()
    ]
    known = evidence.measured_times([Grid(steps=[measured(tmp_path / "claims.parquet", *cells)])])
    scope = Scope("", known.assign(family="", decides=True), pd.DataFrame(), {}, {})
    value = "time(framework='b') / time(framework='a')"
    asked = {
        ("every", "above", 1): UNDECIDED,
        ("some", "below", 1): UNDECIDED,
        ("most", "above", 1): UNDECIDED,
        ("every", "above", 0.8): HOLDS,
        ("every", "below", 1.3): HOLDS,
        ("every", "above", 1.3): FAILS,
        ("some", "above", 1.3): FAILS,
    }
    for (many, bound, number), wanted in asked.items():
        claim = {"value": value, bound: number, "of": many}
        assert check(claim, scope).verdict == wanted, (many, bound, number)
    # Variances of two times add up in their ratio, whatever is drawn.
    ratio = evaluate(value, scope).to_numpy()
    deviations = np.log(known["high"] / known["low"]) / 2 / evidence.NORMAL
    both = [np.hypot(*deviations[known["network"] == name]) for name in known["network"].unique()]
    assert checks._errors(value, scope, ratio) == pytest.approx(ratio * both, rel=0.03)


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        ("least(time(framework=OTHERS) / time(framework='a', network='fcn5'))", "above"),
        ("others(framework='a') / time(framework='a')", "above"),
        ("time(framework='a') / others(framework='a')", "below"),
        ("most(time(framework='a', network='fcn5') / time(framework=OTHERS))", "below"),
    ],
)
def test_an_extreme_of_noisy_numbers_is_asked_of_each_of_them(value, bound):
    """Twelve frameworks take 1.02 times as long as one; the least of what is measured is often below 1."""
    names = [f"b{at}" for at in range(12)]
    places = {"network": "fcn5", "framework": ["a", *names], "platform": "cpu", "device": "cpu"}
    places |= {"threads": 1, "batch": 64, "devices": 1, "cores": 4, "exchange": "", "grid": ""}
    times = pd.DataFrame(places).assign(runner=lambda rows: rows["framework"], family="")
    random, wrong, draws = np.random.default_rng(1), 0, 24
    errors = np.array([0, *[0.03] * 12])
    claim = {"value": value.replace("OTHERS", str(names)), bound: 1}
    for _ in range(draws):
        seconds = np.array([1, *[1.02] * 12]) * np.exp(errors * random.normal(size=13))
        ends = {"low": np.exp(-1.96 * errors), "high": np.exp(1.96 * errors)}
        known = dict.fromkeys(NUMBERS, seconds)
        known |= {name: seconds * ends[name[-4:].strip("_")] for name in (*LOW, *HIGH)}
        scope = Scope("", times.assign(**known, decides=True), pd.DataFrame(), {}, {})
        wrong += check(claim, scope).verdict == FAILS
    assert wrong / draws <= 0.05


def test_the_best_of_some_by_the_best_of_others_is_shown_of_each_of_the_first():
    """Of two sets, every one of the first must beat one of the second: which of these is best was not known before."""
    times = pd.DataFrame(
        {"network": "fcn5", "framework": "a", "platform": ["x", "y"] * 2, "threads": 1, "batch": 64}
    ).assign(device=["cpu", "cpu", "gpu", "gpu"], devices=1, cores=4, exchange="", grid="")
    times = times.assign(runner="a", family="")
    value = (
        "least(time(device='cpu'), over='platform') / least(time(device='gpu'), over='platform')"
    )

    def asked(*seconds, error, decides=True):
        seconds = np.array(seconds)
        known = {NUMBERS[0]: seconds}
        known |= {LOW[0]: seconds * np.exp(-1.96 * error), HIGH[0]: seconds * np.exp(1.96 * error)}
        known |= dict.fromkeys([*NUMBERS[1:], *LOW[1:], *HIGH[1:]], seconds)
        scope = Scope("", times.assign(**known, decides=decides), pd.DataFrame(), {}, {})
        found = check({"value": value, "above": 1}, scope)
        return found.verdict, found.values.tolist()

    assert asked(2.0, 3.0, 1.0, 9.0, error=0.1) == (HOLDS, [2.0])
    # Of one number, 1.3 would be shown to be above 1; not of the better one of two.
    assert asked(1.3, 3.0, 1.0, 9.0, error=0.1)[0] == UNDECIDED
    assert asked(0.5, 0.6, 1.0, 1.0, error=0.1) == (FAILS, [0.5])
    # What was disturbed decides nothing, and hinders no other from it.
    times_of = functools.partial(asked, 2.0, 3.0, 1.0, 9.0, error=0.1)
    assert times_of(decides=[False, True, True, True])[0] == UNDECIDED
    assert times_of(decides=[True, True, True, False])[0] == HOLDS
