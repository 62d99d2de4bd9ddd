"""The report's cells and page from a few rows, where what a whole run shows in the browser does not happen."""

import html
import json
import re
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from examples import CATALOGUE, FRAMEWORKS, PEAK, ROOT, inputs, measured, words

from steptime.artefacts.papers import catalogue
from steptime.artefacts.results import efficiency, ratios, tuning
from steptime.claims.papers import read_papers
from steptime.page import answer, cells, embed, explorer, page
from steptime.render import figures, tables

CRASHED = {"status": "crashed", "reason": "ended by SIGSEGV"}
COMMIT = {"workflow_commit": "abc"}
JOB = {
    "grid": "mine",
    "sampling": {"budget_seconds": 1, "precision": 0.1, "least_samples": 5},
    "limits": {"seconds": 9},
    "artefacts": [],
}


def entry(name, kind, paper="", missing="", files=()):
    """What the page knows of an artefact."""
    facts = {"name": name, "kind": kind, "about": f"About {name}.", "paper": paper}
    return facts | {"missing": missing, "files": list(files)}


def build(tmp_path, read, *artefacts):
    """The page of cells and artefacts as HTML."""
    job = JOB | {"artefacts": list(artefacts)}
    return page.build(
        job, [read] if read else [], {}, FRAMEWORKS, CATALOGUE, tmp_path / "report/index.html"
    )


def test_a_cell_stands_once_with_its_share_of_the_peak_of_its_threads_and_its_remarks(tmp_path):
    flops = {"flops_per_step": 2e10}
    read = measured(
        tmp_path,
        {"threads": 1, "seconds": 1.0, **flops},
        {"threads": 2, "seconds": 0.5, "effective_threads": 9.0, **flops},
        {"threads": 4, "seconds": 0.5, **flops},
        {"network": "fcn8", "seconds": None, **CRASHED, **flops},
    )
    shares = [efficiency.table(inputs(measured=read, peaks={"local-cpu": PEAK}))[0]]
    found = cells.gather([read, read], [], shares, FRAMEWORKS, CATALOGUE)
    assert found["threads"].tolist() == [1, 2, 4, 1]
    assert found["share_of_peak"].tolist()[:2] == pytest.approx([2e10 / 1e11, 2e10 / 0.5 / 2e11])
    assert found["share_of_peak"].isna().tolist() == [False, False, True, True]
    assert found["remarks"].iloc[1] == "oversubscribed"
    assert cells.marks_of(found)["oversubscribed"].startswith("used more CPU than it was given")
    assert (found["status"].iloc[3], found["remarks"].iloc[3]) == ("crashed", "ended by SIGSEGV")
    rows = json.loads(explorer.as_json(found, cells.columns_of(found)))["rows"]
    # One run has no interval.
    assert [row[8] for row in rows] == [None] * 4


def test_what_is_not_made_is_named_with_its_reason_and_an_empty_run_has_a_page(tmp_path):
    why, files = "the grid mine has no cell.", ["results/figures/shi2016_fig1d.svg"]
    text = build(tmp_path, None, entry("shi2016_fig1d", "sweep", "shi2016", why, files))
    assert "not made: the grid mine has no cell." in text
    assert 'href="#shi2016_fig1d"' not in text
    assert "Not made: this run has no table of findings." in text


def test_the_catalogue_says_what_of_the_papers_is_not_made_and_why(tmp_path):
    files = list(ROOT.glob("resources/papers/dai2019/*"))
    papers = read_papers(files)
    names = papers[0].catalogue["artefacts"]
    targets = {f"dai2019_{name}": {"cells": 0, "state": "printed numbers only"} for name in names}
    facts = {"targets": {"targets": targets, "grid": "mine"}}
    made = catalogue.table(inputs(paths=lambda word: files, facts=facts))
    tables.write(tmp_path / "tables/catalogue", *made, words())
    files = [str(tmp_path / f"tables/catalogue.{ending}") for ending in ("parquet", "html")]
    made = entry("steptime_catalogue", "catalogue", files=files)
    text = build(tmp_path, None, made, entry("dai2019_table2", "abilities", "dai2019"))
    assert text.count("<td>printed numbers only</td>") == 1
    for reason in papers[0].catalogue["not_made"].values():
        assert f"not made: {reason['why']}" in html.unescape(text)


def test_words_of_a_framework_cannot_end_the_page(tmp_path):
    read = measured(
        tmp_path, {"seconds": None, "status": "crashed", "reason": "</script><b>& more"} | COMMIT
    )
    text = build(tmp_path, read)
    assert "<b>" not in text
    assert (
        json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.S)[1])[
            "rows"
        ][0][-1]
        == "</script><b>& more"
    )


def test_a_drawing_is_an_image_whose_names_are_its_own(tmp_path):
    file = tmp_path / "x.svg"
    file.write_text('<?xml version="1.0"?><svg><path id="m1"/><use xlink:href="#m1"/></svg>')
    text = embed.drawing(file, 'of "x"')
    assert text.startswith('<img alt="of &#34;x&#34;" src="data:image/svg+xml,%3C')
    assert unquote(text.partition("xml,")[2][:-2]) == file.read_text()


