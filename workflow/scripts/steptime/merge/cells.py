"""Puts the shards of one artefact into one Parquet file, with what their footers say of machines and software."""

import argparse
import gc
import json
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steptime import run
from steptime.atomic import atomic_write
from steptime.cells import footers, shard
from steptime.cells.mixed import refuse_several, under_another_name
from steptime.cells.schema import CONSTANT, constant_of, schema_of
from steptime.environments import libraries
from steptime.merge import judged
from steptime.merge.measured import runs_avx2, was_told
from steptime.plain import plain_values
from steptime.plan import interim, written
from steptime.plan.cell import FOLDER, key_of, shard_path


def main() -> None:
    """Runs the command line; names every broken shard before it gives up."""
    parser = argparse.ArgumentParser(description="Merge the shards of one artefact.")
    parser.add_argument("--artefact", required=True)
    parser.add_argument("--plan", required=True, type=Path, help="that the run has written")
    parser.add_argument("--added", nargs="*", default=[], type=Path, help="by interim analyses")
    parser.add_argument("--statistics", type=Path, nargs="*", default=[], help="of the whole run")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    # What is read stays until the end, and to look for garbage among it takes a fifth of the time.
    gc.disable()
    plan = written.read(options.plan)
    keys = plan.artefacts[options.artefact]
    keys = keys + interim.of_artefact(keys, interim.added(options.added), plan.cells)
    statistics = next((json.loads(file.read_text()) for file in options.statistics), None)
    merged = merge(keys, plan.missing, plan.expected, plan.looks, statistics)
    with atomic_write(options.output) as file:
        pq.write_table(merged, file)


def merge(
    keys: list[str],
    missing: list[str] | None = None,
    expected: dict[str, dict[str, Any]] | None = None,
    looks: list[int] | None = None,
    statistics: dict[str, Any] | None = None,
) -> pa.Table:
    """Returns all rows of the shards of cells of one task.

    The metadata hold what the footers say: machines by id, software by environment with its workers' `settings` by
    platform and mode, arithmetic by environment and mode, and `resources` by key. `told` are the keys of the cells
    whose library was told to take newer code. `missing` data sets and `looks`, the trials of interim analyses, are
    copied into them. `expected` says by key what a row must have been measured with (`cells.expected`), `statistics`
    what all results of the run say together. Raises MixedRowsError, and ShardError, which names every shard that cannot
    be used.
    """
    known: dict[str, Any] = {"machines": {}, "software": {}, "arithmetic": {}, "resources": {}}
    known["told"] = []
    rows, tables = [], []
    for key, row, table, footer in read(keys, expected or {}):
        rows.append(judged.by_proof(row))
        tables.append(table)
        _gather(known, key, row, footer)
    of_row = pa.array(np.repeat(np.arange(len(rows)), [len(table) for table in tables]))
    shown_by = run.facts().get("shown_by", {})
    # The other cells that show the gradients of these.
    own, others = set(keys), dict.fromkeys(shown_by.get(key, key) for key in keys)
    paths = [Path(shard_path(key)) for key in others if key not in own]
    siblings = [shard.read_parts(path)[0] for path in paths if path.exists()]
    rows = judged.by_place(judged.by_losses(rows), siblings)
    rows = judged.by_gradients(rows, siblings, shown_by)
    constant = constant_of(rows[0]["task"])
    values = map(itemgetter(*constant), rows)
    columns = dict(zip(constant, zip(*values, strict=True), strict=True))
    merged = {
        name: pa.array(column, CONSTANT.field(name).type).take(of_row)
        for name, column in columns.items()
    }
    samples = pa.concat_tables(tables).combine_chunks()
    merged |= dict(zip(samples.column_names, samples.columns, strict=True))
    # A machine's words reach every table; those of the frameworks were made plain when they were said.
    known["machines"], known["software"] = map(plain_values, (known["machines"], known["software"]))
    known |= {"missing": missing or [], "looks": looks or []}
    known |= {"statistics": statistics} if statistics else {}
    described = json.dumps(known).encode()
    return pa.table(
        merged, schema=schema_of(rows[0]["task"]).with_metadata({shard.FOOTER: described})
    )


def _gather(known: dict[str, Any], key: str, row: dict[str, Any], footer: dict[str, Any]) -> None:
    # On a machine with GPUs, only cells on GPUs know how their energy is measured.
    known["machines"].setdefault(row["machine_id"], {}).update(footer["machine"])
    declared = footer["worker"].get("ready", {}).get("settings", {})
    if is_told := was_told(declared):
        known["told"].append(key_of(row | {"repeat": 1}))
    if is_told or runs_avx2(footer["software"]):
        told = libraries.summarise(footer["software"].get("libraries", {}), told=True)
        footer["software"] |= {"arithmetic": told, "registers": libraries.registers(told)}
    software = known["software"].get(row["environment"])
    # A cell that failed early knows nothing of the framework; the first that ran tells.
    if software is None or software["framework_version"] is None:
        settings = software["settings"] if software else {}
        software = known["software"][row["environment"]] = footer["software"] | {
            "settings": settings
        }
    # By mode, since a mode may compute with another framework, as backends of Keras do.
    if footer["software"].get("libraries"):
        runner = f"{row['environment']}.{row['mode']}"
        known["arithmetic"].setdefault(runner, dict(footer["software"]["arithmetic"]))
    software["settings"].setdefault(f"{row['platform']}, {row['mode']}", {}).update(declared)
    if "resources" in footer:
        known["resources"][key] = footer["resources"]


def read(
    keys: list[str], expected: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any], pa.Table, dict[str, Any]]]:
    """Yields key, constant columns, rows and footer of each cell; a row's platform is the folder of its shard.

    Raises ShardError after the last one, which names every shard that cannot be used, and MixedRowsError.
    """
    # One after another: to hold ten thousand footers takes more time than to read them.
    errors, others = [], []
    machines: dict[str, dict[str, list[Path]]] = {}
    for key in keys:
        path = Path(shard_path(key))
        try:
            row, rows, footer = shard.read_parts(path)
            row["platform"] = path.parent.parent.name
            misnamed = under_another_name(path, row)
            kind = "" if misnamed else shard.kind_of_machine(path, row, footer)
        except shard.ShardError as error:
            misnamed = str(error)
        if misnamed:
            errors.append(misnamed)
            continue
        machines.setdefault(row["platform"], {}).setdefault(kind, []).append(path)
        if words := footers.differing(footers.facts(footer), expected.get(key, {})):
            others.append(footers.Outdated(key, words, row))
            continue
        yield key, row, rows.replace_schema_metadata(), footer
    if others:
        advice = "measure them again with this version: `rm {files}`, and run the same command."
        errors.append(footers.name_outdated(others, f"results/{FOLDER}", advice))
    if errors:
        raise shard.ShardError("\n".join(errors))
    refuse_several(machines)


if __name__ == "__main__":
    main()
