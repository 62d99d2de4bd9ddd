"""Shards of several folders, machines and states in one table."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import MACHINE
from examples import PLANNED as CELL

from steptime import run
from steptime.cells import again, mixed, shard
from steptime.cells.mixed import MixedRowsError
from steptime.environments import libraries
from steptime.merge import cells, judged, others
from steptime.plan import written
from steptime.plan.cell import shard_path
from steptime.plan.grid import Plan

SAMPLE = {"sample": 1, "steps": 1, "seconds": 0.5}
OTHER_KEY = CELL.key.replace("-t1-", "-t2-")
OTHER = MACHINE | {"cpu": {"model": "Another CPU", "logical_cores": 8}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(key=CELL.key, machine=MACHINE, settings=None, software=None, **changes):
    """Writes the shard of CELL, with changes, under the name `key`; returns its path. `settings` are its worker's."""
    facts = (
        CELL.facts()
        | {"variant": "", "status": "ok", "machine_id": machine["cpu"]["model"]}
        | changes
    )
    worker = {"ready": {"settings": settings}} if settings else {}
    known = {"framework_version": "9.9.0"} | (software or {})
    footer = {"machine": machine, "software": known, "worker": worker}
    path = Path(shard_path(key))
    shard.write(path, facts, [SAMPLE], footer)
    return path


def test_what_another_grid_measured_is_read_by_its_plan_and_a_broken_shard_is_told(folder):
    plan = Plan({CELL.key: CELL}, {"steptime_times": [CELL.key]}, [])
    written.write(plan, written.path_of("shi2016"))
    assert others.read(written.path_of("shi2016")).steps == []
    write(sampling_digest="s")
    grid = others.read(written.path_of("shi2016"))
    assert (grid.name, grid.refused) == ("shi2016", "")
    assert grid.steps[0].cells["seconds"].tolist() == [0.5]
    # What lies under its name was measured for a grid that samples otherwise.
    written.write(
        replace(plan, expected={CELL.key: {"sampling_digest": "t"}}), written.path_of("desktop")
    )
    assert others.read(written.path_of("desktop")).steps == []
    written.path_of("shi2016").write_text("{}")
    assert "broken" in others.read(written.path_of("shi2016")).refused


def test_a_network_in_use_in_another_grid_is_no_single_operation(folder):
    """After `make explain`, the verdicts of other runs in its folder ended in a traceback."""
    passes = replace(CELL, task="forward")
    written.write(Plan({passes.key: passes}, {}, []), written.path_of("explain"))
    write(passes.key, task="forward", timed_region="forward,sync")
    assert others.read(written.path_of("explain")).parts == []


def test_two_machines_in_one_folder_are_refused_unless_equal_and_two_folders_are_two_columns(
    monkeypatch,
):
    other = OTHER_KEY
    write()
    path = write(other, machine=OTHER, threads=2)
    with pytest.raises(MixedRowsError) as raised:
        cells.merge([CELL.key, other])
    monkeypatch.setitem(run.TOLD, "platforms", {"local-cpu": {"equal_machines": True}})
    assert cells.merge([CELL.key, other]).num_rows == 2
    assert mixed.stranger(path, MACHINE) is None
    for words in (
        "A CPU with 2 logical cores and Another CPU with 8",
        str(path),
        "results/cells/NAME",
    ):
        assert words in str(raised.value)
    moved = other.replace("local-cpu", "server")
    Path(shard_path(moved)).parent.mkdir(parents=True)
    path.rename(shard_path(moved))
    merged = cells.merge([CELL.key, moved])
    assert merged["platform"].to_pylist() == ["local-cpu", "server"]
    assert json.loads(merged.schema.metadata[shard.FOOTER])["machines"] == {
        "A CPU": MACHINE,
        "Another CPU": OTHER,
    }


def test_what_workers_declare_is_gathered_for_each_platform_and_mode():
    other = OTHER_KEY
    write(settings={"tf32": "off"})
    write(other, threads=2, settings={"memory_format": "channels_last"})
    described = json.loads(cells.merge([CELL.key, other]).schema.metadata[shard.FOOTER])
    found = described["software"]["torch-9.9"]["settings"]
    assert found == {"local-cpu, eager": {"tf32": "off", "memory_format": "channels_last"}}


