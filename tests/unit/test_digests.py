"""What a digest of code sees, and what it leaves out."""

import os
import shutil
import subprocess
import sys

import pytest
from examples import CATALOGUE

from steptime import networks
from steptime.environments import interpreter
from steptime.plan import digests

PROVEN = ("fcn5", "resnet50", "lstm32", "mnist")


def digest_of(path, text):
    path.write_text(text)
    return digests.code_digest([path])


def test_comments_docstrings_and_layout_leave_a_digest(tmp_path):
    path = tmp_path / "one.py"
    one = digest_of(path, '"""Says."""\ndef f(x):\n    """Does."""\n    return x + 1\n')
    assert digest_of(path, '"""Says more."""\n\n\ndef f(x):\n    # why\n    return x + 1\n') == one
    assert digest_of(path, "def f(x):\n    return x + 2\n") != one


def test_what_a_program_imports_and_names_belongs_to_its_code():
    names = ("steptime.prove.compare", "worker.tasks.proof", "worker.frameworks.torch7")
    closure = digests.closure(*map(digests.module_path, names))
    found = {str(path.relative_to(digests.SCRIPTS)) for path in closure}
    assert found >= {"steptime/prove/golden.py", "steptime/networks/layers/lstm.py"}
    assert found >= {"shared/specification.py", "worker/frameworks/torch7/torch7.lua"}
    tables = {path.name for path in digests.closure(digests.module_path("steptime.render.tables"))}
    assert tables >= {"page.html.jinja", "style.css"}


def test_a_proof_and_a_training_are_no_part_of_what_times_a_step():
    names = ("worker.__main__", "worker.tasks.step", "worker.frameworks.torch")
    found = {
        str(path.relative_to(digests.SCRIPTS / "worker"))
        for path in digests.closure(*map(digests.module_path, names))
        if path.is_relative_to(digests.SCRIPTS / "worker")
    }
    assert found >= {"timing.py", "building.py", "contract.py", "settings/torch.py"}
    frameworks = {path for path in found if path.startswith("frameworks/")}
    own = {"__init__.py", "torch/__init__.py"}
    assert frameworks <= {f"frameworks/{name}" for name in own}
    assert not found & {"tasks/proof.py", "tasks/training.py"}


def test_a_module_of_a_framework_is_part_of_nothing_but_itself():
    """And what its folder declares is a part of it, which Python runs first."""
    folder = digests.SCRIPTS / "worker/frameworks/torch"
    apart = {folder / name for name in ("ranks.py", "asynchronous.py", "mixed.py", "parts.py")}
    assert not apart & set(digests.closure(folder / "__init__.py"))
    for path in apart:
        assert folder / "__init__.py" in digests.closure(path)


def test_what_a_worker_runs_is_no_part_of_a_reference():
    """A reference takes minutes: it shares with workers what the numbers are, and nothing of how they are had."""
    files = digests.closure(digests.module_path("steptime.prove.reference"))
    assert not [path for path in files if path.is_relative_to(digests.SCRIPTS / "worker")]
    shared = {path.stem for path in files if path.is_relative_to(digests.SCRIPTS / "shared")}
    numbers = "data evaluation limits masks narrow precisions sketch specification"
    assert shared == {"__init__", *numbers.split()}


@pytest.fixture
def code_of(tmp_path, monkeypatch):
    """A copy of the scripts, and the digests of what is timed and proven of a network there."""
    copied = tmp_path / "scripts"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(digests.SCRIPTS, copied, ignore=ignored)
    monkeypatch.setattr(digests, "SCRIPTS", copied)

    def code_of(network):
        folder = copied / "steptime/networks"
        records = {path.stem for path in folder.glob("*/*.py") if path.stem != "__init__"}
        used = networks.used_records(networks.specify(network, CATALOGUE))
        programs = [
            ("worker.__main__", "worker.tasks.step", "worker.frameworks.torch"),
            ("worker.tasks.proof", "steptime.prove.compare", "steptime.prove.golden"),
        ]
        return [
            digests.code_digest(
                digests.closure(*map(digests.module_path, program), unused=records - used),
                records,
                used,
            )
            for program in programs
        ]

    return copied, code_of


def changed_by(code_of, path, before, after):
    """The networks of which something is timed again after an edit, and those proven again."""
    scripts, digests_of = code_of
    old = {name: digests_of(name) for name in PROVEN}
    text = (scripts / path).read_text() if (scripts / path).exists() else ""
    assert before in text
    (scripts / path).write_text(text.replace(before, after, 1) if before else after)
    new = {name: digests_of(name) for name in PROVEN}
    return tuple({name for name in PROVEN if old[name][kind] != new[name][kind]} for kind in (0, 1))


RECORDS = "steptime/networks"
RELU = '    "relu": lambda'
NEW = """from steptime.networks.layers import LayerKind
from steptime.networks.squashing import softsign

LAYER = LayerKind(softsign)
"""


def test_a_new_record_times_and_proves_nothing_again(code_of):
    """Its file, what it alone imports, and its line in an adapter."""
    assert changed_by(code_of, f"{RECORDS}/squashing.py", "", "def softsign(): pass") == (
        set(),
        set(),
    )
    assert changed_by(code_of, f"{RECORDS}/layers/softsign.py", "", NEW) == (set(), set())
    line = '    "softsign": lambda node, in_place: nn.Softsign(),\n'
    adapter = "worker/frameworks/torch/__init__.py"
    assert changed_by(code_of, adapter, RELU, line + RELU) == (set(), set())
    new = "from steptime.networks.optimisers import Optimiser\n"
    assert changed_by(code_of, f"{RECORDS}/optimisers/lion.py", "", new) == (set(), set())
    assert changed_by(code_of, adapter, '"adamw")', '"adamw", "lion")') == (set(), set())


@pytest.mark.parametrize(
    "path, before, after, proven",
    [
        ("layers/conv.py", "AT_ONCE = 2", "AT_ONCE = 3", {"resnet50", "mnist"}),
        ("windows.py", "< 0", "< 1", {"resnet50", "mnist"}),
        ("layers/sigmoid.py", "0.5", "0.6", {"fcn5", "lstm32"}),
        ("optimisers/adadelta.py", "gradient**2", "gradient**3", {"mnist"}),
        ("losses/softmax_cross_entropy.py", "labels.size", "1", set(PROVEN)),
    ],
)
def test_an_edit_of_a_record_proves_again_what_uses_it(code_of, path, before, after, proven):
    assert changed_by(code_of, f"{RECORDS}/{path}", before, after) == (set(), proven)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_every_version_of_python_gives_the_same_digests(version):
    python = interpreter.find(version, lambda *_: subprocess.CompletedProcess([], 1, ""))
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    names = "'steptime.plan.digests', 'worker.__main__', 'worker.frameworks.torch'"
    # As of a worker: without what a network has no use for.
    folder = digests.SCRIPTS / "steptime/networks"
    records = {path.stem for path in folder.glob("*/*.py") if path.stem != "__init__"}
    used = networks.used_records(networks.specify("fcn5", CATALOGUE))
    program = (
        "from steptime.plan.digests import *; "
        f"files = closure(*map(module_path, [{names}]), unused={records - used}); "
        f"print(program_digest({names}), code_digest(files, {records}, {used}))"
    )
    environment = os.environ | {"PYTHONPATH": str(digests.SCRIPTS)}
    printed = [
        subprocess.run(
            [each, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for each in (sys.executable, str(python))
    ]
    assert printed[0] == printed[1] and [len(each) for each in set(printed[0].split())] == [16, 16]
