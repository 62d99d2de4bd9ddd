"""The beginning and the end of a run: what it tells the user and its programs."""

import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from snakemake.exceptions import WorkflowError

from steptime import run, warm
from steptime.flow.catalogue import Catalogue, merged
from steptime.flow.needed import Needed
from steptime.flow.planned import Planned
from steptime.plan import folders, interim, schemas, written
from steptime.plan.cell import FOLDER, shard_path
from steptime.run import estimate, progress
from steptime.say import say_sentence

# What a user may have said of this run, as variables of `make`.
SAID_TO_MAKE = {
    "GRID": "grid",
    "ONLY": "only",
    "NETWORKS": "only_networks",
    "PLATFORMS": "platforms",
}


class Running:
    """A run, from its plan to its answer."""

    def __init__(self, planned: Planned, catalogue: Catalogue, needed: Needed) -> None:
        self._planned, self._catalogue, self._needed = planned, catalogue, needed
        self._engine, self._plan = planned.engine, planned.plan

    def unknown_target(self, name: str, known: list[str]) -> str:
        """Returns the sentence for a target that no rule makes."""
        if "/" in name:
            return f"Nothing here makes the file {name}: leave it out, or name a table or figure (--list-target-rules)."
        if name in ("share", "fetch") and "store" not in self._planned.config:
            return f"`{name}` needs a store: write --config store=/mnt/shared/steptime -- {name}."
        known = [*self._catalogue.entries, *known]
        return schemas.unknown("target", name, known, "this workflow (--list-target-rules)")

    def tell(self) -> None:
        """Prints what a run would do, and about how long it would take."""
        guessed = self._guess(self._engine.files_to_make(and_made=True))
        # On a cluster, nobody knows how many run side by side.
        lasting = sum(guessed.values())
        if self._deadline(guessed):
            lasting = max(lasting, 60 * self._planned.repeats.minutes)
        lasts = "" if self._engine.counts_jobs else f": about {progress.duration(lasting)}"
        if guessed:
            say_sentence(f"{estimate.words(guessed, self._kins_of(guessed))}{lasts}.")
        self._tell_what_is_left_out()

    def begin(self) -> None:
        """Writes down what programs must know and no parameter may hold, and says what there is to do."""
        try:
            folders.check_writable(self._engine.files_to_make())
            self._write_plan()
        except schemas.ConfigurationError as error:
            # Not a WorkflowError: it would wrap the sentence in lines about a rule.
            sys.exit(str(error))
        except OSError as error:
            raise WorkflowError(
                f"The plan {self._planned.file} cannot be written ({error.strerror}): free some space and run again."
            ) from error
        guessed = self._guess(self._engine.files_to_make())
        run.begin(**self._facts(guessed))
        progress.begin()
        if guessed and not self._engine.counts_jobs:
            kins, deadline = self._kins_of(guessed), self._deadline(guessed)
            for sentence in progress.plan(guessed, kins, deadline):
                say_sentence(sentence)
            self._tell_what_is_left_out()
            progress.keep_talking()
        warm.begin()
        self._engine.keep_turns()

    def end(self, succeeded: bool) -> None:
        """Prints the answer of the run, or of what was measured before it was interrupted, its files, and its time."""
        if not succeeded:
            self._engine.cancel_what_is_left()
            self._engine.launch("page.so_far", "interrupted")
        # What could not be made again is that of an earlier run, maybe of another grid.
        old = {*self._engine.files_to_make()}
        files = [
            file
            for file in self._engine.outputs_of_jobs()
            if re.match(r"results/(tables|figures|report)/", file) and file not in old
        ]
        # The first table of times in the catalogue that was made.
        times = self._catalogue.times
        shown = next(
            (each for each in times if f"results/tables/{each.name}.parquet" in files), None
        )
        table = self._catalogue.facts_of(shown) if shown else ""
        cells = merged([shown.made_of])[0] if shown else "."
        status = "--succeeded" if succeeded else "--failed"
        self._engine.launch("page.summary", status, f"--table={table}", f"--cells={cells}", *files)

    def _write_plan(self) -> None:
        cells, expected = self._plan.cells, self._planned.expected
        plan = replace(self._plan, expected={key: expected.of(cell) for key, cell in cells.items()})
        is_of_another = self._planned.grid_name in run.grids_of_others()
        if is_of_another and not written.is_there(plan, self._planned.file):
            raise WorkflowError(
                f"Another run in this folder measures other results of the grid '{self._planned.grid_name}': "
                "wait until it ends, or work in another folder (--directory)."
            )
        written.write(plan, self._planned.file)

    def _facts(self, guessed: dict[str, float]) -> dict[str, Any]:
        """Returns the facts for the programs of this run."""
        planned, cells = self._planned, self._plan.cells.values()
        waiting = [planned.cell_of(each) for each in self._engine.jobs_to_run("measure_cell")]
        shown = self._shown_so_far()
        keys = set(shown.get("cells", []))
        stages = Counter(
            each for cell in waiting for each in progress.stages_of(cell.facts(), keys)
        )
        runners = {(cell.environment, cell.mode) for cell in cells}
        varied = ["mode"] if len(runners) > len({environment for environment, _ in runners}) else []
        varied += ["platform"] if len({cell.platform for cell in cells}) > 1 else []
        config = planned.config
        return {
            "began": time.monotonic(),
            "grid": config["grid"],
            "asked": {name: config[key] for name, key in SAID_TO_MAKE.items() if key in config},
            "deployment": "conda" if self._engine.uses_conda else "venv",
            "platforms": planned.configuration.platforms,
            "networks": planned.configuration.network_files,
            "entries": planned.configuration.networks,
            "data": planned.configuration.data,
            "cells": len(waiting),
            "waiting": [cell.key for cell in waiting if cell.key in keys],
            # Where cells are measured one by one, each stage of the grid ends before the next begins.
            "stages": None if self._engine.counts_jobs else stages,
            "shown": shown,
            "looks": self._plan.looks,
            "shown_by": planned.shown_by,
            "work": guessed,
            "kins": self._kins_of(guessed),
            "varied": varied,
            "deadline": self._deadline(guessed),
            "minutes": planned.repeats.minutes,
        }

    def _guess(self, files: Iterable[str]) -> dict[str, float]:
        """Returns the seconds of each job, by its file."""
        planned = self._planned
        return estimate.guess(
            files, planned.configuration, planned.cores, self._plan.cells, planned.shown_by
        )

    def _deadline(self, files: Collection[str]) -> float | None:
        """Returns when a run that has minutes, and measures something, is to end, in seconds since 1970; else None."""
        measured = f"results/{FOLDER}/", "results/further/"
        has_minutes = self._plan.looks and self._needed.analyses() == self._plan.looks
        if not has_minutes or not any(file.startswith(measured) for file in files):
            return None
        return progress.commanded_at() + 60 * self._planned.repeats.minutes

    def _kins_of(self, files: Collection[str]) -> dict[str, list[str]]:
        """Returns the `kin` of the runs that make these files, by file."""
        paths = {shard_path(key): cell for key, cell in self._plan.cells.items()}
        return {path: estimate.kin(cell.facts()) for path, cell in paths.items() if path in files}

    def _tell_what_is_left_out(self) -> None:
        for sentence in estimate.left_out(
            self._planned.asked, self._plan, self._planned.configuration
        ):
            say_sentence(sentence)

    def _shown_so_far(self) -> dict[str, Any]:
        """Returns how tables of times and ratios are made while cells are measured, and of which cells; or {}."""
        catalogue, cells = self._catalogue, self._plan.cells
        ratios = [each for each in catalogue.entries.values() if each.entry["kind"] == "ratios"]
        for artefact in catalogue.times:
            if not catalogue.lacks(artefact) and set(catalogue.inputs_of(artefact)) == {"cells"}:
                keys = self._plan.artefacts[artefact.made_of]
                others = cells.keys() - keys if self._plan.looks else ()
                further = sorted(interim.of_artefact(keys, others, cells))
                return {
                    "grid": self._planned.grid_name,
                    "jobs": [catalogue.facts_of(each) for each in (artefact, *ratios)],
                    "cells": keys + further,
                    "further": further,
                }
        return {}
