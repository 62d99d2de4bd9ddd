"""Makes one table or figure of a catalogue in the module of its kind: by `table(inputs)`, `figure(inputs)`, or both."""

import argparse
import json

from steptime.artefacts.inputs import Inputs
from steptime.say import doing


def main() -> None:
    parser = argparse.ArgumentParser(prog="artefacts.make", description="Make a table or figure.")
    parser.add_argument("--job", type=json.loads, required=True, help="artefact, facts, data, JSON")
    parser.add_argument("--files", type=json.loads, required=True, help="results by word, JSON")
    options = parser.parse_args()
    job = options.job
    doing(f"making {job['artefact']}")
    Inputs(job["artefact"], job["data"] | options.files, job["facts"]).write()


if __name__ == "__main__":
    main()
