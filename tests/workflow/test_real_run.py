"""A whole run of the grid `ci` with real frameworks, and what a second one does; its report in a real browser, from the
file system and without network; its tables as LaTeX.
"""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote

import browser
import pandas as pd
import pytest
import yaml
from examples import CATALOGUE as NETWORKS

from steptime.artefacts.results import timeline
from steptime.cells import shard
from steptime.environments import build, pins

# Frameworks that share two CPUs with other tests take three times as long.
pytestmark = pytest.mark.alone

GRID = ("--config", "grid=ci", "--")
COMMAND = browser.find()
needs_browser = pytest.mark.skipif(COMMAND is None, reason="there is no Chromium on PATH")
ROWS = "[...document.querySelectorAll('#cells-table tbody tr')]"
DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{array,booktabs,graphicx,longtable,lscape}
\begin{document}
%s
\end{document}
"""
# What nobody sees, in points (a page's width has 345).
SLIGHT = 3.0


@pytest.fixture(scope="module")
def whole_run(new_checkout):
    """A checkout in which the grid `ci` was run with real frameworks, and what Snakemake printed."""
    checkout = new_checkout()
    return checkout, checkout.run("--config", "grid=ci", "--", "all", seconds=3600)


@pytest.fixture(scope="module")
def cells(whole_run):
    rows = [shard.read(path)[0].to_pandas().iloc[0] for path in whole_run[0].shards().values()]
    return pd.DataFrame(rows)


def test_every_cell_is_measured(cells):
    assert len(cells) == 3 * (3 + 1)
    told = cells[["environment", "network", "status", "reason"]]
    assert cells["status"].tolist() == ["ok"] * len(cells), told


def test_every_network_has_the_papers_size_and_learns(cells):
    for _, cell in cells.iterrows():
        assert cell["parameters"] == NETWORKS[cell["network"]]["parameters"]
        assert cell["last_loss"] < cell["first_loss"]


def test_the_first_loss_is_the_same_number_in_every_framework(cells):
    """Same start values, same batch: at full size, the frameworks agree before any of them has been updated."""
    losses = cells.groupby(["network", "batch"])["first_loss"]
    assert ((losses.max() - losses.min()) / losses.mean()).max() < 1e-4


def test_a_network_is_trained_on_real_digits_in_every_framework(whole_run):
    root = whole_run[0].root
    paths = list((root / "results/cells").glob("*/training/*-r1.parquet"))
    rows = [shard.read(path)[0].to_pylist()[-1] for path in paths]
    assert sorted(row["framework"] for row in rows) == ["mxnet", "tensorflow", "torch"]
    for row in rows:
        assert (row["status"], row["stopped"], row["epoch"]) == ("ok", "epochs", 1), row["reason"]
        assert row["dataset_label"] == "MNIST, 5,000 of its training images"
        assert row["accuracy"] > 0.6
    words = (root / "results/tables/shatnawi2018_table3.md").read_text()
    assert words.count("accuracy not reached: ") == 3
    assert "MNIST, 5,000 of its training images" in words


def test_the_pins_of_every_environment_are_closed(whole_run):
    """Nothing was installed that the environment's file does not pin."""
    for path in (whole_run[0].root / "results/environments").glob("*.json"):
        manifest = json.loads(path.read_text())
        wanted = pins.load(whole_run[0].root / "envs" / f"{manifest['environment']}.yaml")
        assert build.unpinned(manifest["packages"], wanted) == []


def test_every_cell_has_a_proof(cells, whole_run):
    for _, cell in cells.iterrows():
        name = f"{cell['environment']}.{cell['mode']}-{cell['network']}.json"
        assert (
            json.loads((whole_run[0].root / "results/proofs" / name).read_text())["proof_id"]
            == cell["proof_id"]
        )


def test_threads_are_real(cells):
    assert (cells["effective_threads"] <= 1.1 * cells["threads"]).all(), cells[
        ["environment", "effective_threads"]
    ]


def test_no_two_cells_overlap(whole_run):
    frames = [shard.read(path)[0].to_pandas() for path in whole_run[0].shards().values()]
    spans = timeline.spans_of(pd.concat(frames))
    assert timeline.sentence(spans) == "No two of 12 runs overlapped."
    assert len(pd.read_csv(whole_run[0].root / "results/figures/steptime_timeline.csv")) == 12
    # The parts of a cell that the worker itself timed lie within its span.
    parts = [frame.iloc[0] for frame in frames]
    least = {
        row["started_at"]: row["import_seconds"] + row["build_seconds"] + row["wall_seconds"]
        for row in parts
    }
    assert (spans["seconds"] >= spans["started_at"].map(least)).all()


