"""One program measures a cell of any task: what a worker says, here a stand-in's, becomes the shard of its task."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from examples import MACHINE, PLANNED, ROOT

from steptime import tasks
from steptime.cells import shard
from steptime.plan import configuration, grid
from steptime.plan.cell import shard_path
from worker.usage import kernel_counters

USED = {"cpu_seconds": 0.5, "wall_seconds": 0.5, "waited_seconds": 0.0, "involuntary_switches": 1}
READY = {"parameters": 5, "import_seconds": 1.0, "build_seconds": 2.0, "versions": {}}
EPOCH = {"epoch": 1, "steps": 9, "seconds": 4.0, "cpu_seconds": 3.0, "accuracy": 0.99}
EPOCH["test_loss"] = 0.1
PART = {"part": "2 x 2 by 2 x 2", "role": "forward", "flops": 16, "error": 1e-7, "cpus": 1.0}
SAID = {
    "step": [
        {"event": "ready", **READY},
        {"event": "warmup", "steps": 4, "first_loss": 3.0, "first_seconds": 0.7, "seconds": 1.5}
        | {"steady": True, "kernel": kernel_counters()},
        *[{"event": "sample", "steps": 2, "seconds": seconds} for seconds in (0.1, 0.2)],
        {"event": "sampled", "kernel": kernel_counters()},
        {"event": "done", "last_loss": 2.0, **USED},
    ],
    "training": [
        {"event": "ready", **READY},
        {"event": "began", "kernel": kernel_counters()},
        {"event": "epoch", **EPOCH},
        {"event": "trained", "stopped": "accuracy", "kernel": kernel_counters()},
        {"event": "done", **USED},
    ],
    "products": [
        {"event": "ready", "import_seconds": 1.0, "versions": {}},
        {"event": "warmup", "kernel": kernel_counters()},
        {"event": "part", **PART, "way": "NN", "samples": [[2, 0.5], [2, 0.25]], "lacking": ""},
        {"event": "part", **PART, "way": "NT", "samples": [], "lacking": "there is none"},
        {"event": "sampled", "kernel": kernel_counters()},
        {"event": "done", **USED},
    ],
}
WORKER = """#!{python}
import json, os, sys
os.write(2, sys.stdin.read().encode())
for event in json.loads({said!r}):
    os.write(int(sys.argv[-1]), (json.dumps(event) + "\\n").encode())
