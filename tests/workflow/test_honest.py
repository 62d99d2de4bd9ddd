"""Real frameworks prove the right networks of tests/cases/honest.yaml."""

from pathlib import Path

import pytest
from defects import planting
from defects.planting import HONEST
from today import JAX, KERAS, MXNET, TENSORFLOW, TORCH, entry_of, prefix_of

from shared.narrow import BATCH
from steptime import networks
from steptime.prove import compare, golden, network
from steptime.tasks import that_proves

SELDOM = [pytest.param(each, marks=pytest.mark.seldom) for each in (TENSORFLOW, JAX, KERAS)]
OLD = [
    ("theano-1.0.5", "graph"),
    *(("keras-2.0.5", mode) for mode in entry_of("keras-2.0.5")["modes"]),
]


@pytest.mark.parametrize("environment", [TORCH, MXNET, *SELDOM])
def test_a_right_network_is_proven(environment, tmp_path):
    specs = [networks.specify(name, HONEST, narrow=True) for name in HONEST]
    prove(environment, entry_of(environment)["modes"][0], specs, tmp_path)


@pytest.mark.seldom
@pytest.mark.parametrize(("environment", "mode"), OLD)
def test_older_ones_take_one_of_equal_values_and_drop_in_each_layer_for_itself(
    environment, mode, tmp_path
):
    specs = [networks.specify("equal-values", HONEST, narrow=True)]
    specs += [networks.specify("mnist", planting.CATALOGUE, narrow=True)]
    prove(environment, mode, specs, tmp_path)


def prove(environment, mode, specs, folder):
    prefix_of(environment)
    asked = {"adapter": entry_of(environment)["adapter"], "mode": mode}
    jobs = [
        network.worker_job(asked, spec)
        | {
            "task": "proof",
            "proves": that_proves(spec),
            "masks": networks.masks.of_network(spec, BATCH),
            "output": str(folder / f"{spec['network']}.npz"),
        }
        for spec in specs
    ]
    planting.prove_in(environment, mode, jobs, folder)
    for spec, job in zip(specs, jobs, strict=True):
        found = compare.read(Path(job["output"]))
        proof = compare.judge(spec, golden.expect(spec, BATCH, 1), found)
        assert proof.passed, proof.reason
