"""Compares a candidate (another version, a wheel, a file of pins) with an environment until the verdicts are clear.

    workflow/scripts/launch compare.watch torch 2.12.0 --networks fcn5 alexnet --minutes 30
    workflow/scripts/launch compare.watch torch dist/torch-2.14.0-cp311-cp311-linux_x86_64.whl

The workflow itself makes and proves the candidate's environment beside the base's, in a folder of its own
(watch/<base>_<candidate>/). Then both are measured in turn until each verdict is reached or the time is spent. The exit
status is 0 where nothing is slower, 1 where something is or the candidate fails, and 2 where that is not known.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from steptime.compare import caveats, interim, results, words
from steptime.compare.candidate import Folder, environment_of
from steptime.compare.results import number, share
from steptime.compare.sides import CompareError, Side, pairs_of, read
from steptime.plain import file_name, plural
from steptime.plan.cell import Cell, shard_path
from steptime.statistics import intervals
from steptime.statistics.intervals import Ratio
from steptime.statistics.verdicts import NOT_DECIDED

SAMPLING = {"budget_seconds": 1.5, "precision": 0.02, "least_samples": caveats.LEAST_STEPS}
MARGIN = 0.03
PLATFORM = "local-cpu"
# How many differing pins are named.
NAMED = 8
# Network, mini-batch, threads.
Place = tuple[str, int, int]


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch a candidate until the verdict is clear.")
    parser.add_argument("base", help="an environment, or a framework: its first one")
    parser.add_argument("candidate", help="a version, a wheel, a file of pins or an environment")
    add_options(parser, ["fcn5", "alexnet", "lstm32"])
    with results.complaints():
        options = parser.parse_args()
        base = environment_of(options.base, options.networks)
        name = file_name(options.base, options.candidate)
        with Folder(options.folder / name).kept_where_used() as folder:
            watch = Watch(folder, base, folder.add(base, options.candidate), options)
        watch.measure()
        sys.exit(watch.tell())


def add_options(parser: argparse.ArgumentParser, networks: list[str]) -> None:
    """Adds the options that a watch and a search among releases have in common."""
    parser.add_argument("--networks", nargs="+", default=networks)
    parser.add_argument("--threads", nargs="+", type=partial(number, of=int), default=[1])
    parser.add_argument("--minutes", type=number, default=45, help="after which nothing is begun")
    parser.add_argument("--margin", type=share, default=MARGIN, help="what counts as equal, 0.03")
    parser.add_argument("--folder", type=Path, default=Path("watch"), help="where it is worked")


class Watch:
    """A candidate beside its base, two environments of a folder, which are measured in turn until all is decided."""

    def __init__(
        self,
        folder: Folder,
        base: str,
        candidate: str,
        options: argparse.Namespace,
        against: interim.Against = interim.ONE,
    ) -> None:
        self.folder, self.base, self.candidate, self.options = folder, base, candidate, options
        self.against = against
        self.end = time.monotonic() + 60 * options.minutes
        self.verdicts: dict[Place, str] = {}
        # The ratio and its interval when a place was looked at last: the verdict is by them.
        self.looked_at: dict[Place, tuple[float, float, float]] = {}
        self.pairs = 0

    def measure(self) -> None:
        """Measures and tests, until each verdict is reached or the time is spent. Raises CompareError."""
        # What has no time in the first pair, as where an environment cannot be made, is not asked again.
        self._run(1)
        self._decide_lost()
        for pairs in interim.CHANCES:
            if not self._open(pairs):
                return
            began = time.monotonic()
            self._run(pairs)
            self._decide(pairs)
            print(f"After {pairs} pairs: {self._so_far()}", flush=True)
            now, following = time.monotonic(), [each for each in interim.CHANCES if each > pairs]
            # As long for each pair as these have taken, of what is still open.
            if following and now + (now - began) * (following[0] - pairs) / pairs > self.end:
                return

    def _run(self, pairs: int) -> None:
        """Measures so many pairs of each cell that is not decided. Raises CompareError."""
        if self.folder.snakemake(*(shard_path(cell.key) for cell in self._open(pairs))):
            raise CompareError(f"The workflow in {self.folder.root} did not end well: see above.")
        self.pairs = pairs

    def _open(self, pairs: int) -> list[Cell]:
        """Returns the cells of the first so many trials that are not decided."""
        grid = {
            "environments": [self.base, self.candidate],
            "platforms": [PLATFORM],
            "networks": self.options.networks,
            "threads": dict.fromkeys(("table", "figure"), self.options.threads),
            "repeats": pairs,
            "sampling": SAMPLING,
            "limits": {"seconds": 900},
        }
        return [cell for cell in self.folder.planned(grid) if _place(cell) not in self.verdicts]

    def _sides(self) -> tuple[Side, Side]:
        measured = read(self.folder.root / "results", str(self.folder.root))
        one, other = ({"environment": name} for name in (self.base, self.candidate))
        return Side(self.base, measured, one), Side(self.candidate, measured, other)

    def _decide_lost(self) -> None:
        """Decides that a cell is lost where a side has no time."""
        base, other = self._sides()
        cells = base.results.cells
        for at, label in pairs_of(base, other):
            statuses = cells.loc[[at, label], "status"]
            if set(statuses) != {"ok"}:
                self.verdicts.setdefault(_place(cells.loc[at]), words.lost(*statuses))

    def _decide(self, pairs: int) -> None:
        """Decides the cells whose verdict is clear after so many pairs."""
        self._decide_lost()
        base, other = self._sides()
        cell_pairs = pairs_of(base, other)
        ratios = [self._ratios(base.results.cells, cell_pairs, pairs, of) for of in self.against.of]
        places = [place for place in ratios[0] if place not in self.verdicts]
        still_open = {place: [each[place] for each in ratios] for place in places}
        margin, cells = self.options.margin, len(cell_pairs)
        allowed = interim.allowed_chance(pairs, cells, self.against)
        for place, (of_medians, *_) in still_open.items():
            self.looked_at[place] = of_medians.interval[0], *of_medians.within(allowed)
        self.verdicts |= interim.decided(still_open, margin, pairs, cells, self.against)

    def _ratios(
        self, cells: pd.DataFrame, cell_pairs: list[tuple[Any, Any]], pairs: int, of: str
    ) -> dict[Place, Ratio]:
        """Returns the ratio of each cell with a time on both sides, from the values `of` so many pairs of processes."""
        logs, kinds = {}, {}
        for at, label in cell_pairs:
            place = _place(cells.loc[at])
            if set(cells.loc[[at, label], "status"]) == {"ok"}:
                # What an earlier watch has measured beyond these pairs is not used yet.
                ours, theirs = (
                    {repeat: each for repeat, each in values.items() if repeat <= pairs}
                    for values in cells.loc[[label, at], of]
                )
                logs[place], kinds[place] = intervals.paired(ours, theirs), place[-1]
        return interim.ratios_of(logs, kinds)

    def _so_far(self) -> str:
        said = [
            f"{network}, {plural(threads, 'thread')}: {verdict or 'no time'}"
            for (network, _, threads), verdict in self.verdicts.items()
        ]
        return "; ".join(said) or "nothing is decided"

    def table(self) -> pd.DataFrame:
        """Returns the rows of `results.table`, with the verdicts so far and the intervals that they are by."""
        base, other = self._sides()
        cell_pairs = pairs_of(base, other)
        data = results.table(base, other, cell_pairs, self.options.margin)
        places = [_place(base.results.cells.loc[at]) for at, _ in cell_pairs]
        data["verdict"] = [self.verdicts.get(place, NOT_DECIDED) for place in places]
        for row, place in zip(data.index, places, strict=True):
            if place in self.looked_at:
                data.loc[row, ["ratio", "ratio_low", "ratio_high"]] = self.looked_at[place]
        return data

    def tell(self) -> int:
        """Writes the comparison, prints its answer and returns the exit status."""
        base, other = self._sides()
        data, cell_pairs = self.table(), pairs_of(base, other)
        chance = interim.allowed_chance(max(self.pairs, min(interim.CHANCES)), 1)
        answer = words.answer(base.name, other.name, data, self.options.margin, chance=chance)
        notes = caveats.sentences(base, other, cell_pairs)
        if differing := self.folder.differing(self.base, self.candidate):
            more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
            notes.append(f"Pins differ: {', '.join(differing[:NAMED])}{more}.")
        page = words.page(answer, base.name, other.name, notes, self.options.margin)
        page.notes[-1] = (
            f"Tested after {', '.join(map(str, interim.CHANCES))} pairs of processes, of which {self.pairs} were the "
            f"last. {self.against.meaning}"
        )
        prefix = self.folder.root / "results/compare" / f"{self.base}_{self.candidate}"
        return results.shown(prefix, base.name, other.name, data, notes, page)


def _place(cell: Any) -> Place:
    """Returns network, mini-batch and threads of a cell of the plan, or of a row."""
    network = getattr(cell, "variant", "") or cell.network
    return network, int(cell.batch), int(cell.threads)


if __name__ == "__main__":
    main()
