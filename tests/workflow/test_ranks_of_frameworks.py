"""Real frameworks on several ranks: what each declares of its exchanges, its proof bears out, and a tiny network is
timed.

Some of them in every run of the tests, or with STEPTIME_ZOO=all (`make test-zoo`) each that declares any. What ranks,
and groups of them, can do wrong is planted in those of PLANTED.
"""

import re
import shutil
import signal
import tempfile
from contextlib import nullcontext
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from defects.together_in_frameworks import PLANTED
from examples import CATALOGUE as NETWORKS
from today import ALL, CATALOGUE, JAX, MXNET, TORCH, entry_of, only_zoo, prefix_of

from shared import declarations
from shared.grouping import GROUPED
from steptime import machine, networks
from steptime.cells.measure import fill
from steptime.plan import exchanges
from steptime.prove import adapter, network
from steptime.supervisor import network as own_network
from steptime.supervisor import supervise
from steptime.supervisor.supervise import run_worker

pytestmark = pytest.mark.alone

QUICK = (f"{TORCH}-mixed",)
# Those that tell how stale their gradients are.
TELL = ("torch", "tensorflow", "tensorflow1")
# Some of PLANTED.
FEW = [(TORCH, "sync", "absent"), (TORCH, "mixed", "summed")]
# Of a cell whose rank hangs: the slowest of them begin to be timed before.
HANGING_SECONDS = 60


def asked():
    """Environment, its entry and exchange of each that can."""
    for framework in CATALOGUE.values():
        for name in framework["environments"]:
            entry = entry_of(name)
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


def timed(job, prefix, log, sampling=None, watches=(), seconds=adapter.LIMIT_SECONDS):
    """The outcome of a cell of a tiny network."""
    asked = network.worker_job(job, networks.tiny("dense")) | {"task": "step"}
    return run_worker(
        prefix,
        asked | {"sampling": adapter.SAMPLING | (sampling or {})},
        machine.cpus_of_ranks(1, job["devices"]),
        fill(job["variables"], 1, job["mode"], prefix),
        seconds,
        4 * 2**30,
        log,
        watches=watches,
    )


@pytest.mark.parametrize(
    ("environment", "entry", "exchange"),
    list(asked()) if ALL else [each for each in asked() if each.id in QUICK],
)
def test_ranks_are_proven_and_timed(environment, entry, exchange, tmp_path):
    prefix = prefix_of(environment)
    job = job_of(environment, entry, exchange)
    spec, log = networks.tiny("dense"), tmp_path / "log"
    if "training" in declarations.declared(job["adapter"])["TASKS"]:
        # It is fed, besides.
        spec = networks.specify("mnist-hidden-100", NETWORKS, narrow=True)
    verdict, details = network.prove(job, spec, "", log)
    if verdict["status"] == "unsupported":
        # Such as a mode, or a version, or a machine that gives ranks no network: one sentence.
        pytest.skip(verdict["reason"])
    assert verdict["status"] == "ok", verdict
    left = set(Path("/dev/shm").iterdir())
    outcome = timed(job, prefix, log)
    assert outcome.status == "ok", outcome
    assert outcome.ranks
    found = outcome.exchanged()
    tells = exchange in GROUPED and entry["adapter"] in TELL
    assert (found["staleness"] is not None) == tells
    assert set(Path("/dev/shm").iterdir()) <= left


@pytest.mark.parametrize(
    ("environment", "entry", "exchange"),
    [each for each in asked() if ALL or each.id == f"{MXNET}-sync"],
)
def test_each_rank_learns_and_normalises_its_own_share(environment, entry, exchange, tmp_path):
    """Targets that are no classes have two axes, as labels of sequences, whose steps come first in MXNet."""
    prefix_of(environment)
    job = job_of(environment, entry, exchange)
    specs = [networks.specify("vae", NETWORKS, narrow=True)]
    specs += [networks.tiny("batch_norm")] * (exchange not in GROUPED)
    for spec in specs:
        verdict, _ = network.prove(job, spec, "", tmp_path / "log")
        if verdict["status"] == "unsupported":
            pytest.skip(verdict["reason"])
        assert verdict["status"] == "ok", verdict


