"""Cells made up for tests, and what a program reads of them."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from steptime.merge.measured import read_measured
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Page

ROOT = Path(__file__).parents[1]
CATALOGUE = yaml.safe_load((ROOT / "config/networks.yaml").read_text())
FRAMEWORKS = Frameworks(ROOT / "resources/papers/frameworks.yaml")
# The columns of a shard that are the same in all its rows.
CELL = {
    "platform": "local-cpu",
    "environment": "torch-2.13",
    "framework": "torch",
    "framework_version": "2.13.0",
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


def words():
    """A page for a table to write its facts and notes into."""
    return Page("a_b", "Title", "Caption.", "A paper")


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
