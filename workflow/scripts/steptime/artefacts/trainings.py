"""Whole trainings: their times to an accuracy beside a paper's, as a table and as bars."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.statistics import median
from steptime.artefacts import times
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import DESCRIPTION, Measured
from steptime.merge.summary import summarise
from steptime.plan.cell import IDENTITY, key_of
from steptime.reading import InputError
from steptime.render import figures
from steptime.render.frameworks import STYLES, Frameworks
from steptime.render.words import (
    NOTHING_MEASURED,
    environment_labels,
    facts,
    plural,
    raw_data,
    significant,
    status_reason,
    version_order,
)

# One training: what tells it from its other seeds is `repeat`.
CELL = [*IDENTITY, "framework", "dataset_label"]
NOT_REACHED = "not_reached"
WHY = {"epochs": "all its epochs were trained", "seconds": "its time was over"}


@dataclass(frozen=True)
class Trained:
    """The trainings of a grid.

    `times` is what `Measured` is for cells: seconds until the accuracy, over the seeds that reached it. `runs` has one
    row for each training (CELL, repeat, seed, status, reason, `epochs`, `seconds`, `accuracy`: the last epoch's ...),
    `epochs` one for each epoch, with `elapsed`, the seconds of training until its end. `resources` is what the
    supervisor noted, by `key`. `label` names network, variant and data set, and a subset always as one.
    """

    times: Measured
    runs: pd.DataFrame
    epochs: pd.DataFrame
    resources: dict[str, dict[str, Any]]
    missing: list[str]

    @classmethod
    def nothing(cls) -> "Trained":
        """For a grid without trainings."""
        return cls(Measured.nothing(), pd.DataFrame(), pd.DataFrame(), {}, [])

    @property
    def drawn_threads(self) -> dict[str, int]:
        """By platform the threads of what a figure shows of one number: the most that its CPUs are enough for, or the
        fewest there are.
        """
        found = {}
        for platform, counts in self.runs.groupby("platform", sort=False)["threads"]:
            cpus = self.times.platforms[platform].get("cpu", {}).get("logical_cores")
            within = counts[counts <= cpus] if cpus else counts
            found[platform] = int(within.max() if len(within) else counts.min())
        return found

    @property
    def notes(self) -> list[str]:
        """What a reader must be told of data sets that were not there."""
        return [
            f"Not trained here: networks of {label}, of which no files are named under 'data' in config/config.yaml."
            for label in self.missing
        ]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    trained = joined(inputs)
    inputs.page.notes[:0] = trained.notes
    made = trained.times, inputs.printed, inputs.catalogue, inputs.frameworks, inputs.networks
    return times.build(*made, inputs.entry, inputs.page)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing."""
    made = joined(inputs).times, inputs.printed, inputs.catalogue, inputs.frameworks
    return draw(*made, inputs.entry)


def read(path: Path) -> Trained:
    """The trainings that `merge.cells` put together. Raises InputError."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path} cannot be read ({error}); remove it and run snakemake again."
        ) from error
    known = json.loads((table.schema.metadata or {}).get(DESCRIPTION, b"{}"))
    rows = table.to_pandas()
    rows["key"] = [key_of(row) for row in rows.to_dict("records")]
    rows["label"] = [label_of(row) for row in rows.to_dict("records")]
    rows["elapsed"] = rows.groupby("key")["seconds"].cumsum()
    runs = pd.DataFrame([_run(group) for _, group in rows.groupby("key", sort=False)])
    logical = {
        name: entry.get("cpu", {}).get("logical_cores") for name, entry in known["machines"].items()
    }
    # The name of what was trained on stands where a table has a variant, so that a subset is never taken for the whole.
    usual = (runs["variant"] == "") & (runs["dataset"] == runs["whole_dataset"])
    named = runs.assign(variant=runs["label"].where(~usual, ""))
    cells = summarise(named, logical)
    # Of a training, the mini-batch belongs to the network.
    cells["batch"] = None
    # A training is one number, and not a sample of many.
    cells["marks"] = [[mark for mark in marks if mark != "few samples"] for marks in cells["marks"]]
    times = Measured(rows, cells, known["machines"], known["software"], str(path))
    return Trained(times, runs, rows[rows["epoch"].notna()], known["resources"], known["missing"])


def joined(inputs: Inputs) -> Trained:
    """The trainings of the grid; nothing where it has none."""
    return read(inputs.paths("trainings")[0]) if inputs.has("trainings") else Trained.nothing()


def judged(trained: Trained) -> Trained:
    """Those that have an accuracy: what is trained to give its images back has none."""
    epochs, runs = trained.epochs, trained.runs
    without = epochs.loc[epochs["accuracy"].isna(), "key"]
    return replace(
        trained,
        runs=runs[~runs["key"].isin(without)],
        epochs=epochs[~epochs["key"].isin(without)],
    )


def label_of(row: dict[str, Any]) -> str:
    """What was trained on, and where it was a variant of the data set's network, which."""
    return f"{row['variant']} on {row['dataset_label']}" if row["variant"] else row["dataset_label"]


def by_cell(
    trained: Trained, frameworks: Frameworks
) -> list[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
    """Of each cell, in the order of tables: what names it (CELL, label, environment_label, target_accuracy, seeds), its
    runs, a row for each seed, and all their epochs.
    """
    labels, found = list(dict.fromkeys(trained.runs["label"])), []
    named = trained.runs.assign(environment_label=environment_labels(frameworks, trained.runs))
    for _, runs in named.groupby(CELL, sort=False, dropna=False):
        first = runs.iloc[0].to_dict()
        row = {name: first[name] for name in [*CELL, "label", "target_accuracy"]}
        row["seeds"] = len(runs)
        row["environment_label"] = first["environment_label"]
        found.append((row, runs, trained.epochs[trained.epochs["key"].isin(runs["key"])]))
    return sorted(
        found,
        key=lambda cell: (
            labels.index(cell[0]["label"]),
            frameworks[cell[0]["framework"]].order,
            version_order(cell[0]["environment"]),
            cell[0]["mode"],
            cell[0]["platform"],
            cell[0]["threads"],
        ),
    )


def in_step(trained: Trained) -> pd.DataFrame:
    """The epochs of all trainings that did not fail, up to the last one that each of them has."""
    finished = trained.runs[trained.runs["status"].isin(["ok", NOT_REACHED])]
    common = finished["epochs"].min() if len(finished) else 0
    epochs = trained.epochs
    return epochs[(epochs["epoch"] <= common) & epochs["key"].isin(finished["key"])]


def spread(values: dict[str, pd.Series]) -> dict[str, float]:
    """Of each name the median over the seeds, the least and the most of them; nothing where there is none."""
    row: dict[str, float] = {}
    for name, series in values.items():
        found = [float(value) for value in series.dropna()]
        if found:
            row |= {name: median(found), f"least_{name}": min(found), f"most_{name}": max(found)}
    return row


def cpus_at_work(epochs: pd.DataFrame) -> pd.Series:
    """CPU seconds of all of a training's threads for each second of its epochs, by key."""
    sums = epochs.groupby("key", sort=False)[["cpu_seconds", "seconds"]].sum()
    return sums["cpu_seconds"] / sums["seconds"]


def runner(row: dict[str, Any], modes: dict[str, int]) -> str:
    """The environment, and its mode where `modes` says that it has more than one: 'keras-2.0.5, theano'."""
    several = modes[row["environment"]] > 1
    return f"{row['environment']}, {row['mode']}" if several else row["environment"]


def modes_of(rows: pd.DataFrame) -> dict[str, int]:
    """By environment, the number of its modes."""
    return rows.groupby("environment")["mode"].nunique().to_dict()


def lines(rows: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """By name of a runner, as the column `runner` has it, its framework and the style of its lines.

    A framework keeps its colour, and its further runners differ in dashes.
    """
    found: dict[str, tuple[str, str]] = {}
    turns: dict[str, int] = {}
    for name, framework in rows[["runner", "framework"]].drop_duplicates().itertuples(index=False):
        turn = turns.setdefault(framework, 0)
        turns[framework] += 1
        found[name] = framework, STYLES[turn % len(STYLES)]
    return found


def _run(epochs: pd.DataFrame) -> dict[str, Any]:
    row = epochs.iloc[-1].to_dict()
    row |= {"epochs": int(epochs["epoch"].count()), "seconds": epochs["seconds"].sum()}
    if row["status"] == "ok" and row["stopped"] != "accuracy":
        row["status"] = NOT_REACHED
        judged = pd.notna(row["accuracy"])
        reached = (
            f"{100 * row['accuracy']:.2f} %" if judged else f"a loss of {row['test_loss']:.3g}"
        )
        asked = f"; {100 * row['target_accuracy']:g} % are asked for" if judged else ""
        row["reason"] = (
            f"{reached} after {plural(row['epochs'], 'epoch')} and {row['seconds']:.3g} s, when "
            f"{WHY[row['stopped']]}{asked}"
        )
    return row


COLUMNS = [
    "source",
    "network",
    "device",
    "group",
    "framework",
    "label",
    "seconds",
    "low",
    "high",
    "status",
    "reason",
]
HATCHES = ("", "//", "..", "xx", "\\\\", "oo")
WIDTH = 0.82  # of a group, whose place is 1 wide
HEADROOM = 1.18
LEGEND_LETTERS = 110  # of a legend's line that fit the figure's width
KEY_LETTERS = 6  # as wide as a key and the space around it


def draw(
    measured: Measured,
    printed: pd.DataFrame,
    paper: dict[str, Any],
    frameworks: Frameworks,
    artefact: dict[str, Any],
) -> tuple[pd.DataFrame, Figure]:
    """The data behind the figure (COLUMNS; seconds) and the figure; printed bars are filled, ours are outlined.

    The artefact's entry says which `networks` and which kind of `device`; CPUs are grouped by threads, GPUs by network.
    """
    data = pd.DataFrame(
        [
            *_theirs(printed, paper, frameworks, artefact),
            *_ours(measured, paper, frameworks, artefact),
        ],
        columns=COLUMNS,
    )
    with figures.canvas() as (drawing, axes):
        _draw(axes, data, frameworks)
        by_threads = artefact["device"] == "cpu"
        axes.set_xlabel("threads" if by_threads else "data set")
        axes.set_ylabel(f"{artefact['quantity'].lower()} (s)")
        axes.grid(visible=False, axis="x")
        figures.headings(axes, artefact["title"], [artefact["caption"]])
        handles, labels = axes.get_legend_handles_labels()
        keys = [handle for handle, label in zip(handles, labels, strict=True) if label]
        longest = max(len(label) for label in labels)
        columns = min(4, len(keys), max(1, LEGEND_LETTERS // (longest + KEY_LETTERS)))
        figures.notes_below(drawing, _notes(measured, data, artefact, paper), keys, columns)
    return data, drawing


def _theirs(
    printed: pd.DataFrame, paper: dict[str, Any], frameworks: Frameworks, artefact: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            "source": "paper",
            "network": row["network"],
            "device": artefact["device"],
            "group": row["threads"] or paper["labels"][row["network"]],
            "framework": row["framework"],
            "label": f"{frameworks[row['framework']].label} {paper['versions'][row['framework']]}",
            "seconds": row["number"],
            "status": row["status"],
            "reason": row["reason"],
        }
        for row in printed.to_dict("records")
        if row["network"] in artefact["networks"]
        and paper["platforms"][row["platform"]]["device"] == artefact["device"]
    ]


def _ours(
    measured: Measured, paper: dict[str, Any], frameworks: Frameworks, artefact: dict[str, Any]
) -> list[dict[str, Any]]:
    cells = measured.cells
    here = cells[
        cells["network"].isin(artefact["networks"]) & (cells["device"] == artefact["device"])
    ]
    modes = modes_of(here)
    return [
        {
            name: row[name]
            for name in (
                "network",
                "device",
                "framework",
                "seconds",
                "low",
                "high",
                "status",
                "reason",
            )
        }
        | {
            "source": "ours",
            "group": str(row["threads"])
            if artefact["device"] == "cpu"
            else paper["labels"][row["network"]],
            "label": ", ".join(
                [runner(row, modes), *filter(None, [row["variant"]]), f"here on {row['platform']}"]
            ),
        }
        for row in here.to_dict("records")
    ]


def _draw(axes: Axes, data: pd.DataFrame, frameworks: Frameworks) -> None:
    groups = list(dict.fromkeys(data["group"]))
    groups = sorted(groups, key=int) if all(group.isdigit() for group in groups) else groups
    series = data.drop_duplicates(["source", "label"])[["source", "framework", "label"]].to_dict(
        "records"
    )
    width = WIDTH / len(series)
    highest = data["seconds"].max()
    for at, line in enumerate(series):
        rows = data[
            (data["source"] == line["source"])
            & (data["label"] == line["label"])
            & data["seconds"].notna()
        ]
        places = [
            groups.index(group) + (at - (len(series) - 1) / 2) * width for group in rows["group"]
        ]
        colour, theirs = frameworks[line["framework"]].colour, line["source"] == "paper"
        bars = axes.bar(
            places,
            rows["seconds"],
            width * 0.94,
            label=line["label"],
            facecolor=colour if theirs else "white",
            edgecolor="white" if theirs else colour,
            hatch=HATCHES[at % len(HATCHES)],
            linewidth=0 if theirs else 1.5,
            zorder=3,
        )
        texts = [
            significant(value) if value < 1000 else f"{value:,.0f}" for value in rows["seconds"]
        ]
        axes.bar_label(bars, texts, rotation=90, padding=3, fontsize=7, color="#333333")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0, highest * HEADROOM)


def _notes(
    measured: Measured, data: pd.DataFrame, artefact: dict[str, Any], paper: dict[str, Any]
) -> list[str]:
    table, *places = reversed(artefact["sources"])
    notes = [
        f"Filled: {table} of {paper['short']}; their {', '.join(places)} shows the same numbers as a picture."
    ]
    if measured.cells.empty:
        return [*notes, NOTHING_MEASURED]
    missing = data[data["seconds"].isna()]
    notes += [
        f"Not drawn: {row['label']}, {row['group']} ({status_reason(row['status'], row['reason'])})."
        for row in missing.to_dict("records")
    ]
    return [*notes, " ".join(["Outlined: measured here.", *facts(measured)]), raw_data(measured)]
