"""The project's own style: linters, formatters, spelling, and Python 3.6 for what runs in old environments."""

import ast
import graphlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from steptime.environments import interpreter
from steptime.plan import digests

TOOLS = Path(sys.executable).parent
RULES = [
    "Snakefile",
    "workflow/Snakefile",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "workflow/rules").rglob("*.smk")),
]


@pytest.mark.parametrize(
    "command",
    [
        ["snakemake", "--lint"],
        ["snakefmt", "--check", *RULES],
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["codespell"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_clean(command):
    done = subprocess.run(
        [TOOLS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


# What each package of the project may import of it.
MAY = {"shared": {"shared"}, "worker": {"shared", "worker"}, "steptime": {"shared", "steptime"}}


@pytest.mark.parametrize("package", MAY)
def test_a_package_imports_nothing_that_it_may_not(package):
    for path in sorted((ROOT / "workflow/scripts" / package).rglob("*.py")):
        tree, imported = ast.parse(path.read_text()), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
        assert not imported & (set(MAY) - MAY[package]), path


@pytest.mark.parametrize("package", ["steptime", "steptime.artefacts"])
def test_no_two_rooms_of_the_workflow_import_each_other(package):
    """Rooms are the folders in it; what is beside them is below all, but for the programs of a whole check."""
    top = ROOT.joinpath("workflow/scripts", *package.split("."))
    above, within = graphlib.TopologicalSorter(), f"{package}."
    for path in top.glob("*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(within):
                room = node.module.removeprefix(within).split(".")[0]
                own = path.relative_to(top).parts[0]
                if room != own and (top / room).is_dir():
                    above.add(own, room)
    above.prepare()


@pytest.mark.parametrize("package", ["shared", "worker"])
def test_what_runs_in_old_environments_is_python_3_6(package):
    for path in sorted((ROOT / "workflow/scripts" / package).rglob("*.py")):
        tree = ast.parse(path.read_text(), feature_version=(3, 6))
        assert not any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree)), path


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "workflow/scripts/worker/frameworks").rglob("*.py")),
    ids=lambda path: f"{path.parent.name}.{path.stem}",
)
def test_an_adapter_takes_nothing_private_of_another(path):
    tree = ast.parse(path.read_text())
    beside = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level in (1, 2)
    ]
    taken = [alias.name for node in beside for alias in node.names]
    others = {
        alias.asname or alias.name for node in beside if not node.module for alias in node.names
    }
    taken += [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in others
    ]
    assert not [name for name in taken if name.startswith("_")]


def test_worker_starts_on_a_real_python_3_6(tmp_path):
    """All of it compiles there, and what needs no numpy is imported."""
    python = interpreter.find("3.6", lambda *_: subprocess.CompletedProcess([], 1, ""))
    if python is None:
        pytest.skip("there is no Python 3.6 on this machine")
    script = "import compileall, sys; sys.exit(not compileall.compile_dir(sys.argv[1], quiet=1, force=True))"
    for package in ("shared", "worker"):
        shutil.copytree(ROOT / "workflow/scripts" / package, tmp_path / package)
    subprocess.run([python, "-c", script, tmp_path], check=True)
    modules = "import worker.building, worker.contract, shared.specification, shared.statistics, worker.usage"
    subprocess.run([python, "-c", modules], check=True, cwd=tmp_path)


