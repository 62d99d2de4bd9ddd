"""Puts the shards of one artefact into one Parquet file, with what their footers say of machines and software.

python -m merge.shards --artefact shi2016_table4 --config '{"grid": "quick"}' --output results/merged/...
"""

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steptime import machine, project
from steptime.cells import shard
from steptime.machine import placement
from steptime.merge import MixedRowsError
from steptime.plan import configuration, grid

SHARDS = Path("results/shards")
MOST_NAMED = 3


def main() -> None:
    """Command line; every broken shard is named before it gives up."""
    parser = argparse.ArgumentParser(description="Merge the shards of one artefact.")
    parser.add_argument("--artefact", required=True)
    parser.add_argument(
        "--config", required=True, type=json.loads, help="Snakemake's configuration, as JSON"
    )
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    # What is read stays until the end, and to look for garbage among it takes a fifth of the time.
    gc.disable()
    try:
        plan = grid.expand(
            configuration.load(project.ROOT, options.config), len(os.sched_getaffinity(0))
        )
        merged = merge(plan.artefacts[options.artefact])
    except (configuration.ConfigurationError, shard.ShardError, MixedRowsError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    pq.write_table(merged, options.output)


def merge(keys: list[str]) -> pa.Table:
    """All rows of the shards, with what the footers say in the metadata: machines by id, software by environment, and
    the arithmetic of its libraries by environment and mode.

    `settings` of an environment's software is what its workers declare, for each platform and mode. Raises ShardError,
    which names every shard that cannot be read, and MixedRowsError.
    """
    footers: dict[str, dict[str, Any]] = {"machines": {}, "software": {}, "arithmetic": {}}
    settings: dict[str, dict[str, dict[str, str]]] = {}
    rows, samples = [], []
    values_of = itemgetter(*shard.CONSTANT)
    for row, table, footer in read(keys):
        rows.append(values_of(row))
        samples.append(table)
        footers["machines"][row["machine_id"]] = footer["machine"]
        known = footers["software"].get(row["environment"])
        # A cell that failed early knows nothing of the framework; the first that ran tells.
        if known is None or known["framework_version"] is None:
            footers["software"][row["environment"]] = footer["software"]
        # Of each mode: it may be another framework's, as a backend of Keras is.
        if footer["software"].get("libraries"):
            runner = f"{row['environment']}.{row['adapter_mode']}"
            footers["arithmetic"].setdefault(runner, footer["software"]["arithmetic"])
        declared = footer["worker"].get("ready", {}).get("settings", {})
        places = settings.setdefault(row["environment"], {})
        places.setdefault(f"{row['platform']}, {row['adapter_mode']}", {}).update(declared)
    for environment, software in footers["software"].items():
        software["settings"] = settings[environment]
    of_row = pa.array(np.repeat(np.arange(len(rows)), [len(table) for table in samples]))
    columns = dict(zip(shard.CONSTANT, zip(*rows, strict=True), strict=True))
    constant = {
        name: pa.array(values, shard.COLUMNS.field(name).type) for name, values in columns.items()
    }
    merged = dict(
        zip(shard.PER_SAMPLE, pa.concat_tables(samples).combine_chunks().columns, strict=True)
    )
    merged |= {name: values.take(of_row) for name, values in constant.items()}
    return pa.table(
        merged, schema=shard.COLUMNS.with_metadata({shard.FOOTER: json.dumps(footers).encode()})
    )


def read(keys: list[str]) -> Iterator[tuple[dict[str, Any], pa.Table, dict[str, Any]]]:
    """Constant columns, samples and footer of each cell; a row's platform is the folder that its shard lies in.

    So shards of another machine get a platform of their own by being moved. After the last one, raises ShardError,
    which names every shard that cannot be read or holds another cell than its name says, and MixedRowsError for two
    kinds of machine in one folder, unless the platform's entry says `equal_machines`.
    """
    # One after another: to hold ten thousand footers takes more time than to read them.
    errors = []
    machines: dict[str, dict[str, list[Path]]] = {}
    for path in (SHARDS / f"{key}.parquet" for key in keys):
        try:
            row, samples, footer = shard.read_parts(path)
        except shard.ShardError as error:
            errors.append(str(error))
            continue
        name = shard.file_name(row)
        if name != path.name:
            errors.append(f"The shard {path} holds the cell of {name}: give it that name.")
        row["platform"] = path.parent.name
        machines.setdefault(row["platform"], {}).setdefault(
            machine.kind(footer["machine"]), []
        ).append(path)
        yield row, samples.replace_schema_metadata(), footer
    if errors:
        raise shard.ShardError("\n".join(errors))
    refuse_several(machines)


def refuse_several(machines: dict[str, dict[str, list[Path]]]) -> None:
    """Raises MixedRowsError for a platform whose shards, by kind of machine, are of several that are not equal."""
    for platform, paths_by_kind in machines.items():
        if len(paths_by_kind) == 1 or placement.entry(platform).get("equal_machines"):
            continue
        (most, _), *others = sorted(paths_by_kind.items(), key=lambda entry: -len(entry[1]))
        strangers = [path for _, paths in others for path in paths]
        named = " ".join(map(str, strangers[:MOST_NAMED])) + (
            " ..." if len(strangers) > MOST_NAMED else ""
        )
        folders = " and ".join(
            dict.fromkeys(str(path.parent.with_name("NAME")) for path in strangers)
        )
        raise MixedRowsError(
            f"The platform '{platform}' has cells of {len(paths_by_kind)} machines, {most} and "
            f"{', '.join(kind for kind, _ in others)}, which cannot stand in one column: move the {len(strangers)} of "
            f"the others ({named}) to {folders} and add NAME to config/platforms.yaml and to "
            "'platforms' of the grid, remove them to measure their cells on this machine, or write "
            f"`equal_machines: true` into the entry of {platform} if the difference does not matter."
        )


if __name__ == "__main__":
    main()
    # As in measure.cell: to take down what is left of ten thousand shards would take a sixteenth of the time.
    sys.stderr.flush()
    os._exit(0)
