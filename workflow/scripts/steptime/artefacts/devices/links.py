"""Figure of the ranks of each cell on several devices, where they ran, and what they exchanged in a step."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.reading import InputError
from steptime.render import figures
from steptime.render.words import machine_name, origin, significant, size

COLUMNS = ["platform", "network_label", "framework", "framework_label", "devices", "threads"]
COLUMNS += ["exchange", "batch", "seconds", "bytes_exchanged", "rate"]
ROW_INCHES = 0.5
# What sockets that only say "go on" send in a step.
FEW_BYTES = 100_000
DARK = "#444444"


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn (COLUMNS; `rate` in GB/s) and the figure. Raises InputError without times."""
    rows = common.cells_of(inputs)
    rows = rows[(rows["devices"] > 1) & (rows["status"] == "ok")]
    if rows.empty:
        raise InputError(
            "The grid has no timed cell on several devices: write `devices: [1, 2]` into it."
        )
    rate = rows["bytes_exchanged"].astype(float) / rows["seconds"] / 1e9
    data = rows.assign(rate=rate)[COLUMNS]
    with figures.canvas(height=1.1 + ROW_INCHES * len(data)) as (drawing, axes):
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(len(data) - 0.4, -0.6))
        for at, row in enumerate(data.to_dict("records")):
            _line(axes, at, row, inputs.frameworks[row["framework"]].colour)
        figures.title(drawing, inputs.entry["title"])
    words = figures.starred(
        rows.assign(marks=rows["marks"].str.join(", ")),
        "A circle is a rank with its threads; beside it, what all ranks sent and received in a step.",
    )
    notes = [
        "A rank is a process with CPUs of its own. The line below the ranks is the loopback interface of a network "
        "that they have for themselves. What went over it is also divided by the time of the step.",
        inputs.entry["caption"],
        *origin(inputs.measured),
    ]
    figures.caption(drawing, words, notes)
    return data, drawing


def _line(axes: Axes, at: int, row: dict[str, Any], colour: str) -> None:
    label = f"{row['framework_label']}, {row['exchange']}"
    where = f"{row['network_label']}, batch {row['batch']}, {machine_name(row['platform'])}"
    axes.text(0, at - 0.12, label, fontsize=8.5, va="center")
    axes.text(0, at + 0.2, where, fontsize=7, va="center", color=figures.GREY)
    places = [0.36 + 0.07 * rank for rank in range(row["devices"])]
    over_network = not row["bytes_exchanged"] < FEW_BYTES
    style = "-" if over_network else ":"
    axes.plot([places[0] - 0.02, places[-1] + 0.02], [at + 0.27] * 2, color=DARK, linestyle=style)
    for rank, place in enumerate(places):
        axes.plot([place] * 2, [at - 0.1, at + 0.27], color=DARK, linestyle=style, zorder=1)
        axes.plot(place, at - 0.1, marker="o", markersize=13, color=colour, zorder=2)
        words: dict[str, Any] = {"fontsize": 7, "color": "white", "ha": "center", "va": "center"}
        axes.text(place, at - 0.1, str(row["threads"]), **words)
        figures.say(axes, f"{rank}", (place, at - 0.1), (8, 4), fontsize=6, color=figures.GREY)
    axes.text(places[-1] + 0.05, at, _words(row, over_network), fontsize=8, va="center")


def _words(row: dict[str, Any], over_network: bool) -> str:
    step = f"in a step of {significant(1e3 * row['seconds'])} ms"
    if pd.isna(row["bytes_exchanged"]):
        return f"what went between them is not known, {step}"
    if not over_network:
        return f"memory that all share, {step}"
    return f"{size(row['bytes_exchanged'])} {step}: {significant(row['rate'])} GB/s"
