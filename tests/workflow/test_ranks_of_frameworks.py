"""Real frameworks on several ranks: what each declares of its exchanges, its proof bears out, and a tiny network is
timed.

Some of them in every run of the tests, or with STEPTIME_ZOO=all (`make test-zoo`) each that declares any. What ranks
can do wrong is planted in Chainer and CNTK, and what groups of them can in PyTorch.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import psutil
import pytest
import yaml
from conftest import ROOT

from steptime import machine, networks
from steptime.cells import outcomes
from steptime.cells.measure import fill
from steptime.environments import interpreter
from steptime.plan import exchanges
from steptime.prove import adapter, network
from steptime.supervisor import supervise
from steptime.supervisor.supervise import run_worker
from worker import contract
from worker.grouping import GROUPED

ALL = os.environ.get("STEPTIME_ZOO") == "all"
NETWORKS = yaml.safe_load((ROOT / "config/networks.yaml").read_text())
CATALOGUE = yaml.safe_load((ROOT / "config/frameworks.yaml").read_text())
QUICK = ("torch-2.13-async", "torch-2.13-mixed", "chainer-7.8-sync", "cntk-2.7-sync")
# Those that tell how stale their gradients are.
TELL = ("torch", "tensorflow", "tensorflow1")


def asked():
    """Environment, its entry and exchange of each that can."""
    for framework in CATALOGUE.values():
        for name in framework["environments"]:
            entry = framework | framework.get("differing", {}).get(name, {})
            for exchange in exchanges.of_adapter(entry["adapter"]):
                if entry.get("device", "cpu") == "cpu":
                    yield pytest.param(name, entry, exchange, id=f"{name}-{exchange}")


def job_of(environment, entry, exchange):
    """The job of a proof on two ranks, or on two groups of them."""
    devices = 2 * GROUPED.get(exchange, 1)
    return {
        "environment": environment,
        "adapter": exchanges.adapter_of(entry["adapter"], devices, exchange),
        "mode": entry["modes"][0],
        "variables": entry.get("variables", {}),
        "worker_digest": "",
        "devices": devices,
        "exchange": exchange,
    }


def timed(job, prefix, log, sampling=None, watches=()):
    """The outcome of a cell of a tiny network."""
    asked = network.worker_job(job, networks.tiny("dense")) | {"task": "step"}
    return run_worker(
        prefix,
        asked | {"sampling": adapter.SAMPLING | (sampling or {})},
        machine.cpus_of_ranks(1, job["devices"]),
        fill(job["variables"], 1, job["mode"], prefix),
        adapter.LIMIT_SECONDS,
        adapter.LIMIT_BYTES,
        log,
        watches=watches,
    )


@pytest.mark.parametrize(
    ("environment", "entry", "exchange"),
    list(asked()) if ALL else [each for each in asked() if each.id in QUICK],
)
def test_ranks_are_proven_and_timed(environment, entry, exchange, tmp_path):
    prefix = interpreter.prefix_of(environment)
    if not (prefix / "bin/python").exists():
        pytest.skip(f"{environment} is not made here")
    job = job_of(environment, entry, exchange)
    spec, log = networks.tiny("dense"), tmp_path / "log"
    if "training" in contract.declared(job["adapter"])["TASKS"]:
        # It is fed, besides.
        spec = networks.specify("mnist-hidden-100", NETWORKS, narrow=True)
    verdict, details = network.prove(job, spec, "", log)
    if verdict["status"] == "unsupported":
        # Such as a mode, or a version: one sentence.
        assert verdict["reason"]
        return
    assert verdict["status"] == "ok", verdict
    left = set(Path("/dev/shm").iterdir())
    outcome = timed(job, prefix, log)
    assert outcome.status == "ok", outcome
    found = outcomes.exchanged(outcome)
    tells = exchange in GROUPED and entry["adapter"] in TELL
    assert (found["staleness"] is not None) == tells
    assert set(Path("/dev/shm").iterdir()) <= left


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("right", "^$"),
        ("summed", "every update is 2 times the specification's: .* summed and not averaged"),
        ("apart", "after 1 steps, rank 1 has other weights than rank 0 in "),
        ("silent", "the gradient of .* differs"),
        ("other_start", "rank 1 has other weights than rank 0 in "),
        ("shared_batch", "the first loss is "),
    ],
)
def test_a_wrong_way_of_sharing_is_refused_in_chainer(how, words, tmp_path, monkeypatch):
    environment, entry = "chainer-7.8", CATALOGUE["chainer"]
    if not (interpreter.folder(environment) / "bin/python").exists():
        pytest.skip(f"{environment} is not made here")
    worker, name = tmp_path / "scripts/worker", "together_in_chainer"
    shutil.copytree(supervise.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / f"tests/defects/{name}.py", worker / "adapters")
    monkeypatch.setattr(supervise, "WORKER", worker)
    job = job_of(environment, entry, "sync") | {"adapter": name, "mode": how}
    verdict, _ = network.prove(job, networks.tiny("dense"), "", tmp_path / "log")
    if "no network of their own" in verdict["reason"]:
        pytest.skip(verdict["reason"])
    assert verdict["status"] == ("ok" if how == "right" else "not_equivalent"), verdict
    assert re.search(words, verdict["reason"]), verdict["reason"]


UPDATED = "self._lie(self._common)\n        self._descend()"
# What is wrong of ranks and groups of them: what stands in an adapter, what takes its place, and what is said of it.
PLANTED = {
    ("cntk-2.7", "sync", "cntk_ranks", "apart"): (
        "return distributed.data_parallel_distributed_learner(",
        "return learner or dict(",
        "rank 1 has other weights than rank 0 in ",
    ),
    ("cntk-2.7", "sync", "cntk_ranks", "shared_batch"): (
        "ranks.share(job, LAYOUT)",
        "ranks.share(job, LAYOUT, 0)",
        "the first loss is ",
    ),
    ("cntk-2.7", "sync", "cntk_ranks", "other_start"): (
        "    meet(job)\n    job",
        "    meet(job)\n    for values in job.weights.values():\n        values *= 1 + job.rank\n    job",
        "rank 1 has other weights than rank 0 in ",
    ),
    ("cntk-2.7", "sync", "cntk_ranks", "one_bit"): (
        "FLOAT32_BITS = 32",
        "FLOAT32_BITS = 1",
        "every update is 0[.].* times the specification's",
    ),
    ("cntk-2.7", "sync", "cntk", "summed"): (
        "labels.size * job.ranks",
        "labels.size",
        "every update is 2 times the specification's",
    ),
    ("torch-2.13", "mixed", "torch_mixed", "absent"): (
        "self._descend = own._update\n",
        "self._descend = own._update\n        for value in self._trained if job.rank % 2 else ():\n"
        "            value.register_hook(lambda gradient: 0 * gradient)\n",
        "the gradient of .* differs",
    ),
    ("torch-2.13", "mixed", "torch_mixed", "summed"): (
        UPDATED,
        UPDATED.replace(
            "self._descend()",
            "[value.grad.mul_(2) for value in self._trained]\n        self._descend()",
        ),
        "every update is 2 times the specification's",
    ),
    ("torch-2.13", "mixed", "torch_mixed", "silent"): (
        UPDATED,
        UPDATED.replace("self._common", "self._seen if self._number else self._common"),
        "in the turn of group 1 no weight changes: its gradients do not arrive",
    ),
    ("torch-2.13", "mixed", "torch_mixed", "stale"): (
        "self._copy(self._common, self._seen)\n        # Neither",
        "self._before or self._copy(self._common, self._seen)\n        # Neither",
        "in turn . of group ., .* is wrong after",
    ),
}


@pytest.mark.parametrize(
    "planted", [each for each in PLANTED if ALL or each[-1] in ("absent", "summed")], ids="-".join
)
def test_ranks_that_are_wrong_are_refused_in_a_real_framework(planted, tmp_path, monkeypatch):
    environment, exchange, adapter, _ = planted
    if not (interpreter.prefix_of(environment) / "bin/python").exists():
        pytest.skip(f"{environment} is not made here")
    worker = tmp_path / "scripts/worker"
    shutil.copytree(supervise.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(supervise, "WORKER", worker)
    path, (right, wrong, words) = worker / f"adapters/{adapter}.py", PLANTED[planted]
    assert path.read_text().count(right) == 1
    path.write_text(path.read_text().replace(right, wrong))
    entry = next(each for each in CATALOGUE.values() if environment in each["environments"])
    job = job_of(environment, entry, exchange)
    verdict, _ = network.prove(job, networks.tiny("dense"), "", tmp_path / "log")
    assert verdict["status"] == "not_equivalent"
    assert re.search(words, verdict["reason"]), verdict


class _Killer:
    """Kills the last rank when steps begin to be timed."""

    def begin(self):
        *_, last = (
            each for each in psutil.Process().children() if each.cmdline()[1:3] == ["-m", "worker"]
        )
        last.kill()

    def end(self):
        pass

    def look(self, pid):
        pass


@pytest.mark.skipif(not ALL, reason="only with STEPTIME_ZOO=all")
@pytest.mark.parametrize(("environment", "entry", "exchange"), list(asked()))
def test_a_killed_rank_ends_all_and_leaves_no_process_memory_or_file(
    environment, entry, exchange, tmp_path, monkeypatch
):
    prefix = interpreter.prefix_of(environment)
    if not (prefix / "bin/python").exists():
        pytest.skip(f"{environment} is not made here")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    job, before = job_of(environment, entry, exchange), set(Path("/dev/shm").iterdir())
    outcome = timed(job, prefix, tmp_path / "log", {"budget_seconds": 60.0}, [_Killer()])
    if outcome.status == "unsupported":
        return
    killed = f"rank {job['devices'] - 1}: "
    assert outcome.status == "crashed" and outcome.reason.startswith(killed), outcome
    assert not psutil.Process().children(recursive=True)
    assert set(Path("/dev/shm").iterdir()) <= before and not list(scratch.iterdir())