def test_every_artefact_is_there_and_the_table_is_printed(whole_run):
    checkout, printed = whole_run
    for table in ("table1", "table2", "table3", "table4"):
        for ending in ("parquet", "csv", "md", "html"):
            assert (checkout.root / f"results/tables/shi2016_{table}.{ending}").stat().st_size
    for ending in ("svg", "png", "csv"):
        assert (checkout.root / f"results/figures/shi2016_fig1e.{ending}").stat().st_size
    # Of one mini-batch it would be a dot.
    assert not (checkout.root / "results/figures/shi2016_fig1a.svg").exists()
    # Three of them are trainings.
    assert "[15/15  done about " in printed
    frameworks = ("PyTorch 2.13.0 ", "TensorFlow 2.21.0 ", "MXNet 1.9.1 ", "overall")
    for words in (*frameworks, "15 of 15 runs measured in", "results/report/index.html"):
        assert words in printed


def test_a_second_run_does_nothing_and_says_so(whole_run):
    assert "Nothing to be done" in whole_run[0].run(*GRID, "all")


def test_one_figure_measures_only_its_own_cells(whole_run, new_checkout):
    jobs = new_checkout().planned(*GRID, "shi2016_fig1d")
    assert (jobs["measure_cell"], jobs["prove_network"], jobs["shi2016_fig1d"]) == (6, 3, 1)
    assert "shi2016_table4" not in jobs


@pytest.fixture(scope="module")
def report(whole_run):
    return whole_run[0].root / "results/report/index.html"


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with browser.chromium(COMMAND, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(opened, report):
    opened.complaints.clear()
    opened.open(report)
    opened.wait(f"{ROWS}.length > 1")
    unfold(opened)
    yield opened
    assert opened.complaints == []


def unfold(page):
    """Opens all that is folded, and waits until it is laid out."""
    page.run("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    page.run("new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(1)), 500))")


def column(page, title, table="cells"):
    """The texts of a column of the cells, or of another table to explore, by its heading."""
    return page.run(
        f"(() => {{ const table = document.getElementById('{table}-table'); const at = [...table.tHead.rows[0].cells]"
        f".findIndex((heading) => heading.innerText.startsWith({title!r}));"
        "return [...table.tBodies[0].rows].map((row) => row.cells[at].innerText); })()"
    )


