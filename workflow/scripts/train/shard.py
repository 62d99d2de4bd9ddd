"""The Parquet file of one training: a row for each epoch, in the columns of a cell's shard as far as they fit."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from measure.shard import FOOTER, ShardError, again
from whole import whole

SCHEMA_VERSION = 1

# One a cell, then one an epoch; a training without an epoch has one row.
COLUMNS = pa.schema(
    [
        ("platform", pa.string()),
        ("environment", pa.string()),
        ("framework", pa.string()),
        ("framework_version", pa.string()),
        ("adapter_mode", pa.string()),
        ("network", pa.string()),
        ("variant", pa.string()),
        ("dataset", pa.string()),
        ("dataset_label", pa.string()),
        ("whole_dataset", pa.string()),
        ("dataset_sha256", pa.string()),
        ("device", pa.string()),
        ("devices", pa.int32()),
        ("threads", pa.int32()),
        ("batch", pa.int32()),
        ("repeat", pa.int32()),
        ("seed", pa.int32()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("stopped", pa.string()),
        ("target_accuracy", pa.float64()),
        ("most_epochs", pa.int32()),
        ("budget_seconds", pa.float64()),
        ("parameters", pa.int64()),
        ("flops_per_step", pa.int64()),
        ("timed_region", pa.string()),
        ("import_seconds", pa.float64()),
        ("build_seconds", pa.float64()),
        ("peak_memory_bytes", pa.int64()),
        ("peak_device_memory_bytes", pa.int64()),
        ("effective_threads", pa.float64()),
        ("waiting_threads", pa.float64()),
        ("involuntary_switches", pa.int64()),
        ("foreign_cpus", pa.float64()),
        ("steal_share", pa.float64()),
        ("frequency_ratio", pa.float64()),
        ("device_utilisation", pa.float64()),
        ("energy_joules", pa.float64()),
        ("host_energy_joules", pa.float64()),
        ("proof_id", pa.string()),
        ("environment_digest", pa.string()),
        ("machine_id", pa.string()),
        ("workflow_commit", pa.string()),
        ("started_at", pa.timestamp("ms", tz="UTC")),
        ("epoch", pa.int32()),
        ("steps", pa.int32()),
        ("seconds", pa.float64()),
        ("feed_seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("loss", pa.float64()),
        ("test_loss", pa.float64()),
        ("accuracy", pa.float64()),
        ("test_seconds", pa.float64()),
    ]
)
PER_EPOCH = COLUMNS.names[COLUMNS.names.index("epoch") :]


def write(path: Path, facts: dict[str, Any], epochs: list[dict[str, Any]], footer: dict[str, Any]) -> None:
    """Writes the file of one training, whole or not at all; `facts` are its constant columns, missing ones null.

    Raises OSError.
    """
    rows = [facts | epoch for epoch in epochs] or [facts]
    table = pa.table({name: [row.get(name) for row in rows] for name in COLUMNS.names}, schema=COLUMNS)
    content = json.dumps(footer | {"schema": SCHEMA_VERSION}, sort_keys=True, default=datetime.isoformat)
    with whole(path) as file:
        pq.write_table(table.replace_schema_metadata({FOOTER: content.encode()}), file)


def file_name(row: dict[str, Any]) -> str:
    """Name of the file of the training that a row tells about."""
    return (
        f"{row['environment']}.{row['adapter_mode']}-{row['variant'] or row['network']}-on-{row['dataset']}"
        f"-b{row['batch']}-t{row['threads']}-d{row['devices']}-r{row['repeat']}.parquet"
    )


def read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Rows and footer. Raises ShardError where the file is missing, broken, or of another version."""
    try:
        table = pq.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
    except FileNotFoundError as error:
        raise ShardError(f"The training {path} is missing: run `snakemake {path}`.") from error
    except (pa.ArrowException, OSError) as error:
        raise ShardError(f"The training {path} is broken ({str(error).splitlines()[0]}): {again(path)}") from error
    footer = json.loads((table.schema.metadata or {}).get(FOOTER, b"{}"))
    if footer.get("schema") != SCHEMA_VERSION or table.schema.remove_metadata() != COLUMNS:
        raise ShardError(f"The training {path} was written by another version of this workflow: {again(path)}")
    return table, footer
