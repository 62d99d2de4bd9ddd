"""The papers' claims: what their own numbers say of them, what ours say, and what the language of claims refuses."""

import functools
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from examples import words

from steptime.artefacts import agreement, catalogue, evidence, findings
from steptime.artefacts.expressions import ExpressionError, Scope, evaluate
from steptime.merge.measured import read_measured
from steptime.reading import InputError
from steptime.render.frameworks import Frameworks

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "resources/papers"
FRAMEWORKS = Frameworks(PAPERS / "frameworks.yaml")
CATALOGUE = yaml.safe_load((ROOT / "config/networks.yaml").read_text())
HOLDS, FAILS, UNKNOWN = findings.HOLDS, findings.FAILS, findings.UNKNOWN

# Contradictions within the papers that were found by reading, and calculations of theirs that are right.
KNOWN = {
    "fcn5-55-millions": FAILS,
    "resnet50-3.8-billions": FAILS,
    "lstm-13-millions": FAILS,
    "gpu-lstm32-tensorflow-8x-cntk": FAILS,
    "gpu-100x-16-cores": FAILS,
    "gpu-112x-4-cores": HOLDS,
    "cpu-alexnet-torch-empty-cells": FAILS,
    "cpu-resnet50-torch-empty-cells": HOLDS,
    "cpu-rnn-torch-best": FAILS,
    "cpu-rnn-torch-12x-tensorflow": FAILS,
    "gtx1080-1.5x-gtx980-each": FAILS,
    "laptop-8-cores": FAILS,
    "cntk-fastest-cifar10-few-threads": FAILS,
    "transfer-one-gpu": HOLDS,
    "transfer-every-gpu": HOLDS,
    "transfer-three-gpus": HOLDS,
    "transfer-effective-share": HOLDS,
    "k40-highest-images-per-joule": FAILS,
    "compatibility-gpus-asics-fpgas": FAILS,
    "asics-most-efficient": UNKNOWN,
}


@functools.cache
def read():
    return evidence.read_papers(list(PAPERS.glob("*/*")))


def checked(papers=None, measured=()):
    made = papers or read(), list(measured), FRAMEWORKS, CATALOGUE
    return findings.build(*made, words())[0].set_index("id")


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
        papers.append(evidence.Paper(paper.name, paper.catalogue, printed, paper.findings))
    return papers


def test_the_contradictions_of_the_papers_come_out_by_themselves():
    verdicts = as_printed()["theirs_verdict"]
    assert {name: verdicts[name] for name in KNOWN} == KNOWN
    assert verdicts.index.is_unique and len(verdicts) > 100
    assert set(verdicts) == {HOLDS, FAILS, UNKNOWN}


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
    assert checked(planted("table4", row, column, value)).loc[finding, "theirs_verdict"] == after


def cell(framework, network, threads, seconds, **changes):
    environment = {"torch": "torch-2.13", "tensorflow": "tensorflow-2.21"}[framework]
    status = "ok" if seconds else "crashed"
    row = {
        "platform": "local-cpu",
        "environment": environment,
        "framework": framework,
        "framework_version": "1",
    }
    row |= {
        "mode": "graph",
        "precision": "float32",
        "task": "step",
        "dataset": "",
        "exchange": "",
        "network": network,
        "variant": "",
        "device": "cpu",
        "devices": 1,
        "batch": 128,
    }
    row |= {
        "threads": threads,
        "repeat": 1,
        "sample": 0,
        "status": status,
        "reason": "",
        "seconds": seconds,
    }
    row |= {
        "timed_region": "forward,sync",
        "machine_id": "m1",
        "effective_threads": 1.0,
        "peak_memory_bytes": 1,
    }
    return row | {"started_at": "2026-01-02T03:04:05+00:00"} | changes


def measured(path, *cells):
    table = pa.Table.from_pandas(pd.DataFrame([*cells]))
    words = json.dumps({"machines": {}, "software": {}}).encode()
    pq.write_table(table.replace_schema_metadata({b"steptime": words}), path)
    return read_measured(path)


