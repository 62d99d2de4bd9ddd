"""The figure of resources: what each framework used of the machine while it trained, over the time."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import Trained, read
from steptime.render import figures
from steptime.render.words import facts, plural

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
    """The data behind the figure (COLUMNS; `seconds` since the worker's start) and the figure: networks across,
    resources down. The first seed of the most threads of each platform is drawn; the data have all.
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
    most = data.groupby("platform")["threads"].transform("max")
    first = data.groupby(["label", "environment"])["seed"].transform("min")
    drawn = data[(data["threads"] == most) & (data["seed"] == first)]
    labels = list(dict.fromkeys(drawn["label"]))
    shown = [name for name in ROWS if drawn[name].notna().any()]
    look: dict[str, Any] = {"sharex": "col", "sharey": "row", "squeeze": False}
    with figures.canvas(len(shown), len(labels), 1.4 + ROW_INCHES * len(shown), **look) as (
        drawing,
        grid,
    ):
        for across, label in enumerate(labels):
            own = drawn[drawn["label"] == label]
            for down, name in enumerate(shown):
                axes = grid[down, across]
                for (framework, _), line in own.groupby(["framework", "environment"], sort=False):
                    axes.plot(
                        line["seconds"],
                        line[name],
                        color=frameworks[framework].colour,
                        linewidth=1.3,
                    )
                axes.set_ylim(bottom=0)
                axes.set_ylabel(ROWS[name] if across == 0 else "")
            grid[0, across].set_title(label, fontsize=9)
            grid[-1, across].set_xlabel("seconds since the start")
        figures.title(drawing, artefact["title"])
        named = drawn.drop_duplicates("environment")[["framework", "environment"]].to_dict(
            "records"
        )
        handles = [
            figures.key(row["environment"], color=frameworks[row["framework"]].colour)
            for row in named
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
