"""What each framework used of the machine while it trained: a table, and a figure over the time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import (
    CELL,
    Trained,
    by_cell,
    cpus_at_work,
    lines,
    modes_of,
    read,
    runner,
    spread,
)
from steptime.render import figures, tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, Entry
from steptime.render.words import facts, plural, significant, status_reason

TABLE = [*CELL, "label", "environment_label", "seeds", "status", "reason"]


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _gibibytes(value: float) -> str:
    return f"{value / 2**30:.2f} GiB"


# What the table tells, where there is any: the column, its heading, and how its numbers are written.
USED = {
    "cpus": ("CPUs at work", significant),
    "cpu_share": ("Share of its CPUs", _percent),
    "peak_memory_bytes": ("Peak memory", _gibibytes),
    "device_share": ("Share of the time with work on the GPU", _percent),
    "peak_device_memory_bytes": ("Peak memory of the GPU", _gibibytes),
}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(read(inputs.paths("trainings")[0]), inputs.frameworks, inputs.page)


def build(
    trained: Trained, frameworks: Frameworks, page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (TABLE, and of each of USED its median, `least_` and `most_` over the seeds) and the layout; fills
    the page's facts and notes.
    """
    rows = []
    for row, runs, epochs in by_cell(trained, frameworks):
        failed = runs[runs["epochs"] == 0]
        row["status"] = "ok" if len(failed) < len(runs) else failed.iloc[0]["status"]
        row["reason"] = "" if failed.empty else failed.iloc[0]["reason"]
        rows.append(row | spread(_used(row, runs, epochs, trained)))
    columns = [*TABLE, *(f"{part}{name}" for name in USED for part in ("", "least_", "most_"))]
    data = pd.DataFrame(rows, columns=columns)
    page.facts = facts(trained.times)
    page.notes[:0] = [
        "Median over the seeds, and from the least to the most of them where they differ. CPUs at work are the CPU "
        "seconds of all of the worker's threads for each second of its epochs, without start and judging; their share "
        "is of the threads that were asked for. Peak memory is the kernel's high-water mark of the whole process, "
        "images and judging included.",
        *trained.notes,
        f"All epochs: {trained.times.source}; one file for each training: results/cells/.",
    ]
    return data, _layout(data)


def _used(
    row: dict[str, Any], runs: pd.DataFrame, epochs: pd.DataFrame, trained: Trained
) -> dict[str, pd.Series]:
    """What each seed of a cell used, by the names of USED."""
    cpus = cpus_at_work(epochs)
    noted = [_rows(run, trained.resources[run["key"]]) for run in runs.to_dict("records")]
    shares = [pd.Series([note["device_share"] for note in notes]).mean() for notes in noted]
    return {
        "cpus": cpus,
        "cpu_share": cpus / row["threads"],
        "peak_memory_bytes": runs.loc[runs["epochs"] > 0, "peak_memory_bytes"],
        "device_share": pd.Series(shares, dtype=float),
        "peak_device_memory_bytes": runs["peak_device_memory_bytes"],
    }


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    shown = {name: told for name, told in USED.items() if data[name].notna().any()}
    body = [
        [_entry(row, name, text) for name, (_, text) in shown.items()]
        for row in data.to_dict("records")
    ]
    places = [
        f"{row['platform']}, {plural(row['threads'], 'thread')}" for row in data.to_dict("records")
    ]
    index = pd.MultiIndex.from_arrays(
        [data["label"], data["environment_label"], places], names=["Network", "Framework", "Here"]
    )
    columns = [heading for heading, _ in shown.values()]
    return pd.DataFrame(body, index=index, columns=columns, dtype=object)


def _entry(row: dict[str, Any], name: str, text: Callable[[float], str]) -> Entry:
    if pd.isna(row[name]):
        return Entry(DASH, (status_reason(row["status"], row["reason"]),))
    middle, least, most = (text(row[part + name]) for part in ("", "least_", "most_"))
    return Entry(middle if least == most else f"{middle} ({least} to {most})")


