"""Puts the shards of one artefact into one Parquet file, with what their footers say of machines and software.

python -m merge.shards --artefact shi2016_table4 --config '{"grid": "quick"}' --output results/merged/...
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import configuration
import grid
from measure import shard


def main() -> None:
    """Command line; every broken shard is named before it gives up."""
    parser = argparse.ArgumentParser(description="Merge the shards of one artefact.")
    parser.add_argument("--artefact", required=True)
    parser.add_argument("--config", required=True, type=json.loads, help="Snakemake's configuration, as JSON")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    try:
        plan = grid.expand(configuration.load(Path(), options.config), len(os.sched_getaffinity(0)))
        keys = plan.artefacts[options.artefact]
        merged = merge([Path("results/shards") / f"{key}.parquet" for key in keys])
    except (configuration.ConfigurationError, shard.ShardError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    pq.write_table(merged, options.output)


def merge(paths: list[Path]) -> pa.Table:
    """All rows of the shards, with the footers' machines by id and software by environment in the metadata.

    Raises ShardError, which names every shard that cannot be read.
    """
    tables, errors = [], []
    footers: dict[str, dict[str, Any]] = {"machines": {}, "software": {}}
    for path in paths:
        try:
            table, footer = shard.read(path)
        except shard.ShardError as error:
            errors.append(str(error))
            continue
        tables.append(table.replace_schema_metadata())
        footers["machines"][table["machine_id"][0].as_py()] = footer["machine"]
        environment = table["environment"][0].as_py()
        known = footers["software"].get(environment)
        # A cell that failed early knows nothing of the framework; the first that ran tells.
        if known is None or known["framework_version"] is None:
            footers["software"][environment] = footer["software"]
    if errors:
        raise shard.ShardError("\n".join(errors))
    return pa.concat_tables(tables).replace_schema_metadata({shard.FOOTER: json.dumps(footers).encode()})


if __name__ == "__main__":
    main()
