"""The Parquet file of one cell: its columns, which are the contract of the project, and how it is written and read."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whole import whole

SCHEMA_VERSION = 1
FOOTER = b"steptime"
STATUSES = (
    "ok",
    "unsupported",
    "install_failed",
    "not_equivalent",
    "out_of_memory",
    "timeout",
    "crashed",
    "diverged",
)

COLUMNS = pa.schema(
    [
        ("platform", pa.string()),
        ("environment", pa.string()),
        ("framework", pa.string()),
        ("framework_version", pa.string()),
        ("adapter_mode", pa.string()),
        ("network", pa.string()),
        ("variant", pa.string()),
        ("device", pa.string()),
        ("devices", pa.int32()),
        ("threads", pa.int32()),
        ("batch", pa.int32()),
        ("repeat", pa.int32()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("sample", pa.int32()),
        ("steps", pa.int32()),
        ("seconds", pa.float64()),
        ("parameters", pa.int64()),
        ("flops_per_step", pa.int64()),
        ("timed_region", pa.string()),
        ("warmup_steps", pa.int32()),
        ("import_seconds", pa.float64()),
        ("build_seconds", pa.float64()),
        ("peak_memory_bytes", pa.int64()),
        ("peak_device_memory_bytes", pa.int64()),
        ("cpu_seconds", pa.float64()),
        ("wall_seconds", pa.float64()),
        ("effective_threads", pa.float64()),
        ("waiting_threads", pa.float64()),
        ("involuntary_switches", pa.int64()),
        ("foreign_cpus", pa.float64()),
        ("steal_share", pa.float64()),
        ("frequency_ratio", pa.float64()),
        ("device_utilisation", pa.float64()),
        ("energy_joules", pa.float64()),
        ("first_loss", pa.float64()),
        ("last_loss", pa.float64()),
        ("proof_id", pa.string()),
        ("environment_digest", pa.string()),
        ("machine_id", pa.string()),
        ("workflow_commit", pa.string()),
        ("started_at", pa.timestamp("ms", tz="UTC")),
    ]
)

# The columns that are not constant in a cell, and those that are.
PER_SAMPLE = ("sample", "steps", "seconds")
SAMPLES = pa.schema([COLUMNS.field(name) for name in PER_SAMPLE])
CONSTANT = [name for name in COLUMNS.names if name not in PER_SAMPLE]
# The columns that tell the name of a cell's file.
NAMING = ["environment", "adapter_mode", "network", "variant", "batch", "threads", "devices", "repeat"]


class ShardError(Exception):
    """A shard that cannot be used; the text says which, why, and the command that measures its cell again."""


def write(path: Path, facts: dict[str, Any], samples: list[tuple[int, float]], footer: dict[str, Any]) -> None:
    """Writes the shard of one cell, whole or not at all.

    `facts` are the columns that are constant in a cell (missing ones are null), `samples` are (steps, seconds per
    mini-batch); without samples there is one row. Raises OSError (a full disk, say) and leaves no half-written shard.
    """
    rows: list[tuple[int | None, int | None, float | None]] = [
        (number, steps, seconds) for number, (steps, seconds) in enumerate(samples, 1)
    ] or [(None, None, None)]
    columns = {name: [facts.get(name)] * len(rows) for name in COLUMNS.names}
    columns["sample"], columns["steps"], columns["seconds"] = (list(values) for values in zip(*rows, strict=True))
    table = pa.table(columns, schema=COLUMNS)
    row = table.select(CONSTANT).slice(0, 1).to_pylist()[0]
    content = json.dumps(dict(footer, schema=SCHEMA_VERSION, row=row), sort_keys=True, default=datetime.isoformat)
    # Arrow's own copy of the schema repeats the footer, and statistics of 20 rows tell nobody anything: without them,
    # a shard is half as large and read in two thirds of the time.
    lean = {"store_schema": False, "write_statistics": False, "use_dictionary": False}
    with whole(path) as file, pq.ParquetWriter(file, COLUMNS, **lean) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({FOOTER: content})


def file_name(row: dict[str, Any]) -> str:
    """Name of the file of the cell that a row tells about."""
    network = row["variant"] or row["network"]
    return (
        f"{row['environment']}.{row['adapter_mode']}-{network}"
        f"-b{row['batch']}-t{row['threads']}-d{row['devices']}-r{row['repeat']}.parquet"
    )


def read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Rows and footer of a shard. Raises ShardError when it is missing, broken, or of another schema version."""
    return _read(path, COLUMNS)


def read_parts(path: Path) -> tuple[dict[str, Any], pa.Table, dict[str, Any]]:
    """The constant columns as a dict, the columns PER_SAMPLE, and the footer, in a quarter of the time of `read`.

    The footer repeats the constant columns for this: a table of an artefact is made of thousands of shards. Raises
    ShardError as `read` does.
    """
    samples, footer = _read(path, SAMPLES)
    row = footer.get("row")
    if row is None:
        # Written before there were such footers.
        return read(path)[0].select(CONSTANT).slice(0, 1).to_pylist()[0], samples, footer
    if row.keys() != set(CONSTANT):
        raise _without_columns(path)
    if row["started_at"]:
        row["started_at"] = datetime.fromisoformat(row["started_at"])
    return row, samples, footer


def _read(path: Path, schema: pa.Schema) -> tuple[pa.Table, dict[str, Any]]:
    """The columns of `schema`, which are all or SAMPLES, and the footer."""
    try:
        # pq.read_table looks for a dataset first, and a path is read by threads: both take longer than all the rest.
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()), pre_buffer=False)
        table = file.read(None if schema is COLUMNS else schema.names, use_threads=False)
    except FileNotFoundError as error:
        raise ShardError(f"The shard {path} is missing: run `snakemake {path}`.") from error
    except (pa.ArrowException, OSError) as error:
        raise ShardError(f"The shard {path} is broken ({_first_line(error)}): {again(path)}") from error
    footer = json.loads((table.schema.metadata or {}).get(FOOTER, b"{}"))
    version = footer.get("schema")
    if version != SCHEMA_VERSION:
        raise ShardError(
            f"The shard {path} has schema version {version} and this workflow reads {SCHEMA_VERSION}: {again(path)}"
        )
    if not table.schema.equals(schema):
        raise _without_columns(path)
    return table, footer


def _without_columns(path: Path) -> ShardError:
    return ShardError(f"The shard {path} does not have the columns of a shard: {again(path)}")


def again(path: Path) -> str:
    """The command that measures the cell of a shard once more."""
    return f"measure its cell again with `rm {path} && snakemake {path}`."


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