@pytest.mark.parametrize(("code", "registers"), [("Zen", "AVX2"), ("Cooperlake", "AVX-512")])
def test_registers_are_those_of_the_code_that_openblas_says_it_runs(code, registers):
    library = {"vector": "AVX-512", "multiplies": {"AVX-512": 9000}, "holds": ["OpenBLAS"]}
    software = {"blas": f"OpenBLAS 0.3.13 Zen MAX_THREADS=64 runs {code}"}
    software |= {"libraries": {"libopenblas.so.0": library}, "registers": "AVX-512"}
    software |= {"arithmetic": libraries.summarise(software["libraries"])}
    write(software=software)
    described = json.loads(cells.merge([CELL.key]).schema.metadata[shard.FOOTER])
    assert described["software"]["torch-9.9"]["registers"] == registers
    assert described["arithmetic"]["torch-9.9.eager"]["vector"] == registers


@pytest.mark.parametrize("digest", [None, "other", "e"])
def test_a_proof_that_refuses_is_of_the_environment_that_it_names(folder, monkeypatch, digest):
    monkeypatch.setattr(judged, "_proof", judged._proof.__wrapped__)
    write(environment_digest="e")
    proof = {"status": "not_equivalent"} | ({"environment_digest": digest} if digest else {})
    (folder / "results/proofs").mkdir()
    (folder / "results/proofs/torch-9.9.eager-fcn5.json").write_text(json.dumps(proof))
    (status,) = cells.merge([CELL.key])["status"].to_pylist()
    assert status == ("not_equivalent" if digest == "e" else "ok")


def test_two_machines_of_one_kind_are_two_nodes_of_a_cluster():
    other = OTHER_KEY
    write()
    write(other, threads=2, machine_id="another node")
    assert cells.merge([CELL.key, other]).num_rows == 2


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ({"status": "ok", "proven_gradients": True}, True),
        ({"status": "ok", "proven_gradients": False}, False),
        ({"status": "not_equivalent", "proven_gradients": True}, False),
        ({"status": "ok", "proven_gradients": True, "worker_digest": "another"}, False),
        (None, None),
    ],
)
def test_gradients_may_be_shown_by_a_cell_with_other_threads(monkeypatch, shown, found):
    """Where that one has shown none, or was refused, the row says so; where it is to be measured yet, nothing."""
    monkeypatch.setattr(run, "facts", lambda: {"shown_by": {CELL.key: OTHER_KEY}})
    write(proven_gradients=False)
    if shown:
        write(OTHER_KEY, threads=2, **shown)
    (row,) = cells.merge([CELL.key]).to_pylist()
    assert row["proven_gradients"] is found


def test_a_place_that_is_refused_has_no_time_at_other_threads(monkeypatch):
    monkeypatch.setattr(run, "facts", lambda: {"shown_by": {CELL.key: OTHER_KEY}})
    write(proven_gradients=False)
    write(OTHER_KEY, threads=2, status="not_equivalent", reason="the loss of step 2 is 3")
    for keys in ([CELL.key], [CELL.key, OTHER_KEY]):
        row, *_ = cells.merge(keys).to_pylist()
        assert row["status"] == "not_equivalent"
        assert row["reason"] == "with 2 threads in repeat 1: the loss of step 2 is 3"


def statuses(losses, precision="float32", **several):
    """What the merge makes of cells of these frameworks, given with their first losses."""
    keys = {}
    for framework, loss in losses.items():
        keys[framework] = CELL.key.replace("torch-9.9", framework).replace("float32", precision)
        named = {"environment": framework, "framework": framework, "precision": precision} | several
        if several:
            together = "-d{devices}{exchange}-".format(**several)
            keys[framework] = keys[framework].replace("-d1-", together)
        write(keys[framework], first_loss=loss, **named)
    merged = cells.merge(list(keys.values())).select(["framework", "status", "reason"]).to_pylist()
    return {row["framework"]: (row["status"], row["reason"]) for row in merged}


def test_a_first_loss_that_is_not_that_of_the_reference_is_refused_though_most_have_it(folder):
    path = folder / "results/references/fcn5-b64.npz"
    path.parent.mkdir(parents=True)
    known = {"losses": [10.39568812], "spreads": [0.0], "labels": 64, "reason": "", "dropout": 0}
    np.savez(path, **known)
    found = statuses({"a": 10.3956881, "b": 10.3958, "c": 10.3958})
    assert found["a"] == ("ok", None)
    assert found["b"] == found["c"]
    assert found["c"] == (
        "not_equivalent",
        "its first loss is 10.3958, and 10.3956881 in the reference results/references/fcn5-b64.npz",
    )
    np.savez(path, **known | {"dropout": 1})
    assert {status for status, _ in statuses({"a": 10.3956881, "b": 11.0}).values()} == {"ok"}
    for broken in (b"", path.read_bytes()[:300], b"no archive"):
        path.write_bytes(broken)
        assert {status for status, _ in statuses({"a": 10.3956881, "b": 11.0}).values()} == {"ok"}