"""


# Of the subset of MNIST that a package brings; all of it black, and a zero.
COUNTS = {"train": 4000, "test": 1000}
SUMS = {split: sha256(bytes(count * (28 * 28 + 8))).hexdigest() for split, count in COUNTS.items()}


@pytest.fixture
def run(tmp_path):
    """Runs the program for the first cell of a task; gives what it printed, the worker's job, and the shard's path."""
    loaded = configuration.load(ROOT, {"grid": "desktop"})
    loaded = replace(loaded, grid=loaded.grid | {"parts": {"products": ["fcn5"]}})
    for split, count in COUNTS.items():
        images, labels = np.zeros((count, 1, 28, 28), np.uint8), np.zeros(count, np.int64)
        np.savez(tmp_path / f"{split}.npz", images=images, labels=labels, sha256=SUMS[split])

    def measure(task, said=(), packages=(), installed=(), ends=0):
        made = {"status": "ok", "digest": "d", "proof_id": "p", "proof_digest": "pd"}
        made["packages"] = dict(packages)
        (tmp_path / "made.json").write_text(json.dumps(made))
        cell = next(each for each in grid.expand(loaded, 1).cells.values() if each.task == task)
        python = tmp_path / "environments" / cell.environment / "bin/python"
        python.parent.mkdir(parents=True, exist_ok=True)
        said = json.dumps(said or SAID[task])
        python.write_text(WORKER.format(python=sys.executable, said=said))
        python.chmod(0o755)
        for name, version in dict(installed).items():
            info = f"lib/python3.11/site-packages/{name}-{version}.dist-info"
            (python.parents[1] / info).mkdir(parents=True)
        job = tasks.job_of(loaded, cell) | {"adapter": "torch", "variables": {}}
        job |= {"network_digest": "nd", "worker_digest": "wd"}
        path = tmp_path / shard_path(cell.key)
        command = [sys.executable, "-m", "steptime", "cells.measure", "--job", json.dumps(job)]
        command += ["--networks", "config/networks.yaml", "--manifest", "made.json"]
        command += ["--proof", "made.json", "--shard", str(path), "--log", "log"]
        command += ["--images", *(["train.npz", "test.npz"] if cell.dataset else [])]
        places = {
            "STEPTIME_ENVIRONMENTS": str(tmp_path / "environments"),
            "PYTHONPATH": str(ROOT / "workflow/scripts"),
        }
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | places, capture_output=True, text=True
        )
        assert done.returncode == ends, done.stderr
        log = tmp_path / "log"
        return done.stderr, json.loads(log.read_text()) if log.exists() else {}, path

    return measure


def test_a_step_is_timed_and_its_shard_has_its_samples(run):
    said, job, path = run("step")
    assert " 150.0 ms\n" in said
    assert (job["task"], job["precision"], job["ranks"]) == ("step", "float32", 1)
    assert job["sampling"]["budget_seconds"] == 1.5
    rows = shard.read(path)[0].to_pylist()
    assert [row["seconds"] for row in rows] == [0.1, 0.2]
    assert (rows[0]["first_step_seconds"], rows[0]["warmup_seconds"]) == (0.7, 1.5)
    assert rows[0]["warmup_steady"] and rows[0]["started_at"] < rows[0]["ended_at"]
    digests = ("environment_digest", "network_digest", "worker_digest", "proof_digest")
    assert [rows[0][name] for name in digests] == ["d", "nd", "wd", "pd"]
    assert rows[0]["sampling_digest"] and rows[0]["timed_region"].startswith("forward,")
    assert rows[0]["seed"] is None and "resources" not in shard.read(path)[1]


@pytest.mark.parametrize("task", ["step", "training"])
def test_a_machine_does_not_measure_beside_cells_of_another(run, tmp_path, task):
    facts = PLANNED.facts() | {"variant": "", "status": "ok"}
    footer = {"machine": MACHINE, "software": {}, "worker": {}}
    shard.write(tmp_path / shard_path(PLANNED.key), facts, [{"seconds": 0.5}], footer)
    said, _, path = run(task, ends=1)
    assert "results/cells/local-cpu holds cells of another machine, " in said, said
    assert "Nothing was measured." in said and "Traceback" not in said and not path.exists()


def test_what_another_cell_of_the_run_shows_is_not_asked_for_again(run, tmp_path):
    _, job, path = run("step")
    assert job["gradients"]
    key = str(path.relative_to(tmp_path / "results/cells"))[: -len(".parquet")]
    (tmp_path / ".snakemake/steptime").mkdir(parents=True)
    told = json.dumps({"cells": 100, "trials": {}, "shown_by": {key: "another"}})
    (tmp_path / ".snakemake/steptime/run.json").write_text(told)
    assert not run("step")[1]["gradients"]


def test_samples_of_a_disturbed_time_give_way_to_those_behind_them_and_are_kept(run):
    """Another program has used a CPU for ten seconds, and then no more."""

    def counted(ticks):
        stat = f"cpu {ticks} 0 0 0 0 0 0 0\ncpu0 {ticks} 0 0 0 0 0 0 0\n"
        return {"kernel": {"stat": stat, "cpuinfo": "", "throttling": []}}

    ready, warm, *_, sampled, done = SAID["step"]
    samples = [{"event": "sample", "steps": 2, "seconds": seconds} for seconds in (0.9, 0.2)]
    again = {"event": "again", "seconds": [0.9], **counted(1000)}
    said = [ready, warm | counted(0), samples[0], again, samples[1], sampled | counted(1050), done]
    text, _, path = run("step", said)
    assert " 200.0 ms\n" in text and "disturbed" not in text
    table, footer = shard.read(path)
    assert table["seconds"].to_pylist() == [0.2] and table["foreign_cpus"].to_pylist() == [0.0]
    assert footer["worker"]["again"]["seconds"] == [0.9]


def test_a_training_is_fed_with_images_and_its_shard_has_its_epochs(run):
    said, job, path = run("training")
    assert "99.0 % in 1 epoch, 4 s" in said
    assert job["task"] == "training" and Path(job["images"]["train"]).name == "train.npz"
    assert (job["plan"]["seed"], job["plan"]["budget_seconds"]) == (tasks.training.FIRST_SEED, 60)
    (row,) = shard.read(path)[0].to_pylist()
    assert row["dataset_sha256"] == f"{SUMS['train']} {SUMS['test']}"
    assert (row["seed"], row["stopped"], row["cpu_seconds"]) == (2018, "accuracy", 3.0)
    assert row["timed_region"].startswith("feed,copy,") and row["first_step_seconds"] is None
    assert "resources" in shard.read(path)[1]


def test_single_operations_have_a_row_for_each_sample_and_one_for_what_is_lacking(run):
    said, job, path = run("products")
    assert "products of fcn5  batch 64" in said and "1 of 2 operations timed" in said
    assert job["task"] == "products" and job["sampling"]["budget_seconds"] == 1.5
    rows = shard.read(path)[0].to_pylist()
    assert [(row["way"], row["sample"], row["seconds"]) for row in rows] == [
        ("NN", 1, 0.5),
        ("NN", 2, 0.25),
        ("NT", None, None),
    ]
    assert rows[2]["lacking"] == "there is none" and rows[0]["flops"] == 16
    assert rows[0]["timed_region"] == "operation,sync"


def test_packages_that_were_exchanged_are_a_row_and_no_time(run):
    packages = {"torch": "2.13.0", "numpy": "2.4.6"}
    said, job, path = run("step", packages=packages, installed=packages | {"numpy": "2.3.5"})
    (row,) = shard.read(path)[0].to_pylist()
    assert row["status"] == "install_failed" and "numpy 2.3.5 instead of 2.4.6" in row["reason"]
    assert not job and row["seconds"] is None


@pytest.mark.parametrize(
    ("imported", "status"),
    [("2.13.0+cpu", "ok"), ("2.12.1", "install_failed"), ("3.0", "install_failed"), (None, "ok")],
)
def test_a_framework_that_is_not_the_installed_one_is_a_row_and_no_time(
    run, monkeypatch, imported, status
):
    """As from a folder that a .pth file or a hook of the environment names."""
    ready = SAID["step"][0] | {"versions": {"framework_version": imported}}
    monkeypatch.setitem(SAID, "step", [ready, *SAID["step"][1:]])
    # What others have built of it counts its own releases.
    packages = {"torch": "2.13.0", "numpy": "2.4.6", "torch38": "3.0"}
    _, _, path = run("step", packages=packages, installed=packages)
    rows = shard.read(path)[0].to_pylist()
    assert {row["status"] for row in rows} == {status}
    if status != "ok":
        said = f"imported torch {imported}, and installed is torch 2.13.0"
        assert rows[0]["reason"].endswith(said)
