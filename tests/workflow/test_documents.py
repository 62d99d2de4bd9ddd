"""The documents: a site without a dead link, sentences that can be read, and nothing named that is not there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "config/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MOST_WORDS = 35
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


@pytest.mark.parametrize(
    "path",
    DOCUMENTS,
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_sentences_are_short(path):
    long = [text for text in sentences(path.read_text()) if len(text.split()) > MOST_WORDS]
    assert long == []


def test_long_sentences_are_found():
    prose = "word " * 40
    assert len(sentences(f"Short.\n\n- {prose}.\n\n    {prose}\n\n| {prose} |")[1].split()) > 35
    assert len(sentences(f"Short.\n\n- {prose}.\n\n    {prose}\n\n| {prose} |")) == 2


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


def test_every_target_of_make_that_the_documents_name_is_there():
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = re.compile(r"(?:`| {4})make ([a-z][a-z-]*)")
    named = {name for path in DOCUMENTS for name in code.findall(path.read_text())}
    assert named and named - made == set()


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


def test_the_site_has_no_dead_link(tmp_path):
    done = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_links_of_the_other_documents_are_not_dead():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/README.md"):
        document = ROOT / name
        for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
            assert target.startswith("https:") or (document.parent / target).exists(), target


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
