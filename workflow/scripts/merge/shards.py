"""Puts the shards of one artefact into one Parquet file, with what their footers say of machines and software.

python -m merge.shards --artefact shi2016_table4 --config '{"grid": "quick"}' --output results/merged/...
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import configuration
import grid
from measure import machine, placement, shard
from merge import MixedRowsError

SHARDS = Path("results/shards")
MOST_NAMED = 3


def main() -> None:
    """Command line; every broken shard is named before it gives up."""
    parser = argparse.ArgumentParser(description="Merge the shards of one artefact.")
    parser.add_argument("--artefact", required=True)
    parser.add_argument("--config", required=True, type=json.loads, help="Snakemake's configuration, as JSON")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    try:
        plan = grid.expand(configuration.load(Path(), options.config), len(os.sched_getaffinity(0)))
        merged = merge(plan.artefacts[options.artefact])
    except (configuration.ConfigurationError, shard.ShardError, MixedRowsError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    pq.write_table(merged, options.output)


def merge(keys: list[str]) -> pa.Table:
    """All rows of the shards, with the footers' machines by id and software by environment in the metadata.

    Raises ShardError, which names every shard that cannot be read, and MixedRowsError.
    """
    footers: dict[str, dict[str, Any]] = {"machines": {}, "software": {}}
    tables = []
    for table, footer in read(keys):
        tables.append(table.replace_schema_metadata())
        footers["machines"][table["machine_id"][0].as_py()] = footer["machine"]
        environment = table["environment"][0].as_py()
        known = footers["software"].get(environment)
        # A cell that failed early knows nothing of the framework; the first that ran tells.
        if known is None or known["framework_version"] is None:
            footers["software"][environment] = footer["software"]
    return (
        pa.concat_tables(tables).combine_chunks().replace_schema_metadata({shard.FOOTER: json.dumps(footers).encode()})
    )


def read(keys: list[str]) -> list[tuple[pa.Table, dict[str, Any]]]:
    """Rows and footer of the shard of each cell; the platform of a row is the folder that its shard lies in.

    So shards of another machine get a platform of their own by being moved. Raises ShardError, which names every shard
    that cannot be read or holds another cell than its name says, and MixedRowsError for two kinds of machine in one
    folder, unless the platform's entry says `equal_machines`.
    """
    found, errors = [], []
    machines: dict[str, dict[str, list[Path]]] = {}
    paths = [SHARDS / f"{key}.parquet" for key in keys]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        contents = list(pool.map(_read_or_error, paths))
    for path, content in zip(paths, contents, strict=True):
        if isinstance(content, shard.ShardError):
            errors.append(str(content))
            continue
        table, footer = content
        name = shard.file_name(table.select(shard.NAMING).slice(0, 1).to_pylist()[0])
        if name != path.name:
            errors.append(f"The shard {path} holds the cell of {name}: give it that name.")
        platform = path.parent.name
        table = table.set_column(0, shard.COLUMNS.field("platform"), pa.array([platform] * len(table)))
        machines.setdefault(platform, {}).setdefault(machine.kind(footer["machine"]), []).append(path)
        found.append((table, footer))
    if errors:
        raise shard.ShardError("\n".join(errors))
    for platform, paths_by_kind in machines.items():
        if not placement.entry(platform).get("equal_machines"):
            _refuse_several(platform, paths_by_kind)
    return found


def _read_or_error(path: Path) -> tuple[pa.Table, dict[str, Any]] | shard.ShardError:
    try:
        return shard.read(path)
    except shard.ShardError as error:
        return error


def _refuse_several(platform: str, paths_by_kind: dict[str, list[Path]]) -> None:
    """Raises MixedRowsError when there is more than one kind of machine."""
    if len(paths_by_kind) == 1:
        return
    (most, _), *others = sorted(paths_by_kind.items(), key=lambda entry: -len(entry[1]))
    strangers = [path for _, paths in others for path in paths]
    named = " ".join(map(str, strangers[:MOST_NAMED])) + (" ..." if len(strangers) > MOST_NAMED else "")
    raise MixedRowsError(
        f"{SHARDS}/{platform} holds cells of {len(paths_by_kind)} machines, {most} and "
        f"{', '.join(kind for kind, _ in others)}, which cannot stand in one column: move "
        f"the {len(strangers)} of the others ({named}) to {SHARDS}/NAME and add NAME to config/platforms.yaml and to "
        "'platforms' of the grid, remove them to measure their cells on this machine, or write `equal_machines: true` "
        f"into the entry of {platform} if the difference does not matter."
    )


if __name__ == "__main__":
    main()
