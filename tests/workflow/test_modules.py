"""Modules of PyTorch are exported by PyTorch itself, become networks, and are proven to be the same function."""

import os
import re
import subprocess
import sys

import pytest
import yaml
from conftest import ROOT
from today import TORCH, prefix_of

from steptime import networks

WORDS = ["--input", "tokens:20", "--vocabulary", "50"]


def imported(name, folder, *options):
    """What an import of a module of tests/cases/modules.py has printed, in a folder of its own."""
    return from_source(f"{ROOT}/tests/cases/modules.py:{name}", folder, *options)


def from_source(source, folder, *options):
    command = [sys.executable, "-m", "steptime", "imported.module", source]
    return subprocess.run(
        [*command, *options, "--python", prefix_of(TORCH) / "bin/python"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "workflow/scripts"), "PYTHONSAFEPATH": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("name", "options", "parts"),
    [
        (
            "Mobile",
            ["--input", "3x18x18"],
            {
                "conv": {"kernel": [3, 1], "padding": [1, 0]},
                "batch_norm": {"epsilon": 1e-3, "momentum": 0.01},
                "pad": {"rows": [0, 1], "columns": [0, 1]},
                "max_pool": {"up": True},
                "stochastic_depth": {"rate": 0.2},
                "channel_shuffle": {"groups": 2},
                "channel_part": {"size": 4},
                "scale_channels": {},
            },
        ),
        (
            "Gated",
            ["--input", "32"],
            {
                "conv": {"kernel": [1, 7], "padding": [0, 3]},
                "grouped_conv": {"kernel": [1, 5], "stride": 2},
                "pad": {"rows": [0, 0], "columns": [4, 0]},
                "avg_pool": {"kernel": [1, 2]},
                "scale_channels": {},
            },
        ),
        (
            "UNet",
            ["--input", "3x16x16", "--loss", "mean_squares"],
            {"upsample": {"factor": 2, "bilinear": True}, "concat": {}},
        ),
        ("Llama", WORDS, {"attention": {"kv_heads": 1, "rotary": 10000.0, "causal": True}}),
        ("Encoder", WORDS, {"attention": {"heads": 3, "causal": True, "dropout": 0.1}}),
        (
            "Recurrent",
            WORDS,
            {
                "lstm": {"units": 16, "bidirectional": True},
                "dropout": {"rate": 0.1},
                "gru": {"units": 8, "bidirectional": True},
                "first_step": {},
            },
        ),
    ],
)
def test_a_module_is_imported_and_the_same_function(name, options, parts, tmp_path):
    done = imported(name, tmp_path, *options)
    found = re.search(r"Same outputs and gradients as your module \((.*)\)", done.stderr)
    assert found and float(found[1]) < 1e-11, done.stderr
    entry = yaml.safe_load((tmp_path / f"networks/{name.lower()}.yaml").read_text())[name.lower()]
    spec = networks.specify(name, {name: entry})
    for kind, values in parts.items():
        node = next(node for node in spec["nodes"] if node["op"] == kind)
        assert {key: node[key] for key in values} == values


@pytest.mark.seldom
def test_a_saved_program_is_imported_with_its_paths(tmp_path):
    python = prefix_of(TORCH) / "bin/python"
    saves = (
        "import torch, modules; given = (torch.randn(4, 3, 18, 18),); "
        "torch.export.save(torch.export.export(modules.Mobile(), given), 'net.pt2')"
    )
    cases = os.environ | {"PYTHONPATH": str(ROOT / "tests/cases")}
    subprocess.run([python, "-c", saves], env=cases, cwd=tmp_path, check=True)
    done = from_source("net.pt2", tmp_path, "--input", "3x18x18")
    assert "Same outputs and gradients as your module" in done.stderr, done.stderr
    text = (tmp_path / "networks/net.yaml").read_text()
    assert "same_as: net.pt2 (sha256" in text and "# depthwise" in text


def test_all_that_has_no_layer_is_said_at_once(tmp_path):
    done = imported("Refused", tmp_path, "--input", "6")
    assert done.returncode and not (tmp_path / "networks").exists()
    assert "Refused uses mish once (1): no layer kind does that. Nearest: silu." in done.stderr
    assert "Refused uses log_softmax once (3)" in done.stderr