COLUMNS = [
    "label",
    "environment",
    "mode",
    "platform",
    "threads",
    "seed",
    "seconds",
    "cpus",
    "resident_gib",
]
COLUMNS += ["device_share", "device_gib", "host_watts"]
# What is drawn, where there is any: the column, what its axis says.
ROWS = {
    "cpus": "CPUs at work",
    "resident_gib": "resident memory (GiB)",
    "device_share": "share of the time\nwith work on the GPU",
    "device_gib": "GPU memory (GiB)",
    "host_watts": "power of the\nprocessors (W)",
}
ROW_INCHES = 1.9


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The data behind the figure (COLUMNS; `seconds` since the worker's start) and the figure: networks down,
    resources across. The first seed of one number of threads of each platform is drawn (`Trained.drawn_threads`); the
    data have all.
    """
    trained, frameworks, artefact = (
        read(inputs.paths("trainings")[0]),
        inputs.frameworks,
        inputs.entry,
    )
    keys = ["framework", "device"]
    data = pd.DataFrame(
        [
            row
            for run in trained.runs.to_dict("records")
            for row in _rows(run, trained.resources[run["key"]])
        ],
        columns=[*COLUMNS, *keys],
    )
    first = data.groupby(["label", "environment", "mode"])["seed"].transform("min")
    modes = modes_of(data)
    data["runner"] = [runner(row, modes) for row in data.to_dict("records")]
    most = data["platform"].map(trained.drawn_threads)
    drawn = data[(data["threads"] == most) & (data["seed"] == first)]
    looks = lines(drawn)
    labels = list(dict.fromkeys(drawn["label"]))
    shown = [name for name in ROWS if drawn[name].notna().any()]
    look: dict[str, Any] = {"sharex": "row", "sharey": "col", "squeeze": False}
    with figures.canvas(len(labels), len(shown), 1.4 + ROW_INCHES * len(labels), **look) as (
        drawing,
        grid,
    ):
        for down, label in enumerate(labels):
            own = drawn[drawn["label"] == label]
            for across, name in enumerate(shown):
                axes = grid[down, across]
                for who, line in own.groupby("runner", sort=False):
                    framework, style = looks[str(who)]
                    axes.plot(
                        line["seconds"],
                        line[name],
                        color=frameworks[framework].colour,
                        linestyle=style,
                        linewidth=1.3,
                    )
                axes.set_ylabel(ROWS[name])
            grid[down, 0].set_title(label, fontsize=9)
        for across in range(len(shown)):
            # When all is drawn: it holds the upper end too.
            grid[0, across].set_ylim(bottom=0)
            grid[-1, across].set_xlabel("seconds since the start")
        figures.title(drawing, artefact["title"])
        handles = [
            figures.key(who, color=frameworks[framework].colour, linestyle=style)
            for who, (framework, style) in looks.items()
        ]
        figures.notes_below(drawing, _notes(trained, drawn), handles, 4)
    return data[COLUMNS], drawing


def _rows(run: dict[str, Any], noted: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each two notes that follow each other: what was used between them, and held at the second."""
    if len(noted["rows"]) < 2:
        return []
    columns = zip(*noted["rows"], strict=True)
    values = {
        name: np.array(column, float)
        for name, column in zip(noted["columns"], columns, strict=True)
    }
    span = np.diff(values["seconds"])
    found = pd.DataFrame(
        {
            "seconds": values["seconds"][1:],
            "cpus": np.diff(values["cpu_seconds"]) / span,
            "resident_gib": values["resident_bytes"][1:] / 2**30,
            "device_share": values["device_share"][1:],
            "device_gib": values["device_bytes"][1:] / 2**30,
            "host_watts": np.diff(values["host_joules"]) / span,
        }
    )
    names = (
        "label",
        "environment",
        "mode",
        "platform",
        "threads",
        "seed",
        "framework",
        "device",
    )
    return [{name: run[name] for name in names} | row for row in found.to_dict("records")]


def _notes(trained: Trained, drawn: pd.DataFrame) -> list[str]:
    threads = "; ".join(
        f"{platform}: {plural(int(count), 'thread')}"
        for platform, count in drawn.groupby("platform")["threads"].max().items()
    )
    noted = [entry for entry in trained.resources.values() if len(entry["rows"]) > 1]
    cost = sum(entry["own_seconds"] for entry in noted) / sum(
        entry["rows"][-1][0] for entry in noted
    )
    every = noted[0]["interval_seconds"]
    return [
        f"From the worker's start, with imports, and with the judging after each epoch; the first seed; {threads}. "
        f"Noted every {every:g} s by the supervisor, to the kernel's tick of 10 ms of CPU time; that took "
        f"{100 * cost:.2g} % of one CPU. Resident memory is all of the process's, the images too.",
        " ".join(facts(trained.times)),
    ]
