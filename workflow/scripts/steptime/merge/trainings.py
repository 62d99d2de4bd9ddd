"""Reads whole trainings from merged rows: one by one, by epochs, and as cells."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from steptime.merge.measured import DESCRIPTION, Measured, logical_cores, read_table
from steptime.merge.summary import summarise
from steptime.plain import plural
from steptime.plan.cell import IDENTITY, key_of

# One training: what tells it from its other seeds is `repeat`.
CELL = [*IDENTITY, "framework", "dataset_label"]
NOT_REACHED = "not_reached"
WHY = {"epochs": "all its epochs were trained", "seconds": "its time was over"}


@dataclass(frozen=True)
class Trained:
    """The trainings of a grid.

    `times` is what `Measured` is for cells: seconds until the accuracy, over the seeds that reached it. `runs` has one
    row for each training (CELL, repeat, seed, status, reason; `epochs`, `seconds`, and the last epoch's `accuracy` and
    so on). `epochs` has one row for each epoch, with `elapsed`, the seconds of training until its end. `resources` is
    what the supervisor noted, by `key`. `label` names network, variant and data set; a subset is always named as one.
    """

    times: Measured
    runs: pd.DataFrame
    epochs: pd.DataFrame
    resources: dict[str, dict[str, Any]]
    missing: list[str]

    @classmethod
    def nothing(cls) -> "Trained":
        return cls(Measured.nothing(), pd.DataFrame(), pd.DataFrame(), {}, [])

    def only(self, runs: pd.DataFrame) -> "Trained":
        """Returns some of the trainings, with their epochs."""
        epochs = self.epochs[self.epochs["key"].isin(runs["key"])]
        return replace(self, runs=runs, epochs=epochs)

    @property
    def drawn_threads(self) -> dict[str, int]:
        """Returns the thread count that a figure draws of each platform: the most for which its CPUs are enough."""
        threads = {}
        for platform, counts in self.runs.groupby("platform", sort=False)["threads"]:
            cpus = self.times.platforms[platform].get("cpu", {}).get("logical_cores")
            within = counts[counts <= cpus] if cpus else counts
            threads[platform] = int(within.max() if len(within) else counts.min())
        return threads

    @property
    def notes(self) -> list[str]:
        """Returns what a reader must know of data sets that are missing here."""
        return [
            f"Not trained here: networks of {label}, of which no files are named under 'data' in config/config.yaml."
            for label in self.missing
        ]


def read(path: Path) -> Trained:
    """Returns the trainings that `merge.cells` put together. Raises InputError."""
    return of_table(read_table(path), str(path))


def of_table(table: pa.Table, source: str) -> Trained:
    """Reads what merged rows of trainings, of the file `source`, say."""
    known = json.loads(table.schema.metadata[DESCRIPTION])
    rows = table.to_pandas()
    rows["key"] = [key_of(row) for row in rows.to_dict("records")]
    # What was trained on, and where it was a variant of the data set's network, which.
    variants = rows["variant"].where(rows["variant"] == "", rows["variant"] + " on ")
    rows["label"] = variants + rows["dataset_label"]
    rows["elapsed"] = rows.groupby("key")["seconds"].cumsum()
    runs = pd.DataFrame([_run(group) for _, group in rows.groupby("key", sort=False)])
    # The data set's name takes the place of a variant, so that a subset is never taken for the whole.
    usual = (runs["variant"] == "") & (runs["dataset"] == runs["whole_dataset"])
    named = runs.assign(variant=runs["label"].where(~usual, ""))
    cells = summarise(named, logical_cores(known["machines"]))
    # In a training, the mini-batch belongs to the network.
    cells["batch"] = None
    times = Measured(rows, cells, known["machines"], known["software"], source)
    return Trained(times, runs, rows[rows["epoch"].notna()], known["resources"], known["missing"])


def judged(trained: Trained) -> Trained:
    """Returns the trainings that have an accuracy: a network trained to give its images back has none."""
    without = trained.epochs.loc[trained.epochs["accuracy"].isna(), "key"]
    return trained.only(trained.runs[~trained.runs["key"].isin(without)])


def in_step(trained: Trained) -> pd.DataFrame:
    """Returns the epochs of all trainings that did not fail, up to the last epoch that all of them have."""
    finished = trained.runs[trained.runs["status"].isin(["ok", NOT_REACHED])]
    common = finished["epochs"].min() if len(finished) else 0
    epochs = trained.epochs
    return epochs[(epochs["epoch"] <= common) & epochs["key"].isin(finished["key"])]


def _run(epochs: pd.DataFrame) -> dict[str, Any]:
    row = epochs.iloc[-1].to_dict()
    row |= {"epochs": int(epochs["epoch"].count()), "seconds": epochs["seconds"].sum()}
    if row["status"] == "ok" and row["stopped"] != "accuracy":
        row["status"] = NOT_REACHED
        judged = pd.notna(row["accuracy"])
        reached = (
            f"{100 * row['accuracy']:.2f} %" if judged else f"a loss of {row['test_loss']:.3g}"
        )
        target = f"; {100 * row['target_accuracy']:g} % are asked for" if judged else ""
        row["reason"] = (
            f"{reached} after {plural(row['epochs'], 'epoch')} and {row['seconds']:.3g} s, when "
            f"{WHY[row['stopped']]}{target}"
        )
    return row