def test_no_file_of_arrays_runs_what_it_holds():
    """Before NumPy 1.16.3 that is the default, and a file may have been carried here."""
    for path in (*(ROOT / "workflow").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.load":
                assert "allow_pickle=False" in map(ast.unparse, node.keywords), path


@pytest.mark.parametrize("folder", ["workflow", "tests", "benchmarks"])
def test_no_function_is_long(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
                assert node.end_lineno - first.lineno < 60, f"{path}: {node.name}"


def _is_made_of_others(node):
    """Tells whether a value is none that something begins with."""
    if isinstance(node, ast.Name):
        return node.id != "np"
    called = node.func if isinstance(node, ast.Call) else None
    parts = [part for part in ast.iter_child_nodes(node) if part is not called]
    parts += [called.value] if isinstance(called, ast.Attribute) else []
    return any(map(_is_made_of_others, parts))


def _is_too_dense(node):
    """Tells whether a line was saved that a reader pays for."""
    if isinstance(node, ast.Starred):
        # f(*(one, two), *(three, four)), which the formatter leaves on two lines.
        return isinstance(node.value, ast.List | ast.Tuple)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        # "s" * (count > 1), [one] * bool(one).
        sides = (node.left, node.right)
        literal = ast.List | ast.Tuple | ast.JoinedStr
        is_text = any(
            isinstance(side, literal) or isinstance(getattr(side, "value", None), str)
            for side in sides
        )
        return is_text and any(
            isinstance(side, ast.Compare)
            or ast.unparse(side).startswith(("bool(", "not ", "is_", "has_"))
            for side in sides
        )
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
        # rows, cells = [], measured(inputs): one is where it begins, the other has nothing to do with it.
        values = node.value.elts
        begins = any(ast.unparse(value) in ("[]", "{}") for value in values)
        return begins and any(map(_is_made_of_others, values))
    return False


def test_no_line_is_saved_that_a_reader_pays_for():
    # Each edit of what computes the references would compute all of them anew.
    left = set(digests.closure(digests.module_path("steptime.prove.reference")))
    for path in {*(ROOT / "workflow/scripts").rglob("*.py")} - left:
        nodes = ast.walk(ast.parse(path.read_text()))
        dense = [ast.unparse(node) for node in nodes if _is_too_dense(node)]
        assert not dense, path


def test_every_rule_says_what_it_does():
    listed = subprocess.run(
        [TOOLS / "snakemake", "--list-rules"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rules = [line for line in listed.stdout.splitlines() if line]
    assert rules and all("(" in line or line == "all" for line in rules), listed.stdout


def test_every_artefact_of_a_paper_is_a_rule_and_every_rule_an_artefact_of_its_catalogue():
    command = [TOOLS / "snakemake", "--list-target-rules"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rules = {line.partition(" ")[0] for line in listed.splitlines()}
    papers = {
        path.parent.name: yaml.safe_load(path.read_text())
        for path in ROOT.glob("resources/papers/*/paper.yaml")
    }
    artefacts = {
        f"{name}_{artefact}" for name, paper in papers.items() for artefact in paper["artefacts"]
    }
    assert artefacts == {rule for rule in rules if rule.partition("_")[0] in papers}
    shown = [
        place
        for entry in papers["dai2019"]["artefacts"]["principles"]["principles"]
        for place in entry["shown_by"]
    ]
    for place in shown:
        path, _, test = place.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text() if test else place in rules, place


# Lines of Python (and of rules), and words of documents: round, with room, so that no room grows unseen. Code that
# reads faster is worth its lines.
BUDGETS = {
    "workflow/scripts/**/*.py": 51_500,
    "workflow/scripts/worker/**/*.py": 15_500,
    "workflow/scripts/steptime/artefacts/**/*.py": 8_600,
    "workflow/**/[!.]*.smk": 700,
    "tests/**/*.py": 21_700,
    "benchmarks/**/*.py": 7_500,
}
WORDS = 46_000


@pytest.mark.parametrize("pattern", BUDGETS)
def test_no_room_outgrows_its_budget(pattern):
    lines = sum(len(path.read_text().splitlines()) for path in ROOT.glob(pattern))
    assert lines <= BUDGETS[pattern]


def test_the_documents_do_not_outgrow_their_budget():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "config/README.md"]
    # Pages of papers are made of packs.
    written = [page for page in pages if page.parent.name != "papers"]
    assert sum(len(page.read_text().split()) for page in written) <= WORDS
