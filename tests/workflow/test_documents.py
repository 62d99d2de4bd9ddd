"""The documents: a site without a dead link, sentences as people speak, and nothing named that is not there."""

import argparse
import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import browser
import pytest
import yaml
from conftest import ROOT

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "AGENTS.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "config/README.md",
    # Pages of papers are made of packs.
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "papers"),
]
MOST_WORDS = 30
# Of what nobody says to a colleague, the worst.
STIFF = re.compile(
    r"held against|\bstands? in\b|\b(?:is|are) told\b|\btells? of\b|\bof (?:such|those)\b"
)
# Paths of the project in code, whole or with a part to be filled in: `envs/<environment>.yaml`.
VARIABLE = re.compile(r"STEPTIME_[A-Z0-9_]*[A-Z0-9]")
PATHS = re.compile(r"`((?:workflow|config|tests|docs|envs|profiles|resources|benchmarks)/[^`\s:]*)")


def sentences(text: str) -> list[str]:
    """The sentences of a Markdown text: without code, tables, headings and the targets of links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    found: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if not re.match(r" {4}|[|#!<]", block.lstrip("\n")):
            found += re.split(r"(?<=[.!?])[*)]*\s+", " ".join(block.split()))
    return found


def named_there(path: str) -> bool:
    """Whether files match a path in which <words>, {words} and ... stand for anything."""
    pattern = re.sub(r"<[^>]*>|\{[^}]*\}|\.\.\.", "*", path.rstrip("/"))
    return any(True for _ in ROOT.glob(pattern))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short_and_spoken(path):
    assert [text for text in sentences(path.read_text()) if len(text.split()) > MOST_WORDS] == []
    assert [text for text in sentences(path.read_text()) if STIFF.search(text)] == []


def test_every_path_that_the_documents_name_is_there():
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in DOCUMENTS
        for name in PATHS.findall(path.read_text())
    }
    assert len(named) > 40
    assert sorted(pair for pair in named if not named_there(pair[1])) == []


def test_every_test_that_the_documents_name_is_there():
    named = re.findall(r"`(test_\w+)`", "".join(path.read_text() for path in DOCUMENTS))
    there = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named and [name for name in named if f"def {name}(" not in there] == []


class Stopped(Exception):
    """Carries the parser of a program that was about to read its command line."""


def options_of(parser: argparse.ArgumentParser) -> tuple[set[str], set[str]]:
    """Every option of a program with those of its commands, and the options that it cannot do without."""
    known: set[str] = set()
    needed: set[str] = set()
    for action in parser._actions:
        known |= set(action.option_strings)
        if action.option_strings and action.required:
            needed |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            known |= set().union(*(options_of(each)[0] for each in action.choices.values()))
    return known, needed


def commands() -> set[tuple[str, str]]:
    """The programs that documents and docstrings start, each with the words that follow it."""
    texts = [path.read_text().replace("\\\n", " ") for path in DOCUMENTS]
    for folder in ("workflow", "benchmarks", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            texts.append(ast.get_docstring(ast.parse(path.read_text())) or "")
    command = re.compile(r"(?:workflow/scripts/launch|python -m steptime) ([a-z_.]+[a-z])(.*)")
    return {(name, words.split("`")[0]) for text in texts for name, words in command.findall(text)}


def test_every_program_that_is_named_takes_the_options_it_is_named_with(monkeypatch):
    """One process reads the parser of each program; nothing is run."""

    def stop(parser, *_):
        raise Stopped(parser)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    wrong = []
    for name, words in sorted(commands()):
        program = ROOT / "workflow/scripts/steptime" / f"{name.replace('.', '/')}.py"
        if not program.is_file():
            wrong.append(f"there is no program {name}")
        elif "ArgumentParser" in program.read_text():
            with pytest.raises(Stopped) as stopped:
                importlib.import_module(f"steptime.{name}").main()
            known, needed = options_of(stopped.value.args[0])
            given = set(re.findall(r"(?<!\S)\[?(--[a-z-]+)", words))
            wrong += [f"{name} has no {option}" for option in given - known]
            if given:
                wrong += [f"{name} lacks {option} in{words}" for option in needed - given]
    assert len(commands()) > 20
    assert wrong == []


def test_every_script_and_make_target_that_is_named_is_there():
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = re.compile(r"(?:`| {4})make ([a-z][a-z-]*)")
    files = [*(ROOT / "workflow").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), *DOCUMENTS]
    text = "\n".join(path.read_text() for path in files)
    named = set(code.findall(text))
    assert named and named - made == set()
    scripts = set(re.findall(r"python (benchmarks/[\w/]+(?:\.py)?)", text))
    assert scripts and [name for name in scripts if not (ROOT / name).exists()] == []


def test_every_name_that_the_documents_ask_for_is_there():
    catalogues = [
        *ROOT.glob("resources/papers/*/paper.yaml"),
        ROOT / "resources/steptime/catalogue.yaml",
    ]
    made = {
        f"{path.parent.name}_{name}"
        for path in catalogues
        for name in yaml.safe_load(path.read_text())["artefacts"]
    }
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    owners = "|".join({name.partition("_")[0] for name in made})
    asked = re.compile(r"TARGET=(\w+)|^ {4}.*snakemake .*-- ([\w ]+)", re.MULTILINE)
    named = set()
    for path in DOCUMENTS:
        text = path.read_text()
        named |= set(re.findall(rf"\b(?:{owners})_\w+", text))
        named |= {name for pair in asked.findall(text) for name in " ".join(pair).split()}
    missing = named - made - set(re.findall(r"^rule (\w+):", rules, re.MULTILINE))
    # What the guides add.
    assert missing == {"doe2020_table1", "doe2020_fig1", "steptime_lstms", "steptime_outcomes"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


def test_the_site_has_no_dead_link(site):
    assert (site / "search/search_index.js").is_file()


@pytest.mark.skipif(browser.find() is None, reason="there is no Chromium on PATH")
def test_the_site_is_searched_and_dark_without_a_server(site, tmp_path):
    with browser.chromium(browser.find(), tmp_path) as page:
        page.open(site / "index.html", dark=True)
        page.wait("document.body.dataset.mdColorScheme === 'slate'")
        page.run(
            "(() => { const query = document.querySelector('[data-md-component=search-query]');"
            "query.focus(); query.value = 'disturbed'; query.dispatchEvent(new Event('keyup')); })()"
        )
        page.wait("document.querySelectorAll('.md-search-result__item').length > 0")
        page.open(site / "example/index.html")
        assert page.complaints == []


def test_an_example_report_lies_here():
    text = (ROOT / "docs/example/index.html").read_text()
    assert len(text) < 3_000_000 and 'href="../' not in text
    assert re.search(r"<dt>Code</dt><dd>[0-9a-f]{12}\b", text)


def test_links_of_the_other_documents_are_not_dead():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/README.md"):
        document = ROOT / name
        for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
            assert target.startswith("https:") or (document.parent / target).exists(), target


def test_the_action_writes_the_verdict_and_its_status(tmp_path):
    """Its last step, with a launcher that finds something slower."""
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][-1]
    launcher = tmp_path / "workflow/scripts/launch"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        'mkdir -p watch/a/results/compare; echo "$@" > watch/a/results/compare/b.md; exit 1\n'
    )
    launcher.chmod(0o755)
    files = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    inputs = {"BASE": "torch", "CANDIDATE": "2.12.0", "NETWORKS": "fcn5 lstm32", "MINUTES": "5"}
    assert set(inputs) == set(step["env"])
    environment = os.environ | files | inputs | {"GITHUB_ACTION_PATH": str(tmp_path)}
    subprocess.run(["bash", "-ec", step["run"]], env=environment, check=True)
    said = "compare.watch torch 2.12.0 --networks fcn5 lstm32 --minutes 5\n"
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == said
    assert "status=1\n" in (tmp_path / "GITHUB_OUTPUT").read_text()


def test_every_variable_of_the_project_is_documented():
    """No more than are needed: each is one more thing that a result may depend on unseen."""
    files = [
        ROOT / "Makefile",
        *(ROOT / "workflow").rglob("*.py"),
        *(ROOT / "workflow").rglob("*.smk"),
    ]
    files += [ROOT / "workflow/scripts/launch", *(ROOT / "tests/workflow").glob("*.py")]
    used = {name for path in files for name in VARIABLE.findall(path.read_text())}
    page = (ROOT / "docs/reference/variables.md").read_text()
    assert used == set(VARIABLE.findall(page))
