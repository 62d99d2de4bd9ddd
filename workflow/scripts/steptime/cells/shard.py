"""The Parquet file of one cell, timed or trained: its columns, which are the contract of the project, and how it is
written and read.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steptime.atomic import atomic_write

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


def _columns(first: str, last: str) -> list[pa.Field]:
    """The columns of a timed cell from one to another."""
    names = COLUMNS.names
    return [COLUMNS.field(name) for name in names[names.index(first) : names.index(last) + 1]]


# Of a training, in which a row is an epoch: what is constant in it comes first.
TRAINING = pa.schema(
    [
        *_columns("platform", "variant"),
        ("dataset", pa.string()),
        ("dataset_label", pa.string()),
        ("whole_dataset", pa.string()),
        ("dataset_sha256", pa.string()),
        *_columns("device", "repeat"),
        ("seed", pa.int32()),
        *_columns("status", "reason"),
        ("stopped", pa.string()),
        ("target_accuracy", pa.float64()),
        ("most_epochs", pa.int32()),
        ("budget_seconds", pa.float64()),
        *_columns("parameters", "timed_region"),
        *_columns("import_seconds", "peak_device_memory_bytes"),
        *_columns("effective_threads", "energy_joules"),
        ("host_energy_joules", pa.float64()),
        *_columns("proof_id", "started_at"),
        ("epoch", pa.int32()),
        *_columns("steps", "seconds"),
        ("feed_seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("loss", pa.float64()),
        ("test_loss", pa.float64()),
        ("accuracy", pa.float64()),
        ("test_seconds", pa.float64()),
    ]
)

PER_EPOCH = TRAINING.names[TRAINING.names.index("epoch") :]

# The columns that are not constant in a timed cell, and those that are.
PER_SAMPLE = ("sample", "steps", "seconds")
SAMPLES = pa.schema([COLUMNS.field(name) for name in PER_SAMPLE])
CONSTANT = [name for name in COLUMNS.names if name not in PER_SAMPLE]
# The columns that tell the name of a cell's file.
NAMING = [
    "environment",
    "adapter_mode",
    "network",
    "variant",
    "batch",
    "threads",
    "devices",
    "repeat",
]


class ShardError(Exception):
    """A shard that cannot be used; the text says which, why, and the command that measures its cell again."""


def write(
    path: Path, facts: dict[str, Any], samples: list[tuple[int, float]], footer: dict[str, Any]
) -> None:
    """Writes the shard of one timed cell, whole or not at all.

    `facts` are the columns that are constant in a cell (missing ones are null), `samples` are (steps, seconds per
    mini-batch); without samples there is one row. Raises OSError (a full disk, say) and leaves no half-written shard.
    """
    rows = [
        dict(zip(PER_SAMPLE, (number, *sample), strict=True))
        for number, sample in enumerate(samples, 1)
    ]
    table = _table(COLUMNS, facts, rows)
    _save(path, table, footer | {"row": table.select(CONSTANT).slice(0, 1).to_pylist()[0]})


def write_training(
    path: Path, facts: dict[str, Any], epochs: list[dict[str, Any]], footer: dict[str, Any]
) -> None:
    """Writes the shard of one training as `write` does; `epochs` have the columns PER_EPOCH."""
    _save(path, _table(TRAINING, facts, epochs), footer)


def _table(schema: pa.Schema, facts: dict[str, Any], rows: list[dict[str, Any]]) -> pa.Table:
    rows = [facts | row for row in rows] or [facts]
    return pa.table({name: [row.get(name) for row in rows] for name in schema.names}, schema=schema)


def _save(path: Path, table: pa.Table, footer: dict[str, Any]) -> None:
    content = json.dumps(
        footer | {"schema": SCHEMA_VERSION}, sort_keys=True, default=datetime.isoformat
    )
    # Arrow's own copy of the schema repeats the footer, and statistics of 20 rows tell nobody anything: without them,
    # a shard is half as large and read in two thirds of the time.
    lean = {"store_schema": False, "write_statistics": False, "use_dictionary": False}
    with atomic_write(path) as file, pq.ParquetWriter(file, table.schema, **lean) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({FOOTER: content})


def file_name(row: dict[str, Any]) -> str:
    """Name of the file of the cell, timed or trained, that a row tells about."""
    network = row["variant"] or row["network"]
    trained_on = f"-on-{row['dataset']}" if "dataset" in row else ""
    return (
        f"{row['environment']}.{row['adapter_mode']}-{network}{trained_on}"
        f"-b{row['batch']}-t{row['threads']}-d{row['devices']}-r{row['repeat']}.parquet"
    )


def read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Rows and footer of a shard, in COLUMNS or those of TRAINING.

    Raises ShardError when it is missing, broken, or of another schema version.
    """
    return _read(path, COLUMNS, TRAINING)


def read_parts(path: Path) -> tuple[dict[str, Any], pa.Table, dict[str, Any]]:
    """Of a timed cell, the constant columns as a dict, PER_SAMPLE, and the footer, in a quarter of the time of `read`.

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


def _read(path: Path, *schemas: pa.Schema) -> tuple[pa.Table, dict[str, Any]]:
    """The columns of one of the schemas, which are all or SAMPLES, and the footer."""
    try:
        # pq.read_table looks for a dataset first, and a path is read by threads: both take longer than all the rest.
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()), pre_buffer=False)
        table = file.read(SAMPLES.names if SAMPLES in schemas else None, use_threads=False)
    except FileNotFoundError as error:
        raise ShardError(f"The shard {path} is missing: run `snakemake {path}`.") from error
    except (pa.ArrowException, OSError) as error:
        raise ShardError(
            f"The shard {path} is broken ({_first_line(error)}): {again(path)}"
        ) from error
    footer = json.loads((table.schema.metadata or {}).get(FOOTER, b"{}"))
    version = footer.get("schema")
    if version != SCHEMA_VERSION:
        raise ShardError(
            f"The shard {path} has schema version {version} and this workflow reads {SCHEMA_VERSION}: {again(path)}"
        )
    if not any(map(table.schema.equals, schemas)):
        raise _without_columns(path)
    return table, footer


def _without_columns(path: Path) -> ShardError:
    return ShardError(f"The shard {path} does not have the columns of a shard: {again(path)}")


def again(path: Path) -> str:
    """The command that measures the cell of a shard once more."""
    return f"measure its cell again with `rm {path} && snakemake {path}`."


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
