"""The two sides of a comparison: which results they are, and which of their cells are compared."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from steptime import project
from steptime.carry import pack
from steptime.cells import checked, shard
from steptime.cells.mixed import refuse_several
from steptime.merge import judged
from steptime.merge.summary import summarise
from steptime.networks import written
from steptime.plan import configuration
from steptime.plan.cell import FOLDER, IDENTITY, PLAIN
from steptime.plan.schemas import meant
from steptime.reading import InputError
from steptime.statistics.words import Statistics, estimate, key

# What is noted of each process, to tell what else differs than what is compared.
NOTED = [*IDENTITY, "repeat", "status", "framework_version", "environment_digest", "network_digest"]
NOTED += ["worker_digest", "sampling_digest", "machine_id", "timed_region", "parameters"]
NOTED += ["flops_per_step", "started_at", "ended_at"]


class CompareError(InputError):
    """Two sides cannot be compared; the text says why."""


@dataclass
class Results:
    """What a results folder holds of timed steps.

    `cells` has a row for each cell (`merge.summary`), `processes` a row for each process: NOTED, `cell` (its label in
    `cells`), `steps` (timed), `kind` (of its machine, in words) and `variables` (of its environment, as JSON).
    `statistics` are the run's own (`merge.statistics`), or estimated from these rows where there are none.
    """

    name: str
    cells: pd.DataFrame
    processes: pd.DataFrame
    statistics: Statistics


@dataclass
class Side:
    """One side: the cells of some results that have the chosen columns' values."""

    name: str
    results: Results
    chosen: dict[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> pd.DataFrame:
        return self.of(self.results.cells)

    def of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Returns the rows that belong to this side."""
        for column, value in self.chosen.items():
            rows = rows[rows[column] == value]
        # An environment is what its settings make of it.
        is_tuned = "environment" in self.chosen and "mode" not in self.chosen
        return rows[rows["mode"] != PLAIN] if is_tuned else rows


@contextmanager
def opened(one: str, other: str, here: Path) -> Iterator[tuple[Side, Side]]:
    """Yields the two sides that a user names: each a pack, a folder, or an environment, mode or platform of `here`.

    A choice within a pack or folder follows a colon. Raises CompareError, and what `carry.pack.opened` raises.
    """
    parts = [_parted(text, here) for text in (one, other)]
    with ExitStack() as stack:
        results: dict[str, Results] = {}
        for source in dict.fromkeys(source for source, _ in parts):
            folder = stack.enter_context(pack.opened(Path(source)))
            results[source] = read(folder, source)
        sides = [
            Side(text, results[source], _choice(choice, results[source]))
            for text, (source, choice) in zip((one, other), parts, strict=True)
        ]
        yield sides[0], sides[1]


def _parted(text: str, here: Path) -> tuple[str, str]:
    """Splits a side's name into results and choice: 'before.tar.gz:torch-1.4', 'before.tar.gz', 'torch-1.4'."""
    source, colon, choice = text.rpartition(":")
    if colon and Path(source).exists():
        return source, choice
    if Path(text).exists() or "/" in text:
        return text, ""
    if not here.exists():
        advice = "run `make`, or name packs or folders"
        raise CompareError(f"Nothing is measured in {here} yet: {advice}.")
    return str(here), text


def _choice(text: str, results: Results) -> dict[str, str]:
    """Returns the columns and values that a word chooses: an environment, with a mode or not, a platform, a mode."""
    if not text:
        return {}
    cells = results.cells
    catalogue = configuration.without_grid(project.ROOT)
    named = catalogue.environments_of(text, {*cells["device"]})
    text = next((name for name in named if name in {*cells["environment"]}), text)
    for columns in (["environment"], ["environment", "mode"], ["platform"], ["mode"]):
        names = {".".join(row): row for row in cells[columns].itertuples(index=False, name=None)}
        if text in names:
            return dict(zip(columns, names[text], strict=True))
    known = [*cells["environment"].unique(), *cells["platform"].unique(), *cells["mode"].unique()]
    lacks = f"no environment, framework, mode or platform '{text}', and there is no such file"
    if named[0] in catalogue.known_environments:
        text, lacks = "", f"no results of {named[0]}, which a grid that names it measures"
    raise CompareError(f"{results.name} has {lacks}: {meant(text, list(dict.fromkeys(known)))}")


def read(folder: Path, name: str) -> Results:
    """Reads a folder's timed steps. Raises CompareError without any, and what `carry.pack.check` raises."""
    paths = sorted(folder.glob(f"{FOLDER}/*/step/*.parquet"))
    if not paths:
        raise CompareError(f"{name} has no timed result: measure something there first.")
    checked.regular(paths)
    rows, samples, processes, logical = [], [], [], {}
    planned: list[int] = []
    machines: dict[str, dict[str, list[Path]]] = {}
    for path in paths:
        row, table, footer = checked.parts(path)
        row["platform"] = path.parent.parent.name
        kind = shard.kind_of_machine(path, row, footer)
        machines.setdefault(row["platform"], {}).setdefault(kind, []).append(path)
        row |= {"variant": row["variant"] or ""} | _judged(folder, path, row)
        rows.append(row)
        samples.append(table["seconds"].to_pylist())
        planned = planned or footer.get("looks", [])
        facts = {column: row[column] for column in NOTED}
        variables = json.dumps(footer.get("job", {}).get("variables", {}), sort_keys=True)
        steps = sum(filter(None, table["steps"].to_pylist()))
        processes.append(facts | {"steps": steps, "kind": kind, "variables": variables})
        logical[row["machine_id"]] = footer["machine"]["cpu"].get("logical_cores")
    refuse_several(machines)
    rows = judged.by_gradients(rows)
    counts = [len(each) for each in samples]
    frame = pd.DataFrame(rows).loc[np.repeat(np.arange(len(rows)), counts)].reset_index(drop=True)
    frame["seconds"] = np.array([value for each in samples for value in each], dtype=float)
    statistics = _statistics(folder, summarise(frame, logical, planned))
    cells = summarise(frame, logical, planned, statistics)
    places = {tuple(place): label for label, place in cells[IDENTITY].iterrows()}
    labels = [places[tuple(each[column] for column in IDENTITY)] for each in processes]
    return Results(name, cells, pd.DataFrame(processes).assign(cell=labels), statistics)


def _statistics(folder: Path, cells: pd.DataFrame) -> Statistics:
    keys = {key(cell) for cell in cells.to_dict("records")}
    files = sorted(folder.glob("statistics/*.json"))
    checked.regular(files)
    records = map(checked.record, files)
    # What release 1.1 wrote has no pairs: then they are estimated here.
    statistics = [Statistics.from_json(record) for record in records if "pairs" in record]
    known_here = [each for each in statistics if keys & each.words.keys()]
    return max(known_here, key=lambda each: len(keys & each.words.keys()), default=estimate(cells))


def _judged(folder: Path, path: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Returns status and reason where a proof with the row's id, or a later one, refuses the row; else {}."""
    files = [folder / "proofs" / name for name in pack.proofs_of(row)]
    files = [file for file in files if os.path.lexists(file)]
    checked.regular(files)
    own = [
        proof
        for proof in map(checked.record, files)
        if proof.get("proof_id") == row["proof_id"]
        or proof.get("environment_digest", "") == row["environment_digest"]
    ]
    if not own:
        raise pack.PackError(
            f"The shard {path} has no proof of its version beside it (proofs/{pack.proofs_of(row)[0]}), and a time is "
            "worth no more than its proof: fetch that from the machine that measured, or leave the shard out."
        )
    refusing = [proof for proof in own if proof.get("status") == "not_equivalent"]
    if row["status"] != "ok" or not refusing:
        return {}
    return {"status": "not_equivalent", "reason": str(refusing[0].get("reason", ""))}


def pairs_of(one: Side, other: Side) -> list[tuple[Any, Any]]:
    """Returns the labels of cells of `one` and `other` that differ only in what is compared, in the order of networks.

    Raises CompareError where there are none, and where a side has several for the same place.
    """
    free = {*one.chosen, *other.chosen}
    if set(one.cells["mode"]) != set(other.cells["mode"]) and "environment" in free:
        free.add("mode")
    if all(side.cells["platform"].nunique() == 1 for side in (one, other)):
        free.add("platform")
    common = [column for column in IDENTITY if column not in free]
    places = [_places(side, common) for side in (one, other)]
    pairs = [(places[0][place], places[1][place]) for place in places[0] if place in places[1]]
    if not pairs:
        raise CompareError(
            f"{one.name} and {other.name} have no result in common: {_what(one)}; {_what(other)}."
        )
    order = {name: at for at, name in enumerate(written.of_run())}
    cells = one.results.cells
    names = cells["variant"].where(cells["variant"] != "", cells["network"])

    def place(pair: tuple[Any, Any]) -> tuple[int, int, int]:
        row = cells.loc[pair[0]]
        return order.get(names[pair[0]], len(order)), row["threads"], row["batch"]

    return sorted(pairs, key=place)


def _places(side: Side, columns: list[str]) -> dict[tuple[Any, ...], Any]:
    places: dict[tuple[Any, ...], Any] = {}
    for label, row in side.cells[columns].iterrows():
        place = tuple(row)
        if place in places:
            rows = side.cells.loc[[places[place], label]]
            names = rows["environment"] + "." + rows["mode"]
            raise CompareError(
                f"{side.name} has several results for the same place ({' and '.join(names)}): name one of them."
            )
        places[place] = label
    return places


def _what(side: Side) -> str:
    """Returns the networks, mini-batches and threads of a side in words."""
    cells = side.cells
    variants = cells["variant"].where(cells["variant"] != "", cells["network"])
    networks = ", ".join(dict.fromkeys(variants))
    threads = ", ".join(map(str, sorted(cells["threads"].unique())))
    return f"{side.name} has {networks or 'nothing'} at {threads or 'no'} threads"
