"""Dropout that is left out, not scaled or the same for all samples is refused in real frameworks, at both sizes.

After c6-dropout-left-out and c7-dropout-on-sequences. With STEPTIME_ZOO=all (`make test-zoo`), not in PyTorch alone.
"""

import json
import os
import subprocess

import numpy as np
import pytest
import yaml
from conftest import ROOT
from defects.planting import CATALOGUE, DROPPING
from today import JAX, KERAS, MXNET, TENSORFLOW, TORCH

from shared.narrow import BATCH
from steptime import networks, project
from steptime.cells.measure import fill
from steptime.environments import interpreter
from steptime.plan import configuration
from steptime.prove import compare, golden, network, reference
from steptime.supervisor import supervise

PROGRAM = ROOT / "tests/defects/in_frameworks.py"
ALL = os.environ.get("STEPTIME_ZOO") == "all"
FULL = 4 * BATCH
# {defect: words of the refusal}
PLANTED = {
    "left_out": "makes other values of 1 than 0|takes the first changes",
    "not_scaled": "makes other values of 1 than 0|takes the first changes",
    "same_for_all": "drops the same values in each sample|takes the first changes",
}
SAMPLING = {"budget_seconds": 0.2, "precision": 0.5, "least_samples": 3}


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """{network: the path of its reference} at its narrow sizes and FULL samples."""
    folder = tmp_path_factory.mktemp("references")
    for name in DROPPING:
        spec = networks.specify(name, CATALOGUE, narrow=True)
        np.savez(folder / f"{name}.npz", **reference.compute(spec, FULL))
    return {name: str(folder / f"{name}.npz") for name in DROPPING}


def jobs(entry, mode, references, folder):
    """{(network, size, defect): job}, right ones too."""
    made = {}
    for name in DROPPING:
        spec = networks.specify(name, CATALOGUE, narrow=True)
        asked = network.worker_job({"adapter": entry["adapter"], "mode": mode}, spec)
        narrow = asked | {"task": "proof", "proves": "step"}
        full = asked | {"task": "step", "batch": FULL, "reference": references[name]}
        full |= {"sampling": SAMPLING, "gradients": True}
        for size, job in {"narrow": narrow, "full": full}.items():
            for defect in (None, *PLANTED):
                own = job | ({"planted": defect} if defect else {})
                own["masks"] = networks.masks.of_network(spec, job["batch"])
                own["output"] = str(folder / f"{len(made)}.out")
                made[name, size, defect] = own
    return made


@pytest.mark.parametrize("environment", [TORCH] + [TENSORFLOW, MXNET, JAX, KERAS] * ALL)
def test_wrong_dropout_is_refused_in_real_frameworks(environment, references, tmp_path):
    if not (project.environment(environment) / "bin/python").exists():
        pytest.skip(f"{environment} is not on this machine: `make environments ONLY={environment}`")
    entry = configuration.load(ROOT, {}).entry_of(environment)
    mode, prefix = entry["modes"][0], interpreter.prefix_of(environment)
    asked = jobs(entry, mode, references, tmp_path)
    done = subprocess.run(
        [prefix / "bin/python", PROGRAM],
        input=json.dumps(list(asked.values())),
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "workflow/scripts")}
        | supervise.own_folders(prefix, str(tmp_path))
        | fill(entry.get("variables", {}), 1, mode, prefix),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = {case: refusal(job) for case, job in asked.items()}
    print(yaml.dump({" ".join(map(str, case)): words for case, words in told.items()}))
    assert not [case for case, words in told.items() if words and not case[2]], told
    for (name, size, defect), words in told.items():
        if defect:
            assert any(each in words for each in PLANTED[defect].split("|")), (name, size, words)


def refusal(job):
    """Why a proof refuses what the program has made of a job; '' where it does not."""
    if job["task"] == "step":
        return json.loads(open(job["output"]).read())
    return compare.judge(
        job["spec"], golden.expect(job["spec"]), compare.read(job["output"])
    ).reason
