"""Makes one table or figure of a catalogue, by the module of its kind.

    workflow/scripts/launch artefacts.make --files '{"cells": ["results/merged/shi2016_table4.parquet"]}' \
        --job '{"facts": {}, "artefact": "shi2016_table4",
                "data": {"catalogue": ["resources/papers/shi2016/paper.yaml"], ...}}'

A kind's module has `table(inputs)`, which gives tidy rows and their layout, or `figure(inputs)`, which gives rows and a
drawing, or both. A new kind is a new module.
"""

import argparse
import json
import sys

from steptime.artefacts.inputs import Inputs
from steptime.cells.mixed import MixedRowsError
from steptime.cells.shard import ShardError
from steptime.plan.schemas import ConfigurationError
from steptime.reading import InputError
from steptime.say import doing


def main() -> None:
    """Command line; a mistake in the inputs ends in one sentence and exit status 1."""
    parser = argparse.ArgumentParser(prog="artefacts.make", description="Make a table or figure.")
    parser.add_argument("--job", type=json.loads, required=True, help="artefact, facts, data, JSON")
    parser.add_argument("--files", type=json.loads, required=True, help="results by word, JSON")
    options = parser.parse_args()
    try:
        job = options.job
        doing(f"making {job['artefact']}")
        Inputs(job["artefact"], job["data"] | options.files, job["facts"]).write()
    except (ConfigurationError, InputError, MixedRowsError, ShardError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
