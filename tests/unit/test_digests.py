"""What a digest of code sees, and what it leaves out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steptime.environments import interpreter
from steptime.plan import digests

KINDS = ("dense", "conv", "attention")
ADAPTER = """
LAYERS = {{"dense": _dense{entry}}}


def build(job):
    return _Trainer(LAYERS, job)


class _Trainer:
    pass


def _dense(node):
    return node["units"]
{more}"""
ATTENTION = """

def _attention(node):
    return _heads(node)


def _heads(node):
    return node["heads"]
"""


def digest_of(path, text, used=("dense",)):
    path.write_text(text)
    return digests.code_digest([path], KINDS, used)


def test_comments_docstrings_and_layout_leave_a_digest(tmp_path):
    path = tmp_path / "one.py"
    one = digest_of(path, '"""Says."""\ndef f(x):\n    """Does."""\n    return x + 1\n')
    assert digest_of(path, '"""Says more."""\n\n\ndef f(x):\n    # why\n    return x + 1\n') == one
    assert digest_of(path, "def f(x):\n    return x + 2\n") != one


def test_a_new_layer_kind_leaves_the_digests_of_networks_without_it(tmp_path):
    path = tmp_path / "adapter.py"
    before, after = (
        ADAPTER.format(entry="", more=""),
        ADAPTER.format(entry=', "attention": _attention', more=ATTENTION),
    )
    assert digest_of(path, after) == digest_of(path, before)
    both = ("dense", "attention")
    assert digest_of(path, after, both) != digest_of(path, before, both)
    assert digest_of(path, after.replace('heads"', 'head"'), both) != digest_of(path, after, both)
    # What a kind that is used needs is never left out.
    assert digest_of(path, after.replace("units", "unit")) != digest_of(path, after)


def test_what_a_program_imports_and_names_belongs_to_its_code():
    found = {
        str(path.relative_to(digests.SCRIPTS))
        for path in digests.closure(
            digests.module_path("steptime.prove.compare"),
            digests.module_path("worker.adapters.torch7"),
        )
    }
    assert found >= {
        "steptime/prove/golden.py",
        "steptime/prove/optimisers.py",
        "worker/tasks/proof.py",
        "worker/openblas.py",
    }
    assert found >= {
        "worker/adapters/torch7.lua",
        "worker/adapters/__init__.py",
        "steptime/networks/specification.py",
    }
    tables = {path.name for path in digests.closure(digests.module_path("steptime.render.tables"))}
    assert tables >= {"page.html.jinja", "style.css"}


def test_a_proof_and_a_training_are_no_part_of_what_times_a_step():
    names = ("worker.__main__", "worker.tasks.step", "worker.adapters.torch")
    found = {path.stem for path in digests.closure(*map(digests.module_path, names))}
    assert found >= {"timing", "building", "contract", "torch_settings"}
    assert not found & {"proof", "training", "mxnet"}


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_every_version_of_python_gives_the_same_digests(version):
    python = interpreter.find(version, lambda *_: subprocess.CompletedProcess([], 1, ""))
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    program = "from steptime.plan.digests import *; print(program_digest('steptime.plan.digests', 'worker.__main__'))"
    environment = os.environ | {"PYTHONPATH": str(digests.SCRIPTS)}
    printed = [
        subprocess.run(
            [each, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for each in (sys.executable, str(python))
    ]
    assert printed[0] == printed[1] and len(printed[0].strip()) == 16, Path(python)
