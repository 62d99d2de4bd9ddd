"""Rewrites results of schema 1 as results of schema 2: other folders, names and columns, the same numbers.

snakemake --cleanup-metadata $(launch cells.migrate)

Nothing is measured again. A shard keeps its time, so that nothing that was made of it seems to be older. Printed are
the files that shards were measured with: what Snakemake remembers of the code and parameters that made them is of the
older version, and would have them made again.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from steptime.cells import shard
from steptime.cells.found import OLD_FOLDERS, outdated
from steptime.plain import plain, plain_values
from steptime.plan import digests
from steptime.plan.cell import key_of, shard_path
from steptime.records import Footer

# What each task was asked for, by its name in the job of a shard.
ASKED = {"step": "sampling", "training": "plan"}
# Where files lie that were made before cells were measured, or beside them.
MADE_BEFORE = ("environments", "proofs", "datasets", "peaks", "topology")


class MigrationError(Exception):
    """Shards that cannot be rewritten; the text says which, why, and what to do."""


def main() -> None:
    """Command line; works on the folder `results`. Prints nothing but a sentence where nothing was to be rewritten."""
    try:
        count = migrate(Path("results"))
    except MigrationError as error:
        sys.exit(str(error))
    print(f"{count} shards were rewritten as schema 2; nothing is measured again.", file=sys.stderr)
    for folder in MADE_BEFORE if count else ():
        for path in Path("results", folder).rglob("*.*"):
            print(path)


def migrate(results: Path) -> int:
    """Rewrites every shard of schema 1 below `results`, and returns how many there were.

    Raises MigrationError, which names each that cannot be rewritten; the others are rewritten all the same.
    """
    old, errors = outdated(results), []
    for path in old:
        try:
            _migrate(path, results)
        except (MigrationError, pa.ArrowException, OSError, KeyError, ValueError) as error:
            errors.append(
                f"{path} cannot be rewritten ({error}): remove it to measure its cell again."
            )
    # They are made again of the shards, in a moment.
    for merged in (*results.glob("merged/*.parquet"), results / "training" / "all.parquet"):
        merged.unlink(missing_ok=True)
    for folder in OLD_FOLDERS:
        for emptied in (*(results / folder).glob("*"), results / folder):
            if emptied.is_dir() and not any(emptied.iterdir()):
                emptied.rmdir()
    if errors:
        raise MigrationError("\n".join(errors))
    return len(old)


def _migrate(path: Path, results: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    footer = json.loads((table.schema.metadata or {}).get(shard.FOOTER, b"{}"))
    if footer.get("schema") != 1:
        raise MigrationError(f"it has schema version {footer.get('schema')}")
    rows, task = table.to_pylist(), OLD_FOLDERS[path.parent.parent.name]
    if (name := _old_name(rows[0])) != path.name:
        raise MigrationError(f"it holds the cell of {name}")
    facts = _facts(rows[0], footer, task)
    target = Path(shard_path(key_of(facts | {"platform": path.parent.name}), str(results)))
    if target.exists():
        raise MigrationError(f"its cell was measured again as {target}")
    times = path.stat()
    kept = {key: value for key, value in footer.items() if key not in ("row", "ended_at")}
    footer = plain_values(kept) | {"job": _job(footer.get("job", {}), facts)}
    shard.write(target, facts, rows, cast(Footer, footer))
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
    path.unlink()


def _old_name(row: dict[str, Any]) -> str:
    """The name of the file of a cell in schema 1."""
    network = row["variant"] or row["network"]
    trained_on = f"-on-{row['dataset']}" if "dataset" in row else ""
    return (
        f"{row['environment']}.{row['adapter_mode']}-{network}{trained_on}"
        f"-b{row['batch']}-t{row['threads']}-d{row['devices']}-r{row['repeat']}.parquet"
    )


def _facts(row: dict[str, Any], footer: dict[str, Any], task: str) -> dict[str, Any]:
    """The constant columns of schema 2. What stood in the footer alone becomes a column."""
    job, warmup = footer.get("job", {}), footer.get("worker", {}).get("warmup", {})
    asked = {ASKED[task]: job[ASKED[task]]} if ASKED[task] in job else None
    return {
        **row,
        "mode": row["adapter_mode"],
        "reason": plain(row["reason"]) if row["reason"] else row["reason"],
        "precision": "float32",
        "task": task,
        "dataset": row.get("dataset", ""),
        "exchange": "",
        "first_step_seconds": warmup.get("first_seconds"),
        "warmup_seconds": warmup.get("seconds"),
        "warmup_steady": warmup.get("steady"),
        "network_digest": job.get("network_digest"),
        "worker_digest": job.get("worker_digest"),
        "sampling_digest": digests.digest(asked) if asked else None,
        "ended_at": shard.time_of(footer.get("ended_at")),
    }


def _job(job: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """The job of a shard as it is asked for now."""
    asked = {name: job[name] for name in ASKED.values() if name in job}
    rest = {name: value for name, value in job.items() if name not in asked}
    axes = ("mode", "precision", "task", "dataset", "exchange")
    cell = {name: value for name, value in job.get("cell", {}).items() if name != "adapter_mode"}
    return rest | {"asked": asked, "cell": cell | {name: facts[name] for name in axes}}


if __name__ == "__main__":
    main()
