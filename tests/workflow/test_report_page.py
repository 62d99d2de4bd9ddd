"""The report of a whole run in a real browser, from the file system and without network."""

import importlib.util
import re
from pathlib import Path
from urllib.parse import unquote

import browser
import pytest

pytestmark = pytest.mark.alone

COMMAND = browser.find()
needs_browser = pytest.mark.skipif(COMMAND is None, reason="there is no Chromium on PATH")
ROWS = "[...document.querySelectorAll('#cells-table tbody tr')]"


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
