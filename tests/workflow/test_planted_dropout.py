"""Dropout that a framework's own switches get wrong is refused in real frameworks, narrow and at full size.

After c6-dropout-left-out and c7-dropout-on-sequences. In `make test-zoo` alone.
"""

import json
import re

import numpy as np
import pytest
import yaml
from defects.dropping import MASKS, possible
from defects.planted_dropout import NOT_IN
from defects.planting import CATALOGUE, DROPPING, prove_in
from today import JAX, KERAS, MXNET, TENSORFLOW, TORCH, entry_of

from shared import declarations
from shared.narrow import BATCH
from steptime import networks
from steptime.prove import compare, golden, network, reference

FULL = 4 * BATCH
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
        has = declarations.declared(entry["adapter"])["OPTIONS"].get("attention", ())
        if spec.get("options") and "dropout" not in has:
            continue
        asked = network.worker_job({"adapter": entry["adapter"], "mode": mode}, spec)
        narrow = asked | {"task": "proof", "proves": "step"}
        full = asked | {"task": "step", "batch": FULL, "reference": references[name]}
        full |= {"sampling": SAMPLING, "gradients": True}
        for size, job in {"narrow": narrow, "full": full}.items():
            for defect in (None, *possible(spec)):
                elsewhere = spec.get("options") and entry["adapter"] != "torch"
                if defect in NOT_IN.get(entry["adapter"], ()) or defect and elsewhere:
                    continue
                own = job | ({"dropout": defect} if defect else {})
                own["masks"] = networks.masks.of_network(spec, job["batch"])
                own["output"] = str(folder / f"{len(made)}.out")
                made[name, size, defect] = own
    return made


@pytest.mark.seldom
@pytest.mark.parametrize("environment", [TORCH, TENSORFLOW, MXNET, JAX, KERAS])
def test_wrong_dropout_is_refused_in_real_frameworks(environment, references, tmp_path):
    entry = entry_of(environment)
    asked = jobs(entry, entry["modes"][0], references, tmp_path)
    prove_in(environment, entry["modes"][0], asked.values(), tmp_path)
    told = {case: refusal(job) for case, job in asked.items()}
    print(yaml.dump({" ".join(map(str, case)): words for case, words in told.items()}))
    for (name, size, defect), words in told.items():
        known = f"{MASKS[defect][1]}|takes the first changes" if defect else "^$"
        assert re.search(known, words), (name, size, defect, words)


def refusal(job):
    """Why a proof refuses what the program has made of a job; '' where it does not."""
    if job["task"] == "step":
        return json.loads(open(job["output"]).read())
    return compare.judge(
        job["spec"], golden.expect(job["spec"]), compare.read(job["output"])
    ).reason
