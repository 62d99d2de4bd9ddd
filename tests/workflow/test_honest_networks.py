"""Hundreds of right networks are proven in real frameworks, narrow and at full size.

With STEPTIME_ZOO=all (`make test-zoo`); how near each comes to a limit is written to docs/evidence/honest-networks.csv.
"""

import csv
import json
import os
import subprocess

import honest
import numpy as np
import pytest
from defects import planting
from defects.planting import HONEST
from today import JAX, KERAS, MXNET, TENSORFLOW, TORCH, entry_of, only_zoo, prefix_of

from shared import declarations
from shared.narrow import BATCH
from steptime import networks
from steptime.cells.measure import fill
from steptime.prove import compare, golden, network, reference
from steptime.tasks import that_proves
from worker import contract

ENVIRONMENTS = [TORCH, TENSORFLOW, JAX, MXNET, KERAS]
COUNT = int(os.environ.get("STEPTIME_HONEST", 300))
NETWORKS = HONEST | honest.networks(COUNT)
TABLE = planting.ROOT / "docs/evidence/honest-networks.csv"
COLUMNS = ("network", "environment", "proof", "share", "nearest")
# What a narrow proof tells, and its limits.
TOLD = {"loss_error": "loss", "later_loss_error": "later_loss"}


@pytest.fixture(scope="session")
def references(tmp_path_factory):
    """The path of the reference of each network, at its own size."""
    folder, made = tmp_path_factory.mktemp("references"), {}

    def of(name):
        if name not in made:
            made[name] = folder / f"{name}.npz"
            spec = networks.specify(name, NETWORKS)
            np.savez(made[name], **reference.compute(spec, NETWORKS[name]["batch"]))
        return str(made[name])

    return of


@only_zoo
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_right_networks_are_proven(environment, references, tmp_path):
    prefix_of(environment)
    rows, refused = [], []
    for name, proof, share, nearest, reason in [
        *narrow(environment, tmp_path),
        *at_full_size(environment, references),
    ]:
        row = (name, environment, proof, f"{share:.2g}", nearest)
        rows.append(dict(zip(COLUMNS, row, strict=True)))
        refused += [f"{name}, {proof}: {reason}"] * bool(reason)
    write(environment, rows)
    assert not refused, "\n".join(refused)


def write(environment, rows):
    """Replaces the rows of an environment in the table."""
    if TABLE.exists():
        with TABLE.open() as file:
            rows = [row for row in csv.DictReader(file) if row["environment"] != environment] + rows
    with TABLE.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(sorted(rows, key=lambda row: [row[column] for column in COLUMNS[:3]]))


def asked(environment, narrow=False):
    """Specifications, and the jobs of what a framework has, in its first mode."""
    entry = entry_of(environment)
    has = declarations.declared(entry["adapter"])
    for name in NETWORKS:
        spec = networks.specify(name, NETWORKS, narrow=narrow)
        job = network.worker_job({"adapter": entry["adapter"], "mode": entry["modes"][0]}, spec)
        job["proves"] = that_proves(spec)
        try:
            contract.require(entry["adapter"], has, job)
        except contract.Unsupported:
            continue
        yield spec, job


def narrow(environment, folder):
    """(network, proof, share of a limit, what came nearest, reason of a refusal) of narrow proofs."""
    jobs = []
    for spec, job in asked(environment, narrow=True):
        output = str(folder / f"{spec['network']}.npz")
        job |= {"task": "proof", "masks": {}, "output": output}
        jobs.append((spec, job))
    planting.prove_in(environment, jobs[0][1]["mode"], [job for _, job in jobs], folder)
    for spec, job in jobs:
        proof = compare.judge(spec, golden.expect(spec, BATCH), compare.read(job["output"]))
        shares = {
            told: proof.details.get(told, 0.0) / compare.TOLERANCES[limit]
            for told, limit in TOLD.items()
        }
        shares["worst_update"] = proof.details["worst_share"]
        for told, value in proof.details.items():
            if told.endswith(("_update", "_parameters")) and told.startswith("after"):
                limit = "later_update" if told.endswith("_update") else "parameters"
                shares[told] = value / compare.TOLERANCES[limit]
        nearest = max(shares, key=shares.get)
        yield spec["network"], "narrow", shares[nearest], nearest, proof.reason


def at_full_size(environment, references):
    """The same of proofs at full size."""
    jobs = []
    for spec, job in asked(environment):
        job |= {"task": "step", "batch": NETWORKS[spec["network"]]["batch"], "threads": 1}
        job |= {"reference": references(spec["network"]), "gradients": True, "defects": ["right"]}
        jobs.append(job)
    prefix, entry = prefix_of(environment), entry_of(environment)
    folder = planting.ROOT / "benchmarks/full_size"
    done = subprocess.run(
        [prefix / "bin/python", folder / "inside.py"],
        input=json.dumps(jobs),
        env=os.environ
        | fill(entry.get("variables", {}), 1, jobs[0]["mode"], prefix)
        | {"PYTHONPATH": str(planting.ROOT / "workflow/scripts")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for said in map(json.loads, filter(lambda line: line[:1] == "{", done.stdout.splitlines())):
        shares = {what: off / limit for _, what, off, limit in said["held"]}
        nearest = max(shares, key=shares.get)
        reason = said["lacking"] or "; ".join(said["refused"])
        yield said["network"], "full size", shares[nearest], nearest, reason