@pytest.mark.parametrize(("of", "status"), [("digest", "not_equivalent"), ("another", "ok")])
def test_a_carried_reference_is_asked_where_there_is_none_of_this_machine(folder, of, status):
    known = {"losses": [10.39568812], "spreads": [0.0], "labels": 64, "reason": "", "dropout": 0}
    path = folder / "results/references/carried/fcn5-b64.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, of=f"{of} 64 code", **known)
    write(first_loss=10.3958, network_digest="digest")
    assert cells.merge([CELL.key])["status"].to_pylist() == [status]
    np.savez(path.parents[1] / path.name, **known | {"losses": [10.3958]})
    assert cells.merge([CELL.key])["status"].to_pylist() == ["ok"]


def test_a_first_loss_in_tf32_is_held_against_a_reference_of_its_own(folder):
    known = {"losses": [10.39568812], "spreads": [0.0], "labels": 64, "reason": "", "dropout": 0}
    (folder / "results/references").mkdir(parents=True)
    for name in ("fcn5-b64", "fcn5-b64-tf32"):
        np.savez(folder / f"results/references/{name}.npz", **known)
    losses = {"a": 10.3956881, "b": 10.3966, "c": 10.5}
    assert {name for name, (status, _) in statuses(losses).items() if status == "ok"} == {"a"}
    found = statuses(losses, "tf32")
    assert found["a"] == found["b"] == ("ok", None)
    assert found["c"][1].endswith("results/references/fcn5-b64-tf32.npz")


@pytest.mark.parametrize(
    ("losses", "refused"),
    [
        ({"a": 2.3000001, "b": 2.3, "c": 2.2999}, {"c"}),
        # Each framework has one voice.
        ({"a": 2.3, "b": 2.2999}, set()),
        ({"a": 2.3, "b": 2.3, "c": 2.2999, "d": 2.2999}, set()),
        ({"a": 2.3, "b": 2.3, "c": None}, set()),
    ],
)
def test_without_a_reference_most_frameworks_tell_which_first_loss_is_wrong(losses, refused):
    found = statuses(losses)
    assert {name for name, (status, _) in found.items() if status != "ok"} == refused


@pytest.mark.parametrize(
    ("exchange", "refused"), [("sync", {"c"}), ("async", set()), ("mixed", set())]
)
def test_a_first_loss_that_depends_on_who_was_first_is_not_held_against_others(exchange, refused):
    losses = {"a": 2.3000001, "b": 2.3, "c": 2.2999}
    found = statuses(losses, devices=4, exchange=exchange)
    assert {name for name, (status, _) in found.items() if status != "ok"} == refused
    assert all("in 2 of 3 frameworks" in found[name][1] for name in refused)


@pytest.mark.parametrize(
    ("seen", "chosen"),
    [
        ({"foreign_cpus": 0.5}, True),
        ({"steal_share": 0.02}, True),
        ({"frequency_ratio": 0.8}, True),
        ({"foreign_cpus": 0.05, "steal_share": 0.005, "frequency_ratio": 1.0}, False),
        ({"foreign_cpus": 0.5, "machine_id": "another"}, False),
        ({"foreign_cpus": 0.5, "status": "diverged"}, False),
    ],
)
def test_what_is_measured_again_was_disturbed_on_this_machine(seen, chosen):
    assert again.disturbed(write(**seen), MACHINE["cpu"]["model"]) is chosen


@pytest.mark.parametrize(
    ("marked", "here", "chosen"), [(True, "m1", True), (True, "m2", False), (False, "m1", False)]
)
def test_a_disturbed_peak_is_measured_again(folder, marked, here, chosen):
    path = folder / "local-cpu.json"
    path.write_text(
        json.dumps(
            {"machine_id": "m1", "threads": {"1": {"disturbed": False}, "2": {"disturbed": marked}}}
        )
    )
    assert again.disturbed(path, here) is chosen
