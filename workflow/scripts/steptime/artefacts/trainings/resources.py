"""Table of what each framework used of the machine while it trained, and figure of it over the time."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import curves, over_seeds
from steptime.artefacts.inputs import Inputs
from steptime.merge.trainings import CELL, Trained
from steptime.render import figures
from steptime.render.columns import Row, columns
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import environment_labels, facts, percent

TABLE = [*CELL, "label", "environment_label", "seeds", "status", "reason"]
TYPES = {"dataset_label": TEXT, "seeds": COUNT}
# What the table says, where there is any of it.
USED = {
    "cpus": over_seeds.column("CPUs at work", "cpus"),
    "cpu_share": over_seeds.column("Share of its CPUs", "cpu_share", percent),
    "peak_memory_bytes": over_seeds.column(
        "Peak memory", "peak_memory_bytes", over_seeds.gibibytes
    ),
    "device_share": over_seeds.column(
        "Share of the time with work on the GPU", "device_share", percent
    ),
    "peak_device_memory_bytes": over_seeds.column(
        "Peak memory of the GPU", "peak_device_memory_bytes", over_seeds.gibibytes
    ),
}
RUN = ["label", "environment", "mode", "platform", "threads", "seed"]
# What is drawn, where there is any: the column, what its axis says.
ROWS = {
    "cpus": "CPUs at work",
    "resident_gib": "resident memory (GiB)",
    "device_share": "share of the time\nwith work on the GPU",
    "device_gib": "GPU memory (GiB)",
    "host_watts": "power of the\nprocessors (W)",
}
COLUMNS = [*RUN, "seconds", *ROWS]
# What names and draws a line besides.
NAMED = ["framework", "framework_version", "device"]
ROW_INCHES = 1.9


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (TABLE; of each of USED the median, `least_` and `most_` over the seeds) and the layout."""
    trained = inputs.trained
    rows = []
    for row, runs, _ in over_seeds.by_cell(trained, inputs.frameworks):
        failed = runs[runs["epochs"] == 0]
        row["status"] = "ok" if len(failed) < len(runs) else failed.iloc[0]["status"]
        row["reason"] = "" if failed.empty else failed.iloc[0]["reason"]
        rows.append(row | over_seeds.spread(_used(row, runs, trained)))
    data = pd.DataFrame(rows, columns=over_seeds.with_spreads(TABLE, USED))
    over_seeds.describe(
        inputs,
        trained,
        "Median over the seeds, and from the least to the most of them where they differ. CPUs at work are the CPU "
        "seconds of all of the worker's threads for each second of its training, with judging and without start; their "
        "share is of the threads that were asked for. Peak memory is the kernel's high-water mark of the whole "
        "process, images and judging included.",
    )
    shown = [column for name, column in USED.items() if data[name].notna().any()]
    return data, columns(data, shown, over_seeds.HERE)


def _used(row: Row, runs: pd.DataFrame, trained: Trained) -> dict[str, pd.Series]:
    """Says what each seed of a cell used, by the names of USED."""
    noted = [_rows(run, trained.resources[run["key"]]) for run in runs.to_dict("records")]
    shares = [pd.Series([note["device_share"] for note in notes]).mean() for notes in noted]
    return {
        "cpus": runs["effective_threads"],
        "cpu_share": runs["effective_threads"] / row["threads"],
        "peak_memory_bytes": runs.loc[runs["epochs"] > 0, "peak_memory_bytes"],
        "device_share": pd.Series(shares, dtype=float),
        "peak_device_memory_bytes": runs["peak_device_memory_bytes"],
    }


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the data of all seeds (COLUMNS; `seconds` since the worker's start) and the figure of the first."""
    trained = inputs.trained
    rows = [
        row
        for run in trained.runs.to_dict("records")
        for row in _rows(run, trained.resources[run["key"]])
    ]
    data = pd.DataFrame(rows, columns=[*COLUMNS, *NAMED])
    data["runner"] = environment_labels(inputs.frameworks, data)
    first = data.groupby(["label", "environment", "mode"])["seed"].transform("min")
    most = data["platform"].map(trained.drawn_threads)
    drawn = data[(data["threads"] == most) & (data["seed"] == first)]
    styles = curves.styles_of(drawn, inputs.frameworks, "runner")
    plain: dict[str, Any] = {"marker": "", "linewidth": 1.3}
    labels = list(dict.fromkeys(drawn["label"]))
    shown = [name for name in ROWS if drawn[name].notna().any()]
    shared: dict[str, Any] = {"sharex": "row", "sharey": "col", "squeeze": False}
    height = 1.4 + ROW_INCHES * len(labels)
    with figures.canvas(len(labels), len(shown), height, **shared) as (drawing, grid):
        for label, line in zip(labels, grid, strict=True):
            own = drawn[drawn["label"] == label]
            for axes, name in zip(line, shown, strict=True):
                curves.draw(axes, own, "seconds", name, styles, "runner", **plain)
                axes.set_ylabel(ROWS[name])
            line[0].set_title(label, fontsize=9)
        for top, bottom in zip(grid[0], grid[-1], strict=True):
            # When all is drawn: it holds the upper end too.
            top.set_ylim(bottom=0)
            bottom.set_xlabel("seconds since the start")
        figures.title(drawing, inputs.entry["title"])
        words = f"The first seed, with imports and judging; {curves.threads_drawn(drawn)}."
        figures.caption(drawing, words, _notes(trained), curves.keys(styles, **plain), 4)
    return data[COLUMNS], drawing


def _rows(run: dict[str, Any], noted: dict[str, Any]) -> list[Row]:
    """Returns a row for each two notes in succession: what was used between them, and what was held at the second."""
    if len(noted["rows"]) < 2:
        return []
    notes = pd.DataFrame(noted["rows"], columns=noted["columns"], dtype=float)
    rates, held = notes.diff()[1:], notes[1:]
    used = {
        "seconds": held["seconds"],
        "cpus": rates["cpu_seconds"] / rates["seconds"],
        "resident_gib": held["resident_bytes"] / 2**30,
        "device_share": held["device_share"],
        "device_gib": held["device_bytes"] / 2**30,
        "host_watts": rates["host_joules"] / rates["seconds"],
    }
    named = {name: run[name] for name in (*RUN, *NAMED)}
    return pd.DataFrame(used).assign(**named).to_dict("records")


def _notes(trained: Trained) -> list[str]:
    noted = [entry for entry in trained.resources.values() if len(entry["rows"]) > 1]
    seconds = sum(entry["rows"][-1][0] for entry in noted)
    cost = sum(entry["own_seconds"] for entry in noted) / seconds
    every = noted[0]["interval_seconds"]
    return [
        "From the worker's start, with imports, and with the judging after each epoch. "
        f"Noted every {every:g} s by the supervisor, to the kernel's tick of 10 ms of CPU time; that took "
        f"{100 * cost:.2g} % of one CPU. Resident memory is all of the process's, the images too.",
        *facts(trained.times),
    ]
