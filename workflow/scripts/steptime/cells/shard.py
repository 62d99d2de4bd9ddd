"""Writes and reads the Parquet file of one cell; `cells.schema` has its columns."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steptime import machine
from steptime.atomic import atomic_write
from steptime.cells.schema import SCHEMA_VERSION, TIMES, constant_of, rows_of, schema_of
from steptime.plain import plain
from steptime.plan import digests
from steptime.plan.cell import FOLDER
from steptime.reading import InputError
from steptime.records import Footer
from steptime.tasks import TASKS

FOOTER = b"steptime"


class Unfit(Exception):
    """A value does not fit its column; the text says which."""


class ShardError(InputError):
    """A shard that cannot be used: which, why, and the command that measures its cell again."""


def write(path: Path, facts: dict[str, Any], rows: list[dict[str, Any]], footer: Footer) -> None:
    """Writes the shard of one cell, whole or not at all. Raises OSError (a full disk, say) or Unfit.

    `facts` are the task's constant columns, null where they are missing; `rows` are the others. Without rows, the shard
    has one row.
    """
    schema, constant = schema_of(facts["task"]), constant_of(facts["task"])
    columns = [name for name in schema.names if name not in constant]
    rows = rows or [{}]
    try:
        table = pa.table(
            {name: [facts.get(name)] * len(rows) for name in constant}
            | {name: [row.get(name) for row in rows] for name in columns},
            schema=schema,
        )
    except (pa.ArrowException, OverflowError) as error:
        raise Unfit(short(error)) from error
    footer = footer | {
        "schema": SCHEMA_VERSION,
        "row": table.select(constant).slice(0, 1).to_pylist()[0],
        "rows_digest": rows_digest(table.select(columns)),
    }
    content = json.dumps(footer, sort_keys=True, default=datetime.isoformat)
    # Arrow's own copy of the schema repeats the footer, and statistics of 20 rows tell nobody anything: without them,
    # a shard is half as large and read in two thirds of the time.
    lean = {"store_schema": False, "write_statistics": False, "use_dictionary": False}
    with atomic_write(path) as file, pq.ParquetWriter(file, schema, **lean) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({FOOTER: content})


def read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Returns all columns and the footer of a shard; raises what `read_parts` raises, which is faster."""
    row, rows, footer = read_parts(path)
    columns = {name: [row[name]] * len(rows) for name in constant_of(row["task"])}
    columns |= dict(zip(rows.column_names, rows.columns, strict=True))
    return pa.table(columns, schema=schema_of(row["task"])), footer


def read_parts(path: Path) -> tuple[dict[str, Any], pa.Table, dict[str, Any]]:
    """Returns a shard's constant columns as a dict, its other columns, and its footer: four times as fast as `read`.

    Raises ShardError for a shard that is missing or broken, has another schema version, or other rows than were
    written.
    """
    file, footer = _open(path)
    row = footer["row"]
    try:
        row |= {name: row[name] and datetime.fromisoformat(row[name]) for name in TIMES}
    except (ValueError, TypeError) as error:
        raise _without_columns(path) from error
    schema = rows_of(row["task"])
    try:
        rows = file.read(schema.names, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error
    if not rows.schema.equals(schema):
        raise _without_columns(path)
    if footer.get("rows_digest") != rows_digest(rows):
        raise _broken(path, ValueError("its rows are not those that were written"))
    return row, rows, footer


def rows_digest(rows: pa.Table) -> str:
    """Returns the digest of the columns that differ from row to row, by which a changed number is found."""
    return digests.digest(rows.to_pylist())


def kind_of_machine(path: Path, row: dict[str, Any], footer: dict[str, Any]) -> str:
    """Returns the kind of the machine that measured a shard. Raises ShardError for one that does not say."""
    try:
        return plain(machine.kind(footer["machine"], row["device"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ShardError(
            f"The shard {path} does not say on which machine it was measured: {again(path)}"
        ) from error


def _open(path: Path) -> tuple[pq.ParquetFile, dict[str, Any]]:
    try:
        # pq.read_table looks for a dataset first, and a path is read by threads: both take longer than all the rest.
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()), pre_buffer=False)
    except FileNotFoundError as error:
        raise ShardError(f"The shard {path} is missing: `.venv/bin/snakemake {path}`.") from error
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error
    try:
        footer = json.loads((file.metadata.metadata or {}).get(FOOTER, b"{}"))
    except (ValueError, RecursionError) as error:
        raise _broken(path, error) from error
    version = footer.get("schema") if isinstance(footer, dict) else None
    if version is None:
        raise ShardError(f"{path} is no shard: shards are files below results/{FOLDER}/.")
    if version != SCHEMA_VERSION:
        raise ShardError(
            f"The shard {path} has schema version {version!r} and this workflow reads {SCHEMA_VERSION}: {again(path)}"
        )
    row = footer.get("row")
    task = row.get("task") if isinstance(row, dict) else None
    columns = set(constant_of(task)) if task in list(TASKS) else set()
    if columns and row.keys() > columns:
        newer = ", ".join(sorted(map(plain, row.keys() - columns)))
        raise ShardError(
            f"The shard {path} comes from a newer version of steptime, which has {newer} besides: update this checkout."
        )
    if not columns or row.keys() != columns:
        raise _without_columns(path)
    return file, footer


def _broken(path: Path, error: Exception) -> ShardError:
    return ShardError(f"The shard {path} is broken ({short(error)}): {again(path)}")


def _without_columns(path: Path) -> ShardError:
    """Returns the error for a shard that lacks what every shard has."""
    return ShardError(f"The shard {path} does not have the columns of a shard: {again(path)}")


def again(path: Path) -> str:
    """Returns the command that measures a shard's cell once more."""
    return f"measure its cell again with `rm {path} && .venv/bin/snakemake {path}`."


def short(error: Exception) -> str:
    """Returns an error's message in one line."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
