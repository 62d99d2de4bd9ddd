"""Shows what the results say while others are being measured, on a page that opens with the answer."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from steptime import run
from steptime.artefacts.inputs import Inputs
from steptime.atomic import atomic_write
from steptime.merge.cells import merge
from steptime.page import answer, cells, embed, samples, screen
from steptime.reading import InputError
from steptime.render.words import plural, run_name
from steptime.run import progress
from steptime.say import say

# Until the run has made the whole tables and the report.
FOLDER = Path("results/so_far")
PAGE = FOLDER / "index.html"
# The answer that was printed last.
SAID = FOLDER / "said"
# In place of a stage: no other run follows.
INTERRUPTED = "interrupted"
# After which the page is loaded again, in seconds.
RELOADED = 30


def main() -> None:
    """Runs the command line, after a stage of the grid or when INTERRUPTED; after a trial, prints the answer so far."""
    facts, stage = run.facts(), " ".join(sys.argv[1:])
    if not facts["shown"] or not progress.measured(facts["shown"]["cells"]):
        return
    is_first = not PAGE.exists() or PAGE.stat().st_mtime < progress.began_at()
    try:
        times, *_ = show(facts["shown"], facts["looks"])
    except InputError as error:
        sys.exit(str(error))
    except Exception as error:
        sys.exit(f"The page so far is not made ({type(error).__name__}: {error}); the run goes on.")
    if stage == INTERRUPTED:
        say("\n".join(["\nSo far:", *screen.lines(times), "", f"This and more: {PAGE}"]))
    if stage.startswith("trial"):
        lines = screen.lines(times)
        # Fewer threads change nothing of what was said at all threads.
        if not SAID.exists() or SAID.read_text() != "\n".join(lines):
            SAID.write_text("\n".join(lines))
            say("\n".join([f"\nSo far, after {stage}:", *lines, ""]))
    if is_first and stage != INTERRUPTED:
        say(f"    This and more on a page that loads itself again: {PAGE}")


def show(shown: dict[str, Any], looks: list[int]) -> list[Inputs]:
    """Writes PAGE and its tables, as `shown` says; `looks` are the trials after which comparisons are checked."""
    keys = progress.measured(shown["cells"])
    FOLDER.mkdir(parents=True, exist_ok=True)
    merged = FOLDER / "merged.parquet"
    pq.write_table(merge(keys, looks=looks), merged)
    made = []
    for job in map(json.loads, shown["jobs"]):
        made.append(Inputs(job["artefact"], job["data"] | {"cells": [str(merged)]}, job["facts"]))
        made[-1].write_table(FOLDER)
    text = build(
        shown["grid"], made, len(keys), len({*shown["cells"]} - {*shown["further"]} | {*keys})
    )
    with atomic_write(PAGE) as file:
        file.write(text.encode())
    return made


def build(grid: str, made: Sequence[Inputs], measured: int, planned: int) -> str:
    """Returns the page of artefacts whose tables are written, times first; of `planned` cells, `measured` are there."""
    artefacts = [embed.artefact(_entry(inputs), FOLDER, ()) for inputs in made]
    own = {entry["kind"]: entry for entry in artefacts}
    times, *_ = made
    known = {kind: pd.read_parquet(entry["rows"]) for kind, entry in own.items()}
    compared = [(own["times"]["short"], known["times"])]
    rows = cells.gather([times.measured], compared, [], times.frameworks, times.networks)
    alone = int((times.measured.cells["repeats"] == 1).sum())
    return embed.render(
        "so_far.html.jinja",
        run=run_name(grid),
        answer={
            "matrices": answer.matrices(known["ratios"]),
            "changes": answer.changes(rows),
            "findings": answer.decided(None),
        },
        papers=[],
        samples=samples.gather([times.measured], FOLDER),
        own=own,
        artefacts=artefacts,
        measured=measured,
        planned=planned,
        alone=plural(alone, "result") if alone else "",
        written=datetime.now(UTC),
        seconds=RELOADED,
    )


def _entry(inputs: Inputs) -> dict[str, Any]:
    """Returns an artefact's entry as the report has it, with its table alone."""
    files = [f"{FOLDER}/tables/{inputs.name}.{ending}" for ending in ("html", "parquet")]
    entry = {"name": inputs.name, "kind": inputs.entry["kind"], "about": inputs.entry["says"]}
    return entry | {"paper": "", "missing": "", "files": files}


if __name__ == "__main__":
    main()
