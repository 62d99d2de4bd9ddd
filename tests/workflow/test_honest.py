"""Real frameworks prove the right networks of tests/cases/honest.yaml."""

from pathlib import Path

import pytest
import yaml
from defects import planting
from today import JAX, KERAS, MXNET, TENSORFLOW, TORCH, entry_of, prefix_of

from shared.narrow import BATCH
from steptime import networks
from steptime.prove import compare, golden, network
from steptime.tasks import that_proves

HONEST = yaml.safe_load((planting.ROOT / "tests/cases/honest.yaml").read_text())


SELDOM = [pytest.param(each, marks=pytest.mark.seldom) for each in (TENSORFLOW, KERAS)]


@pytest.mark.parametrize("environment", [TORCH, JAX, MXNET, *SELDOM])
def test_a_right_network_is_proven(environment, tmp_path):
    prefix_of(environment)
    entry = entry_of(environment)
    mode = entry["modes"][0]
    specs = [networks.specify(name, HONEST, narrow=True) for name in HONEST]
    jobs = [
        network.worker_job({"adapter": entry["adapter"], "mode": mode}, spec)
        | {
            "task": "proof",
            "proves": that_proves(spec),
            "masks": {},
            "output": str(tmp_path / f"{spec['network']}.npz"),
        }
        for spec in specs
    ]
    planting.prove_in(environment, mode, jobs, tmp_path)
    for spec, job in zip(specs, jobs, strict=True):
        found = compare.read(Path(job["output"]))
        proof = compare.judge(spec, golden.expect(spec, BATCH, 1), found)
        assert proof.passed, proof.reason
