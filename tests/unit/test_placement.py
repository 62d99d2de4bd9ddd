"""A cell looks at its machine first: what is no such platform refuses, in one sentence, and leaves no shard."""

import json
import subprocess

import pytest
from examples import PLANNED, ROOT

from steptime import machine, run
from steptime.machine import placement
from steptime.plan import configuration


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"cpu": "Z80 v3"}, "'Z80 v3' is needed"),
        ({"cpu": machine.cpu()["model"][:-1]}, "is needed"),
        ({"cores": 4096}, "and 4096 are needed"),
        ({"memory_gib": 1e6}, "GiB of memory, and"),
        ({"device": "gpu", "gpu": "GeForce GTX 1080", "devices": 2}, "GeForce GTX 1080 is needed"),
    ],
)
def test_what_a_machine_lacks_is_said(needs, said):
    assert said in placement.lacking(needs)


def test_this_machine_has_what_it_is():
    assert (
        placement.lacking({"device": "cpu", "cpu": machine.cpu()["model"].upper(), "cores": 1})
        is None
    )


@pytest.mark.parametrize(
    ("seen", "wanted", "fits"),
    [
        ("GeForce GTX 1080 Ti", "GeForce GTX 1080", False),
        ("NVIDIA GeForce GTX 1080", "GeForce GTX 1080", True),
        ("GeForce GTX 1080", "NVIDIA GeForce GTX 1080", True),
        ("NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3", False),
    ],
)
def test_a_model_of_a_similar_name_is_another_one(monkeypatch, seen, wanted, fits):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine, "gpus", lambda: [{"model": seen, "index": 0, "uuid": "GPU-1"}])
    assert (placement.lacking({"device": "gpu", "gpu": wanted}) is None) == fits


def test_a_cell_in_the_wrong_place_is_no_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.begin(platforms={"far": {"device": "cpu", "cores": 4096}})
    files = {
        "manifest": "m.json",
        "proof": "p.json",
        "shard": "far/s.parquet",
        "log": "logs/far.log",
    }
    options = files | {
        "networks": ROOT / "config/networks.yaml",
        "job": json.dumps({"cell": PLANNED.facts() | {"platform": "far"}}),
    }
    done = subprocess.run(
        [ROOT / "workflow/scripts/launch", "cells.measure"]
        + [text for name, value in options.items() for text in (f"--{name}", value)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "is not the platform 'far': " in done.stderr and done.stderr.count("\n") == 1
    assert (tmp_path / "logs/far.log").read_text() == done.stderr
    assert not (tmp_path / "far").exists()


def test_a_mistake_in_a_file_of_platforms(tmp_path):
    old = "  cores: 32\n"
    sentence = "at 'server-cpu', the key 'cores' is missing: 'cluster' needs it."
    mine = tmp_path / "mine.yaml"
    example = (ROOT / "config/platforms.example.yaml").read_text()
    mine.write_text(example)
    loaded = configuration.load(ROOT, {"grid": "ci", "platforms": str(mine)})
    assert {"local-cpu", "k80"} <= set(loaded.platforms)
    assert old in example
    mine.write_text(example.replace(old, "", 1))
    with pytest.raises(configuration.ConfigurationError) as error:
        configuration.load(ROOT, {"grid": "ci", "platforms": str(mine)})
    assert str(error.value).startswith(f"{mine}: {sentence}")


def test_the_lowest_compute_capability_counts(monkeypatch):
    known = [{"model": "A", "compute_capability": [9, 0]}, {"model": "B"}]
    known.append({"model": "A", "compute_capability": [6, 1]})
    monkeypatch.setattr(placement, "own_gpus", lambda: known)
    assert placement.capability({"device": "gpu"}) == placement.capability({"gpu": "A"}) == 6.1
    assert placement.capability({"device": "gpu", "gpu": "B"}) is None
