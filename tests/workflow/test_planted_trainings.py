"""Each defect of training is refused in a real framework: the quickest in PyTorch.

With STEPTIME_ZOO=all (`make test-zoo`) all, in every environment and mode that can train.
"""

import ast
import shutil

import pytest
from conftest import ROOT
from examples import CATALOGUE as NETWORKS
from today import ALL, CATALOGUE, TORCH, entry_of, prefix_of

from shared import declarations
from steptime import networks
from steptime.prove import network
from steptime.supervisor import supervise

WORKER = ROOT / "workflow/scripts/worker"
# The defect, the network that shows it, and words of the reason.
PLANTED = {
    "Right": ("mnist", ""),
    "Unfed": ("mnist", "the mean loss over 3 mini-batches that were fed"),
    "Rateless": ("mnist-cntk", "the mean loss over 3 mini-batches that were fed"),
    "LastLoss": ("mnist", "the mean loss over 3 mini-batches that were fed"),
    "Forgetful": ("cifar10", "is wrong after one step and then a call of 3 steps"),
    "Descending": ("cifar10", "is wrong after one step"),
    "DroppingScores": ("mnist", "dropout may be in them"),
}
QUICK = [(TORCH, "eager", name) for name in ("Rateless", "Forgetful", "DroppingScores")]


def trainable():
    """Environment and mode of all that declare the task training, with each defect whose network they have."""
    for framework in CATALOGUE.values():
        for environment in framework["environments"]:
            entry = entry_of(environment)
            has = declarations.declared(entry["adapter"])
            for defect, (chosen, _) in PLANTED.items():
                spec = networks.specify(chosen, NETWORKS, narrow=True)
                kinds = {node["op"] for node in spec["nodes"]}
                trains = "training" in has["TASKS"] and kinds <= set(has["LAYERS"])
                if trains and spec["optimiser"]["name"] in has["OPTIMISERS"]:
                    yield from ((environment, mode, defect) for mode in entry["modes"])


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """A copy of the worker in which adapters with planted defects have a place."""
    copied = tmp_path_factory.mktemp("planted") / "worker"
    shutil.copytree(WORKER, copied, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests/defects/around.py", copied / "frameworks/around.py")
    (copied / "frameworks/planted").mkdir()
    return copied


def plant(worker, adapter):
    """Writes the adapter `planted`, which declares what another one does, and builds its trainers with a defect."""
    known = [
        target.id
        for node in ast.parse((WORKER / f"frameworks/{adapter}/__init__.py").read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
        and target.id in declarations.DEFAULTS
        # Of one device alone.
        and target.id != "EXCHANGES"
    ]
    lines = [f"from .. import {adapter}, around", f"versions = {adapter}.versions"]
    lines += [f"{name} = {adapter}.{name}" for name in known]
    lines += ["def build(job):", f"    return around.build({adapter}, job)"]
    (worker / "frameworks/planted/__init__.py").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("environment", "mode", "defect"), [*trainable()] if ALL else QUICK)
def test_a_defect_of_training_is_refused_in_a_real_framework(
    environment, mode, defect, worker, tmp_path, monkeypatch
):
    prefix_of(environment)
    entry = entry_of(environment)
    plant(worker, entry["adapter"])
    monkeypatch.setattr(supervise, "WORKER", worker)
    chosen, words = PLANTED[defect]
    job = {
        "environment": environment,
        "adapter": "planted",
        "mode": mode,
        "variables": entry.get("variables", {}) | {"PLANTED_DEFECT": defect},
        "worker_digest": "",
    }
    spec = networks.specify(chosen, NETWORKS, narrow=True)
    verdict, _ = network.prove(job, spec, "", tmp_path / "worker.log")
    assert verdict["status"] == ("not_equivalent" if words else "ok"), verdict["reason"]
    assert words in verdict["reason"]