def test_ours_are_asked_the_same_of_the_same_frameworks(tmp_path):
    cells = [cell("torch", "lstm32", 1, 2.0), cell("tensorflow", "lstm32", 1, 1.0)]
    # A faster mode stands for its framework; a variant and another number of threads stand for nothing.
    cells += [
        cell("torch", "lstm32", 1, 0.5, mode="compiled"),
        cell("torch", "lstm32", 4, 9.0),
    ]
    cells += [cell("tensorflow", "lstm32", 1, 0.1, variant="lstm32-table2")]
    found = checked(measured=[measured(tmp_path / "merged.parquet", *cells)])
    best = found.loc["cpu-rnn-torch-best"]
    assert (best["ours_verdict"], best["ours_least"], best["ours_count"]) == (HOLDS, 0.5, 1)
    assert found.loc["gtx1080-always-best", "ours_numbers"] == "it compares machines of the paper's"
    assert found.loc["cpu-rnn-cntk-much-faster", "ours_verdict"] == UNKNOWN
    assert found.loc["transfer-one-gpu", "ours_verdict"] == findings.NOT_ASKED


def test_the_platform_of_a_claim_is_any_machine_of_ours_of_its_kind(tmp_path):
    cells = [
        cell("tensorflow", "alexnet", threads, seconds) for threads, seconds in ((8, 1.0), (4, 2.0))
    ]
    found = checked(measured=[measured(tmp_path / "merged.parquet", *cells)])
    assert found.loc["cpu-alexnet-tensorflow-8-on-4", "ours_numbers"] == "0.500"


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
        "time(",
        "least()",
    ],
)
def test_what_is_not_of_the_language_is_refused(expression):
    paper = read()[-1]
    empty = pd.DataFrame(
        columns=["network", "framework", "platform", "threads", "batch", "device", "seconds"]
    )
    with pytest.raises(ExpressionError):
        evaluate(expression, Scope(paper.name, empty, paper.printed, CATALOGUE, {}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"valeu": "1"}, "there is no key 'valeu'"),
        ({"above": 1}, "write 'value' with one of"),
        ({"value": "rows('table4')"}, "write 'value' with one of"),
        ({"value": "rows('table9')", "above": 1}, "shi2016/table9.csv has no rows"),
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
        checked(evidence.read_papers(list(tmp_path.glob("*/*"))))
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_a_paper_without_printed_numbers_and_claims_is_no_mistake(tmp_path):
    (tmp_path / "doe2020").mkdir()
    (tmp_path / "doe2020/paper.yaml").write_text(
        "{short: Doe 2020, citation: Doe, times: table1, artefacts: {}}"
    )
    papers = evidence.read_papers(list(tmp_path.glob("*/*")))
    assert papers[0].findings == [] and checked(papers).empty
    assert evidence.their_times(papers[0], FRAMEWORKS, CATALOGUE).empty


def test_orders_agree_as_far_as_the_frameworks_are_the_same(tmp_path):
    orders = {"caffe": 1.0, "cntk": 2.0, "tensorflow": 8.0, "torch": 1.5}
    cells = [
        cell("torch", "fcn5", 1, seconds * (1 + sample / 1000), sample=sample)
        | {"framework": name, "environment": name}
        for name, seconds in orders.items()
        for sample in range(6)
    ]
    cells += [cell("torch", "alexnet", 1, 1.0), cell("tensorflow", "alexnet", 1, 2.0)]
    data, layout = agreement.build(
        read(), measured(tmp_path / "merged.parquet", *cells), FRAMEWORKS, CATALOGUE, words()
    )
    found = data[data["paper"] == "shi2016"].set_index("network")
    # Theirs, shortest over machines and threads: Caffe, Torch, CNTK, TensorFlow.
    assert found.loc["fcn5", ["tau", "low", "high"]].tolist() == [1, 1, 1]
    assert (found.loc["fcn5", "same_pairs"], found.loc["fcn5", "pairs"]) == (6, 6)
    assert found.loc["alexnet", "no_tau"] == "too few: 2 frameworks in common"
    assert (found.loc["alexnet", "same_pairs"], found.loc["alexnet", "pairs"]) == (0, 1)
    assert found.loc["every network", "points"] == 6
    assert all(entry.footnotes for row in layout.to_numpy() for entry in row if entry.text == "–")


def test_the_catalogue_says_what_is_not_made_and_why():
    targets = {
        f"{paper.name}_{name}": {"state": "made", "cells": 3}
        for paper in read()
        for name in paper.catalogue["artefacts"]
    }
    data, layout = catalogue.build(read(), targets, "quick", words())
    missing = data[data["state"] == catalogue.NOT_MADE]
    assert len(data) == len(layout) and 0 < len(missing) < len(data)
    assert (missing["why"] != "").all() and (data.drop(missing.index)["target"] != "").all()