def choose(page, place, value, table="cells"):
    """Chooses a value in one of the filters of a table, as a reader does."""
    page.run(
        f"(() => {{ const choice = document.querySelectorAll('[data-name={table}] form select')[{place}];"
        f"choice.value = {value!r}; choice.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    )


def test_the_page_needs_nothing_from_outside_and_its_links_lead_somewhere(report):
    text = re.sub(r'"[A-Za-z0-9+/=]{1000,}"', "", report.read_text())
    assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*', text)
    links = set(re.findall(r'href="([^"]+)"', text))
    inside = {link[1:] for link in links if link.startswith("#")}
    assert {"shi2016_table4", "shi2016_fig1e", "steptime_proofs", "section-findings"} <= inside
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert inside <= set(identifiers) and len(identifiers) == len(set(identifiers))
    files = {report.parent / unquote(link) for link in links if not link.startswith(("#", "data:"))}
    assert len(files) > 40 and all(file.is_file() for file in files)


def test_snakemake_s_own_report_has_each_artefact_with_its_caption(whole_run):
    checkout, _ = whole_run
    checkout.run("--config", "grid=ci", "--report", "snakemake.html")
    text = (checkout.root / "snakemake.html").read_text()
    for words in (
        "shi2016_fig1e",
        "has its reason in a footnote",
        "results/tables/shi2016_table4.csv",
    ):
        assert words in text


@needs_browser
def test_cells_are_filtered_and_sorted(page):
    assert len(column(page, "Network")) == 12
    choose(page, 0, "FCN-5")
    assert column(page, "Network") == ["FCN-5"] * 3
    page.press("#cells button[type=reset]")
    page.wait(f"{ROWS}.length === 12")
    heading = "#cells-table thead th:nth-child(8)"
    for falling, told in ((False, "ascending"), (True, "descending")):
        page.press(heading)
        page.wait(f"document.querySelector({heading!r}).ariaSort === {told!r}")
        # A cell without a time sorts as the slowest.
        times = [float(text.replace("–", "inf")) for text in column(page, "Ours (s)")]
        assert len(times) == 12 and times == sorted(times, reverse=falling)


@needs_browser
def test_claims_are_chosen_by_verdict(page):
    choose(page, 0, "Shi et al. 2016", "claims")
    choose(page, 1, "does not hold", "claims")
    assert set(column(page, "By their numbers", "claims")) == {"does not hold"}
    assert set(column(page, "Paper", "claims")) == {"Shi et al. 2016"}


@needs_browser
def test_links_lead_to_the_artefact_and_to_a_footnote(page):
    to_table, to_note = "#contents a[href='#shi2016_table4']", "#shi2016_table4 sup a"
    for link, seen in ((to_table, "#shi2016_table4:target h3"), (to_note, "dt:target")):
        page.press(link)
        page.wait(f"document.querySelector({seen!r}) !== null")
        top = page.run(f"document.querySelector({seen!r}).getBoundingClientRect().top")
        assert 0 <= top <= 900, link


@needs_browser
def test_a_dot_of_the_chart_says_its_interval_and_samples_to_mouse_and_keyboard(page):
    dots = "[...document.querySelectorAll('.chart figure')].at(-1).querySelectorAll('a')"
    page.run(f"{dots}[0].focus({{focusVisible: true}})")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown", code="ArrowDown")
    assert page.run(f"document.activeElement === {dots}[1]")
    says = page.run("getComputedStyle(document.activeElement, '::after').content")
    assert "run 1: " in says and " ms" in says


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_short_accessible_and_fits(page, report, width, dark):
    page.open(report, width, dark)
    page.wait(f"{ROWS}.length > 1")
    assert page.run("document.documentElement.scrollHeight") < 15_000
    # The answer is whole within two screens of a telephone.
    assert page.run("document.getElementById('answer').getBoundingClientRect().bottom") < 2 * 844
    matrix = "document.querySelector('.place:not([hidden]) .scroll')"
    assert page.run(f"{matrix}.scrollWidth <= {matrix}.clientWidth")
    page.press("#answer .place:not([hidden]) td a")
    page.wait("document.querySelector('tr:target a').getBoundingClientRect().height > 0")
    unfold(page)
    cut = "e.scrollWidth > e.clientWidth + 1 && !e.hasAttribute('data-cut')"
    page.wait(f"![...document.querySelectorAll('.scroll')].some((e) => {cut})")
    axe = Path(importlib.util.find_spec("axe_core_python").origin).with_name("axe.min.js")
    page.run(f"{axe.read_text()}; true")
    found = page.run("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 30
    assert [
        (violation["id"], violation["nodes"][0]["html"])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ] == []
    # All at the very end of an axis, a tick's label too.
    ends = "for (const name of ['--at', '--to', '--most']) e.style.setProperty(name, 2)"
    page.run(f"document.querySelectorAll('.chart [style]').forEach((e) => {{ {ends} }})")
    assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="there is no pdflatex on PATH")
def test_pdflatex_sets_every_table_within_its_page(whole_run, tmp_path):
    tables = sorted((whole_run[0].root / "results/tables").glob("*.tex"))
    assert len(tables) > 10
    for path in tables:
        shutil.copy(path, tmp_path)
    inputs = "\n".join(rf"\input{{{path.name}}}\clearpage" for path in tables)
    (tmp_path / "all.tex").write_text(DOCUMENT % inputs)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="latin-1")
    assert done.returncode == 0, done.stdout[-3000:]
    beyond = [match for match in re.finditer(r"Overfull \\hbox \((\S+)pt too wide\)", done.stdout)]
    assert not [match[0] for match in beyond if float(match[1]) > SLIGHT]


def test_one_thread_is_one_thread(whole_run):
    """Measured beside the cells of the run: its grid has as many threads as CPUs."""
    checkout, _ = whole_run
    grid = yaml.safe_load((checkout.root / "config/grids/ci.yaml").read_text())
    grid |= {
        "environments": ["torch"],
        "networks": ["lstm32"],
        "threads": {"table": [1], "figure": [1]},
    }
    grid |= {"table_batches": {"lstm32": 8}, "figure_batches": {"lstm32": [8]}}
    (checkout.root / "one.yaml").write_text(yaml.safe_dump(grid))
    before = set(checkout.shards())
    checkout.run("--config", "grid=one.yaml", "--", "results/merged/shi2016_fig1e.parquet")
    added = {name: path for name, path in checkout.shards().items() if name not in before}
    rows = [shard.read(path)[0].slice(0, 1).to_pylist()[0] for path in added.values()]
    assert len(rows) == 1 and rows[0]["threads"] == 1
    assert all(row["effective_threads"] <= 1.1 for row in rows), rows