def test_what_a_figure_does_not_say_below_itself_is_read_from_its_file(tmp_path):
    with figures.canvas() as (drawing, _):
        figures.caption(drawing, "* disturbed", ["Measured on a < b.", "Marked: all."])
    figures.write(tmp_path / "figure", pd.DataFrame(), drawing)
    path = tmp_path / "figure.svg"
    assert embed.notes(path) == ["Measured on a < b.", "Marked: all."]
    assert "Marked" not in embed.drawing(path, "")


def test_the_report_opens_with_who_is_fastest_and_says_where_that_is_not_shown(tmp_path):
    def cell(framework, seconds, repeat, **more):
        names = {"environment": f"{framework}-1", "framework": framework, "repeat": repeat} | COMMIT
        return names | {"seconds": seconds, "effective_threads": 1.0} | more

    random = np.random.default_rng(1)
    read = measured(
        tmp_path,
        *(
            cell(framework, time * np.exp(0.01 * random.standard_normal()), repeat, network=network)
            for network, times in {"fcn5": (1.0, 1.5), "fcn8": (1.0, 1.002)}.items()
            for framework, time in zip(("torch", "mxnet"), times, strict=True)
            for repeat in (1, 2, 3)
        ),
        cell("chainer", None, 1, **CRASHED),
        cell("torch", 1.0, 1, network="lenet"),
    )
    table = tmp_path / "tables/steptime_ratios"
    tables.write(table, *ratios.table(inputs(measured=read)), words())
    files = [str(table.with_suffix(ending)) for ending in (".parquet", ".html")]
    text = build(tmp_path, read, entry("steptime_ratios", "ratios", files=files))
    opening = text[text.index('id="answer"') : text.index('id="further"')]
    assert "Fastest on single networks, of 3: PyTorch 9.9.0 on 1." in opening
    assert "On 2 of 3 networks, PyTorch 9.9.0 is fastest; MXNet 9.9.0 takes 1.2" in opening
    entries = re.findall(r'<td class="(\w*)" title="([^"]*)">(.*?)</td>', opening)
    assert [kind for kind, _, shown in entries if ">fastest<" in shown] == ["best"]
    assert [kind for kind, _, shown in entries if "?" in shown] == [] and "equal" in opening
    assert ("dash", "crashed: ended by SIGSEGV", "–") in entries
    assert ">nan<" not in opening
    # The overall fastest comes first, what has no time last, and each time leads to its samples.
    headings = re.findall(r'<th scope="col">([^<]*)</th>', opening)
    assert headings == ["Network", "PyTorch 9.9.0", "MXNet 9.9.0", "Chainer 9.9.0"]
    links = re.findall(r'href="#(samples-[^"]*)"', opening)
    assert len(links) == 5 and all(f'id="{link}"' in text for link in links)
    assert answer.changes(None) == "" and answer.decided(None)["says"] == ""


def test_claims_are_counted_in_words():
    verdicts = ["holds", "does not hold", "does not hold", "undecided", "not asked"]
    rows = pd.DataFrame({"ours_verdict": verdicts, "weight": 2, "paper": "doe2020"})
    assert answer.decided(rows)["says"] == (
        "4 of 5 claims can be checked here: 1 holds, 2 do not hold, 1 is undecided."
    )


def test_printed_times_are_compared_where_both_did_the_same():
    rows = pd.DataFrame({"theirs": 1.0, "ratio": [0.12, 0.41, 7.0], "caveat": ["", "", "other"]})
    assert answer.changes(rows) == (
        "2 printed times can be compared. All 2 are shorter here: 0.12 to 0.41 of the paper's."
    )
    assert " 2 are shorter here: 0.12 to 7.0 " in answer.changes(rows.assign(caveat=""))


def test_what_a_framework_takes_as_it_comes_is_below_its_time(tmp_path):
    read = measured(
        tmp_path,
        *(
            {"mode": mode, "seconds": seconds, "threads": threads, "effective_threads": threads}
            for threads in (1, 2)
            for mode, seconds in (("eager", 1.0), ("plain", 2.0))
        ),
    )
    entry_of = {"settings": {"torch": [], "all": []}}
    tables_of = [kind.table(inputs(measured=read, entry=entry_of))[0] for kind in (ratios, tuning)]
    all_threads, one = answer.matrices(*tables_of)
    assert (all_threads["threads"], one["threads"]) == (2, 1)
    ((entries,),) = (all_threads["plain"].values(),)
    assert entries["PyTorch 9.9.0"]["time"] == "2000 ms"
    assert entries["PyTorch 9.9.0"]["ratio"].endswith(" ×")


def test_each_precision_has_an_answer_of_its_own(tmp_path):
    """A framework that is fastest in one is not averaged with itself in the other."""
    seconds = {("torch", "float32"): 1.0, ("mxnet", "float32"): 2.0}
    seconds |= {("torch", "bfloat16"): 0.9, ("mxnet", "bfloat16"): 0.3}
    read = measured(
        tmp_path,
        *(
            {"environment": f"{framework}-1", "framework": framework, "precision": precision}
            | {"repeat": repeat, "seconds": took * (1 + 0.001 * repeat), **COMMIT}
            for (framework, precision), took in seconds.items()
            for repeat in (1, 2, 3)
        ),
    )
    full, half = answer.matrices(ratios.table(inputs(measured=read))[0])
    assert full["title"].endswith("1 thread") and half["title"].endswith("1 thread, bfloat16")
    assert full["says"].startswith("Overall, PyTorch 9.9.0 is fastest")
    assert half["says"].startswith("Overall, MXNet 9.9.0, bfloat16 is fastest")
