"""Figure of a network's convolutions, in each way of computing them that a framework lets its users choose."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import parts
from steptime.render.tables import Entry
from steptime.render.words import milliseconds

TYPES = parts.TYPES
WAYS = {
    "own choice": ("o", "#222222", "the framework's own choice"),
    "direct": ("s", "#0072B2", "direct"),
    "im2col": ("D", "#E69F00", "im2col: unfolded, then a product"),
    "winograd": ("^", "#009E73", "Winograd"),
    "fft": ("v", "#D55E00", "FFT"),
}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    data = parts.read(inputs)
    common.describe(
        inputs,
        "Milliseconds of one convolution, forward, without its bias; the shortest of a layer and place is bold. A "
        "convolution by FFT or Winograd also transforms its weights, which change with each step of a training.",
        parts.off_by(data),
    )
    fastest = data.groupby(["part", "platform", "threads"])["seconds"].min()

    def entries(part: str, place: parts.Place, ways: parts.Ways) -> list[Entry]:
        shown = []
        for row in map(ways.get, WAYS):
            text = milliseconds(row["seconds"]) if row and row["repeats"] else ""
            best = row is not None and bool(row["seconds"] == fastest[(part, *place)])
            shown.append(replace(parts.entry(row, ways.get(""), text), best=best))
        return shown

    layout = parts.by_place(data, ["Layer", "Framework"], WAYS, entries)
    return data[parts.COLUMNS], layout


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn, of each platform's highest thread count, and the drawing."""
    data = common.of_most_threads(parts.read(inputs))
    drawn = data[data["repeats"] > 0].assign(value=1e3 * data["seconds"].astype(float))
    axis = "time of one convolution (ms)"
    return drawn[[*parts.COLUMNS, "value"]], parts.dots(inputs, data, drawn, WAYS, axis, {}, 3)
