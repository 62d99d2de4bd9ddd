"""Puts the files of all trainings of a grid into one, with what their footers say of machines, software and resources.

python -m train.merge --config '{"grid": "quick"}' --output results/training/all.parquet
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steptime import machine, project
from steptime.atomic import atomic_write
from steptime.cells import shard
from steptime.cells.shard import FOOTER, ShardError
from steptime.merge import MixedRowsError
from steptime.merge.shards import refuse_several
from steptime.plan import configuration, trainings

TRAININGS = Path("results/training")


def main() -> None:
    """Command line; every broken file is named before it gives up."""
    parser = argparse.ArgumentParser(description="Merge the trainings of a grid.")
    parser.add_argument(
        "--config", required=True, type=json.loads, help="Snakemake's configuration, as JSON"
    )
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    try:
        loaded = configuration.load(project.ROOT, options.config)
        merged = merge(
            list(trainings.expand(loaded, len(os.sched_getaffinity(0)))), trainings.missing(loaded)
        )
    except (configuration.ConfigurationError, ShardError, MixedRowsError) as error:
        sys.exit(str(error))
    with atomic_write(options.output) as file:
        pq.write_table(merged, file)


def merge(keys: list[str], missing: list[str], folder: Path = TRAININGS) -> pa.Table:
    """All epochs, and in the metadata `machines` by id, `software` by environment, and `resources` by the cell's key.

    `missing` are labels of data sets that cannot be had, and are told on. As of a shard, a row's platform is the folder
    that its file lies in.

    Raises ShardError, which names every shard that cannot be read or holds another training than its name says, and
    MixedRowsError as `refuse_several` does.
    """
    tables, errors = [], []
    known: dict[str, Any] = {"machines": {}, "software": {}, "resources": {}, "missing": missing}
    machines: dict[str, dict[str, list[Path]]] = {}
    for key in keys:
        path = folder / f"{key}.parquet"
        try:
            table, footer = shard.read(path)
        except ShardError as error:
            errors.append(str(error))
            continue
        row = table.slice(0, 1).to_pylist()[0]
        if (name := shard.file_name(row)) != path.name:
            errors.append(f"The shard {path} holds the cell of {name}: give it that name.")
            continue
        platform = path.parent.name
        known["machines"][row["machine_id"]] = footer["machine"]
        machines.setdefault(platform, {}).setdefault(machine.kind(footer["machine"]), []).append(
            path
        )
        software = known["software"].get(row["environment"])
        if software is None or software["framework_version"] is None:
            known["software"][row["environment"]] = footer["software"]
        known["resources"][key] = footer["resources"]
        table = table.set_column(0, "platform", pa.array([platform] * len(table)))
        tables.append(
            table.append_column("key", pa.array([key] * len(table))).replace_schema_metadata()
        )
    if errors:
        raise ShardError("\n".join(errors))
    refuse_several(machines)
    return pa.concat_tables(tables).replace_schema_metadata({FOOTER: json.dumps(known).encode()})


if __name__ == "__main__":
    main()
