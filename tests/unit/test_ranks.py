"""Cells of several ranks, each a process: a stand-in framework whose ranks speak over real sockets, right and wrong."""

import os
import re
import shutil
import socket
import sys
from contextlib import nullcontext

import numpy as np
import psutil
import pytest
import yaml
from conftest import ROOT

from shared import operations
from shared.statistics import median
from steptime import networks
from steptime.prove import network
from steptime.supervisor import ranks, supervise

SCRIPTS = ROOT / "workflow/scripts"
SAMPLING = {"budget_seconds": 0.3, "precision": 0.1, "least_samples": 3}
# The exchange of each stand-in.
WAYS = {"together": "sync", "apart": "async", "grouped": "mixed"}


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """The job of a proof in the stand-in framework, whose environment and worker are made in a folder."""
    python = tmp_path / "environments/stand-in-1.0/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    worker = tmp_path / "scripts/worker"
    shutil.copytree(supervise.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    folder, ways = worker / "frameworks/stand_in", dict(zip(WAYS.values(), WAYS, strict=True))
    folder.mkdir()
    (folder / "__init__.py").write_text(f"EXCHANGES = {ways}\n")
    for name in WAYS:
        shutil.copyfile(ROOT / f"tests/defects/{name}.py", folder / f"{name}.py")
    monkeypatch.setattr(supervise, "WORKER", worker)
    monkeypatch.setenv("STEPTIME_ENVIRONMENTS", str(tmp_path / "environments"))
    return {
        "environment": "stand-in-1.0",
        "adapter": "stand_in.together",
        "variables": {"STAND_IN_SCRIPTS": str(SCRIPTS), "OPENBLAS_NUM_THREADS": "1"},
        "worker_digest": "",
        "devices": 2,
        "exchange": "sync",
    }


def proven(job, spec, tmp_path, **changes):
    verdict, _ = network.prove(job | changes, spec, "", tmp_path / "log")
    return verdict["status"], verdict["reason"]


@pytest.mark.parametrize("devices", [2, 3])
def test_several_ranks_are_proven_by_the_union_of_their_mini_batches(stand_in, tmp_path, devices):
    for kind in ("dense", "batch_norm"):
        spec = networks.tiny(kind)
        assert proven(stand_in, spec, tmp_path, mode="right", devices=devices) == ("ok", ""), kind
    assert "--- rank 1" in (tmp_path / "log").read_text()


TRAINED = networks.specify(
    "mnist-hidden-100", yaml.safe_load((ROOT / "config/networks.yaml").read_text()), narrow=True
)
# At another rate for later mini-batches, so that one that does not arrive shows.
TRAINED["optimiser"]["after_epochs"] = [[10, 0.1], [20, 0.02]]
RATELESS = "the mean loss .*fed.* is |is wrong after .*fed"


def specified(kind):
    return TRAINED if kind == "fed" else networks.tiny(kind)


@pytest.mark.parametrize(
    ("adapter", "mode", "kind", "words"),
    [
        ("together", "summed", "dense", "every update is 2 times .* summed and not averaged"),
        ("together", "apart", "dense", "after 1 steps, rank 1 has other weights than rank 0 in "),
        ("together", "absent", "dense", "the gradient of .* differs"),
        ("together", "other_start", "dense", "rank 1 has other weights than rank 0 in "),
        ("together", "shared_batch", "dense", "the first loss is "),
        ("together", "whole_norm", "batch_norm", "the first loss is "),
        # What ranks are fed is each one's share, at its rate.
        ("together", "right", "fed", ""),
        ("together", "unfed", "fed", "the mean loss .*fed.* is "),
        ("together", "fed_rateless", "fed", RATELESS),
        ("together", "fed_apart", "fed", "rank 1 has other weights than rank 0 in "),
        # Ranks that do not wait for one another have weights of their own.
        ("apart", "right", "fed", ""),
        ("apart", "unfed", "fed", "the mean loss .*fed.* is "),
        ("apart", "fed_rateless", "fed", RATELESS),
        ("apart", "twice", "dense", "every update is 2 times the specification's"),
        ("apart", "averaged", "dense", "in the turn of rank 0 every update is 0.5 times what it "),
        ("apart", "silent", "dense", "turn of rank 1 no weight changes: its gradients do not arr"),
        ("apart", "stale", "dense", "not that of the weights as they were then|is wrong after"),
        ("apart", "stale_call", "dense", "is wrong after one step and then a call of 3 steps"),
        ("apart", "dropping", "dense", "of 8 updates that rank 0 makes when all step at once, 5"),
        ("apart", "shared_batch", "dense", "in the turn of rank 1 the update of .* is off by"),
        ("grouped", "summed", "dense", "every update is 2 times .* summed and not averaged"),
        ("grouped", "absent", "dense", "the gradient of .* differs"),
        ("grouped", "averaged", "dense", "turn of group 0 every update is 0.5 times what it must"),
        ("grouped", "half_absent", "dense", "in the turn of group 1 the update of .* is off by"),
        ("grouped", "same_share", "dense", "in the turn of group 1 the update of .* is off by"),
    ],
)
def test_a_wrong_way_of_sharing_is_refused(stand_in, tmp_path, adapter, mode, kind, words):
    several = {"adapter": f"stand_in.{adapter}", "exchange": WAYS[adapter], "mode": mode}
    several["devices"] = 4 if adapter == "grouped" else 2
    status, reason = proven(stand_in, specified(kind), tmp_path, **several)
    assert status == ("not_equivalent" if words else "ok"), reason
    assert re.search(words, reason), reason


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_ranks_that_do_not_wait_are_proven_each_in_its_turn_and_all_at_once(
    stand_in, tmp_path, devices
):
    apart = {"mode": "right", "devices": devices, "adapter": "stand_in.apart", "exchange": "async"}
    verdict, details = network.prove(stand_in | apart, networks.tiny("dense"), "", tmp_path / "log")
    assert verdict["status"] == "ok", verdict
    # One rank is proven as one device is, and has no others. Of each of several, the proof itself has counted updates.
    assert devices == 1 or len(details["arrived"]) == devices
    assert devices == 1 or 0 <= details["staleness"] <= 8 * (devices - 1)


MIXED = {"devices": 4, "adapter": "stand_in.grouped", "exchange": "mixed"}


@pytest.mark.parametrize("spec", [networks.tiny("batch_norm"), pytest.param(TRAINED, id="fed")])
def test_groups_of_ranks_are_proven_each_in_its_turn_and_all_at_once(stand_in, tmp_path, spec):
    asked = stand_in | MIXED | {"mode": "right"}
    verdict, details = network.prove(asked, spec, "", tmp_path / "log")
    assert verdict["status"] == "ok", verdict
    # An update of both of a group is one.
    assert len(details["arrived"]) == 2 and details["ranks"] == 4
    assert 0 <= details["staleness"] <= 8


def timed(job, tmp_path, mode="right", seconds=60.0, kind="dense", **asked):
    """The outcome of a cell of some ranks."""
    made = network.worker_job(job | {"mode": mode}, specified(kind))
    return supervise.run_worker(
        tmp_path / "environments/stand-in-1.0",
        made | {"task": "step", "sampling": SAMPLING} | asked,
        [0, 1] if os.cpu_count() > 1 else [0],
        job["variables"],
        *(seconds, 2**40, tmp_path / "log"),
    )


def test_a_training_of_two_ranks_is_that_of_one_and_each_draws_its_own_images(stand_in, tmp_path):
    random, paths = np.random.RandomState(1), {}
    for split, count in (("train", 40), ("test", 12)):
        paths[split] = str(tmp_path / f"{split}.npz")
        images = random.randint(0, 256, (count, 1, 5, 5)).astype(np.uint8)
        np.savez(paths[split], images=images, labels=random.randint(0, 10, count))
    plan = {"seed": 3, "epochs": 2, "target_accuracy": 1.1, "budget_seconds": 100}
    asked = {"task": "training", "plan": plan, "images": paths, "batch": 8, "sampling": None}

    def trained(devices, adapter="together", exchange="sync"):
        several = {"devices": devices, "adapter": f"stand_in.{adapter}", "exchange": exchange}
        outcome = timed(stand_in | several, tmp_path, kind="fed", **asked)
        assert outcome.status == "ok", outcome
        return outcome

    one, two, apart = trained(1), trained(2), trained(2, "apart", "async")
    mixed = trained(4, "grouped", "mixed")
    for name in ("loss", "test_loss", "accuracy"):
        alone, together = ([epoch[name] for epoch in each.epochs] for each in (one, two))
        assert together == pytest.approx(alone, rel=1e-4), name
    for outcome in (two, apart, mixed):
        assert [epoch["steps"] for epoch in outcome.epochs] == [5, 5]
        assert outcome.used_by_ranks()[1]["cpu_seconds"] > 0
    for outcome in (apart, mixed):
        # Each of the two, or of two groups, makes an update where the one makes one.
        assert outcome.epochs[0]["loss"] != pytest.approx(one.epochs[0]["loss"], rel=1e-4)
        assert outcome.exchanged()["staleness"] is not None


def test_each_rank_has_cpus_of_its_own_and_tells_what_it_used(stand_in, tmp_path):
    outcome = timed(stand_in, tmp_path)
    assert outcome.status == "ok", outcome
    first, second = outcome.used_by_ranks()
    assert not set(first["cpus"]) & set(second["cpus"]) or os.cpu_count() == 1
    whole = sum(steps * seconds for steps, seconds in outcome.samples)
    assert 0 < second["cpu_seconds"] < whole and 0.5 * whole < second["seconds"] < whole
    sent = outcome.loopback[1] - outcome.loopback[0]
    # Two ranks give their gradients, in float64 and one way each, in every step.
    told = outcome.events["ready"]
    assert sent >= 2 * 8 * told["parameters"] * sum(steps for steps, _ in outcome.samples)
    assert outcome.ready_seconds > told["import_seconds"] + told["build_seconds"]


def test_ranks_that_do_not_wait_tell_how_stale_their_gradients_are(stand_in, tmp_path):
    apart = stand_in | {"adapter": "stand_in.apart", "exchange": "async"}
    outcome = timed(apart, tmp_path)
    assert outcome.status == "ok", outcome
    found = outcome.exchanged()
    # Nothing goes over a network. Two ranks of the same speed are mostly one update apart.
    assert found["bytes_exchanged"] < 1000 and 0 < found["staleness"] < 100


@pytest.mark.parametrize(("taken", "status"), [(1, "ok"), (9, "crashed")])
def test_ranks_whose_port_is_taken_meanwhile_get_another_one(
    stand_in, tmp_path, monkeypatch, taken, status
):
    given, free = [], ranks.free_ports
    # Where ranks have a network of their own, nobody else is in it.
    monkeypatch.setattr(ranks.network, "made", lambda: nullcontext([]))
    with socket.create_server(("127.0.0.1", 0)) as other:

        def ports(count):
            given.append(count)
            return (
                [other.getsockname()[1], *free(count - 1)] if len(given) <= taken else free(count)
            )

        monkeypatch.setattr(ranks, "free_ports", ports)
        outcome = timed(stand_in, tmp_path)
    assert outcome.status == status, outcome
    words = "another program has taken a port of its ranks: OSError: "
    assert len(given) == min(taken + 1, 3) and outcome.reason.startswith(words[: 99 * (taken > 1)])


def test_ranks_that_miss_one_another_are_started_again(stand_in, tmp_path, monkeypatch):
    given, free = [], ranks.free_ports
    monkeypatch.setattr(ranks, "free_ports", lambda count: given.append(count) or free(count))
    outcome = timed(stand_in, tmp_path, "misses")
    assert outcome.status == "crashed" and len(given) == 3
    assert outcome.reason.endswith("before it was done: ranks have not met in 0.5 s"), outcome


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
@pytest.mark.parametrize(("adapter", "exchange"), [("together", "sync"), ("apart", "async")])
def test_a_slow_rank_is_told_apart_from_the_others(stand_in, tmp_path, adapter, exchange):
    slow = stand_in | {"adapter": f"stand_in.{adapter}", "exchange": exchange}
    outcome = timed(slow, tmp_path, task="stragglers")
    assert outcome.status == "ok", outcome
    found = {(part["part"], part["role"]): part["samples"] for part in outcome.parts}
    alone, beside = (
        [median([seconds for _, seconds in found[f"rank {rank}", state]]) for rank in (0, 1)]
        for state in operations.STATES
    )
    keeps = [before / after for before, after in zip(alone, beside, strict=True)]
    # Who does not wait is not as slow as the slow one.
    assert keeps[0] > keeps[1] or exchange == "sync", keeps
    assert not psutil.Process().children(recursive=True)


@pytest.mark.parametrize(
    ("mode", "wrong"),
    [
        ("right", ""),
        ("absent", "has a sum that is off by"),
        ("apart", "rank 1 has a sum that is off by"),
    ],
)
def test_sums_alone_are_held_against_what_they_must_be_on_every_rank(
    stand_in, tmp_path, mode, wrong
):
    source = tmp_path / "scripts/worker/tasks/sums.py"
    few = source.read_text().replace("for power in range(9)]", "for power in range(2)]")
    source.write_text(few.replace("[512 * KIB**2]", "[]"))
    asked = {"task": "sums", "follow": "sums", "adapter": "stand_in.together"}
    asked["sampling"] = SAMPLING | {"budget_seconds": 0.05}
    outcome = timed(stand_in, tmp_path, mode, **asked)
    assert outcome.status == "ok", outcome
    sizes = sorted([4096, 16384, 4 * networks.count_parameters(networks.tiny("dense"))])
    assert [int(part["part"].split()[0]) for part in outcome.parts[::2]] == sizes
    for alone, copied in zip(outcome.parts[::2], outcome.parts[1::2], strict=True):
        assert wrong in alone["lacking"] and bool(alone["samples"]) != bool(wrong), alone
        assert copied["samples"] and copied["way"] == "copy in memory"
    assert outcome.used_by_ranks()[1]["cpu_seconds"] > 0


def test_the_first_rank_s_clock_waits_for_a_slow_one(stand_in, tmp_path):
    outcome = timed(stand_in, tmp_path, "slow")
    assert outcome.status == "ok" and min(seconds for _, seconds in outcome.samples) > 0.2
    assert outcome.used_by_ranks()[1]["cpu_seconds"] < 0.5 * sum(
        steps * seconds for steps, seconds in outcome.samples
    )


def test_a_slow_way_to_another_rank_is_no_missing_synchronisation(stand_in, tmp_path):
    assert timed(stand_in, tmp_path, "far").status == "ok"


@pytest.mark.parametrize(
    ("mode", "status", "reason"),
    [
        ("killed", "crashed", "rank 1: the worker was ended by SIGKILL (Killed)"),
        ("raises", "crashed", "rank 1: ValueError: of my own"),
        # In whatever stage: a busy machine may have come no further than to its start.
        ("hangs", "timeout", "not done after 3 s, the limit of the grid ("),
    ],
)
def test_a_rank_that_fails_ends_all_and_nothing_is_left(stand_in, tmp_path, mode, status, reason):
    outcome = timed(stand_in, tmp_path, mode, seconds=3.0 if mode == "hangs" else 60.0)
    assert outcome.status == status and outcome.reason.startswith(reason), outcome
    assert not psutil.Process().children(recursive=True)


def test_the_cpus_of_ranks_are_disjoint_and_as_many():
    assert ranks.shares([0, 4, 1, 5], 2) == [[0, 4], [1, 5]]
    assert ranks.shares([0, 1, 2], 2) == [[0], [1]]
    assert ranks.shares([0], 2) == [[0], [0]]


SPEAKS = """
import json, os, sys, time
pipe, links = int(sys.argv[-1]), os.environ.get("STEPTIME_LINKS", "")
job = json.loads(sys.stdin.read())
def tell(event, **fields):
    os.write(pipe, json.dumps(dict(fields, event=event)).encode() + b"\\n")
"""


def spoken(tmp_path, text):
    """The outcome of two ranks that both run `text`."""
    python = tmp_path / "environment/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\n{SPEAKS}{text}")
    python.chmod(0o755)
    job = {"task": "proof", "device": "cpu", "ranks": 2, "rank": 0}
    folder = tmp_path / "environment"
    return supervise.run_worker(folder, job, [0], {}, 60, 2**40, tmp_path / "log")


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        # The word of who complains comes first, but who died is the cause.
        (
            "os.abort() if job['rank'] and not time.sleep(0.2) else "
            "tell('failed', status='crashed', reason='reset by peer')",
            "crashed",
            "rank 1: the worker was ended by SIGABRT (Aborted)",
        ),
        (
            "tell('failed', status='crashed' if job['rank'] else 'not_equivalent', reason=str(job['rank']))",
            "not_equivalent",
            "0",
        ),
        ("time.sleep(30 * job['rank']); tell('done')", "ok", ""),
        ("time.sleep(30) if job['rank'] else os._exit(3)", "crashed", "the worker ended with exit"),
        ("tell('failed', status='unsupported', reason='none')", "unsupported", "none"),
        ("tell('done')", "ok", ""),
    ],
)
def test_the_row_names_the_rank_that_was_the_cause(tmp_path, monkeypatch, text, status, reason):
    if "sleep(30" not in text:
        # Both end by themselves: however slow the machine is, the later one is heard.
        monkeypatch.setattr(supervise, "ENDING_SECONDS", 60.0)
    outcome = spoken(tmp_path, text)
    assert outcome.status == status and outcome.reason.startswith(reason), outcome
