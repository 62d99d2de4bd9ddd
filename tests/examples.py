"""Cells made up for tests, and what a program reads of them."""

import json
import zipfile
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from steptime.cells import shard
from steptime.merge.measured import read_measured
from steptime.plan.cell import Cell, key_of, proof_name, shard_path
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Page

ROOT = Path(__file__).parents[1]
CATALOGUE = yaml.safe_load((ROOT / "config/networks.yaml").read_text())
FRAMEWORKS = Frameworks(ROOT / "resources/papers/frameworks.yaml")
# Dozens of layers of kinds that smaller networks have too: together they take as long as all others.
DEEP = {"convnext-tiny", "densenet121", "googlenet", "mobilenet", "mobilenet-v3"}
DEEP |= {"shufflenet", "xception"}
# The columns of a shard that are the same in all its rows.
CELL = {
    "platform": "local-cpu",
    "environment": "torch-9.9",
    "framework": "torch",
    "framework_version": "9.9.0",
    "mode": "eager",
    "precision": "float32",
    "task": "step",
    "network": "fcn5",
    "variant": "",
    "dataset": "",
    "device": "cpu",
    "devices": 1,
    "exchange": "",
    "threads": 1,
    "batch": 64,
    "repeat": 1,
    "status": "ok",
    "reason": "",
    "timed_region": "forward,loss,backward,update,sync",
    "machine_id": "m1",
    "started_at": None,
    "effective_threads": 1.0,
    "peak_memory_bytes": 1,
    "peak_device_memory_bytes": None,
    "proven_loss": 1e-7,
    "proven_change": 1e-6,
}
# As a grid plans it.
PLANNED = Cell(**{field.name: CELL[field.name] for field in fields(Cell)})
MACHINE = {"cpu": {"model": "A CPU", "logical_cores": 2}, "memory_bytes": 24 * 2**30, "gpus": []}
# What the row of a run that is ok says of what it was measured with.
DIGESTS = {
    f"{name}_digest": "d" for name in ("proof", "network", "worker", "environment", "sampling")
}
# Of a results folder.
NETWORKS = ("fcn5", "fcn8", "alexnet", "lstm32")
# What results/peaks/local-cpu.json holds.
PEAK = {
    "machine_id": "m1",
    "threads": {
        str(threads): {
            "flops_per_second": threads * 1e11,
            "bytes_per_second": threads * 1e10,
            "product": 512,
            "blas": "blas 1",
            "stream": "add",
        }
        for threads in (1, 2)
    },
}


def deep_seldom(names):
    """Parameters of a test, of which `make test-zoo` alone takes those of DEEP."""
    seldom = pytest.mark.seldom
    return [pytest.param(name, marks=[seldom] * (name in DEEP)) for name in names]


def words():
    """A page for a table to write its facts and notes into."""
    return Page("a_b", "Title", "Caption.", "A paper")


def inputs(**known):
    """What a kind of artefact may read: `known`, and what all of them may."""
    project = {"frameworks": FRAMEWORKS, "networks": CATALOGUE, "parts": [], "passes": []}
    return SimpleNamespace(**project | {"page": words(), "entry": {"title": "Title"}} | known)


def measured(tmp_path, *cells):
    """What `read_measured` gives for cells, each of six samples of its `seconds`, or one row where that is None."""
    rows = [
        CELL | cell | {"sample": sample, "seconds": cell["seconds"]}
        for cell in cells
        for sample in range(6 if cell["seconds"] else 1)
    ]
    table = pa.Table.from_pandas(pd.DataFrame(rows))
    machines = {"m1": {"cpu": {"model": "A CPU", "physical_cores": 2, "logical_cores": 2}}}
    words = json.dumps({"machines": machines, "software": {}}).encode()
    pq.write_table(table.replace_schema_metadata({b"steptime": words}), tmp_path / "merged.parquet")
    return read_measured(tmp_path / "merged.parquet")


def results_of(root, times, machine=MACHINE, start=0, **changes):
    """A results folder: three processes of each network in each environment of `times`, which differ by 2 %."""
    random = np.random.default_rng(7)
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=start)
    for repeat in (1, 2, 3):
        for network in NETWORKS:
            for environment, seconds in times.items():
                time = seconds[network] if isinstance(seconds, dict) else seconds
                began += timedelta(seconds=10)
                facts = CELL | {"parameters": 1000, "flops_per_step": 10**6}
                facts |= {"environment": environment, "network": network, "repeat": repeat}
                facts |= {"started_at": began, "ended_at": began + timedelta(seconds=9)}
                facts |= DIGESTS | {"proof_id": "p"} | changes
                value = time * np.exp(0.02 * random.standard_normal())
                rows = [{"sample": at, "steps": 1, "seconds": value} for at in range(6)]
                shard.write(
                    Path(shard_path(key_of(facts), str(root))),
                    facts,
                    rows if time else [],
                    {"machine": machine, "job": {"variables": {"OMP_NUM_THREADS": "1"}}},
                )
                proof = root / f"proofs/{proof_name(facts)}.json"
                proof.parent.mkdir(parents=True, exist_ok=True)
                proof.write_text(json.dumps({"status": "ok", "reason": "", "proof_id": "p"}))
    return root


def write_wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    """A package with one module, for any Python."""
    about = f"{name}-{version}.dist-info"
    needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "answer = 42\n")
        described = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}"
        wheel.writestr(f"{about}/METADATA", described)
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