@pytest.mark.parametrize("planted", PLANTED if ALL else FEW, ids="-".join)
def test_ranks_that_are_wrong_are_refused_in_a_real_framework(planted, tmp_path, monkeypatch):
    environment, exchange, _ = planted
    prefix_of(environment)
    worker, defect = tmp_path / "scripts/worker", PLANTED[planted]
    shutil.copytree(supervise.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(supervise, "WORKER", worker)
    path = worker / f"frameworks/{defect.adapter}.py"
    assert path.read_text().count(defect.right) == 1
    path.write_text(path.read_text().replace(defect.right, defect.wrong))
    job = job_of(environment, entry_of(environment), exchange)
    verdict, _ = network.prove(job, networks.tiny("dense"), "", tmp_path / "log")
    if "no network of their own" in verdict["reason"]:
        pytest.skip(verdict["reason"])
    assert verdict["status"] == "not_equivalent", verdict
    assert re.search(defect.words, verdict["reason"]), verdict


def when_timed(begin):
    """A watch that calls `begin` when steps begin to be timed."""
    return SimpleNamespace(begin=begin, end=lambda: None, look=lambda pid: None)


def workers():
    """The ranks that this process has started."""
    children = psutil.Process().children()
    return [each for each in children if each.cmdline()[1:3] == ["-m", "worker"]]


def listening():
    """At which addresses ranks, and what they have started, listen."""
    places = [
        place
        for each in psutil.Process().children(recursive=True)
        for place in each.net_connections("tcp")
    ]
    found = {place.laddr.ip for place in places if place.status == psutil.CONN_LISTEN}
    return {each.removeprefix("::ffff:") for each in found}


@pytest.mark.parametrize("environment", [TORCH, MXNET, JAX] if ALL else [TORCH])
def test_ranks_without_a_network_of_their_own_listen_on_the_loopback_interface_alone(
    environment, tmp_path, monkeypatch
):
    prefix = prefix_of(environment)
    monkeypatch.setattr(own_network, "made", lambda: nullcontext([]))
    job, found = job_of(environment, entry_of(environment), "sync"), set()
    watch = when_timed(lambda: found.update(listening()))
    outcome = timed(job, prefix, tmp_path / "log", watches=[watch])
    assert outcome.status == "ok", outcome
    assert found and all(ip_address(each).is_loopback for each in found), found


@only_zoo
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, "crashed"), (signal.SIGSTOP, "timeout")]
)
@pytest.mark.parametrize(
    ("environment", "entry", "exchange"),
    list(asked()),
)
def test_a_killed_or_hanging_rank_ends_all_and_leaves_no_process_memory_or_file(
    environment, entry, exchange, number, status, tmp_path, monkeypatch
):
    prefix = prefix_of(environment)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    job, before = job_of(environment, entry, exchange), set(Path("/dev/shm").iterdir())
    limit = adapter.LIMIT_SECONDS if status == "crashed" else HANGING_SECONDS
    ended = when_timed(lambda: workers()[-1].send_signal(number))
    outcome = timed(job, prefix, tmp_path / "log", {"budget_seconds": 600.0}, [ended], limit)
    if outcome.status == "unsupported":
        pytest.skip(outcome.reason)
    words = {"crashed": f"rank {job['devices'] - 1}: ", "timeout": "not done after "}[status]
    # TensorFlow asks its peers by itself whether they live, and may give up before the limit.
    noticed = status == "timeout" and outcome.reason.startswith("UnavailableError: ")
    told = outcome.status == status and outcome.reason.startswith(words)
    assert told or noticed, outcome
    # It was at work before.
    assert "warmup" in outcome.events
    assert not psutil.Process().children(recursive=True)
    assert set(Path("/dev/shm").iterdir()) <= before and not list(scratch.iterdir())
