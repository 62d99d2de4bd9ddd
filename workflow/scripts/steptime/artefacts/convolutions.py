"""The convolutions of a network, in each way in which a framework lets one choose to compute them."""

from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import parts
from steptime.artefacts.inputs import Inputs
from steptime.render import figures
from steptime.render.columns import laid_out
from steptime.render.tables import Entry
from steptime.render.words import facts, raw_data

WAYS = {
    "own choice": ("o", "#222222", "the framework's own choice"),
    "direct": ("s", "#0072B2", "direct"),
    "im2col": ("D", "#E69F00", "im2col: unfolded, then a product"),
    "winograd": ("^", "#009E73", "Winograd"),
    "fft": ("v", "#D55E00", "FFT"),
}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (parts.COLUMNS) and the layout."""
    data = parts.read(inputs)
    inputs.page.facts = facts(inputs.measured)
    inputs.page.notes = [
        "Milliseconds of one convolution, forward, without its bias; the fastest of a layer and place is bold. A "
        "convolution by FFT or Winograd also transforms its weights, which change with each step of a training.",
        parts.off_by(data),
        *inputs.page.notes,
        raw_data(inputs.measured),
    ]
    return data[parts.COLUMNS], _layout(data)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn, those of the most threads of a platform, and the drawing."""
    data = parts.read(inputs)
    most = data.groupby("platform")["threads"].transform("max")
    data = data[data["threads"] == most]
    drawn = data[data["repeats"] > 0].assign(value=1e3 * data["seconds"].astype(float))
    place = ", ".join(parts.column_of(place) for place in parts.places_of(data))
    drawing, handles = parts.dots(
        drawn, WAYS, f"{inputs.entry['title']}: {place}", "time of one convolution (ms)", {}
    )
    notes = [inputs.entry["caption"], *parts.remarks(data), *facts(inputs.measured)]
    figures.notes_below(drawing, [*notes, raw_data(inputs.measured)], handles, 3)
    return drawn[[*parts.COLUMNS, "value"]], drawing


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    places = parts.places_of(data)
    fastest = data.groupby(["part", "platform", "threads"])["seconds"].min()
    columns = [(parts.column_of(place), way) for place in places for way in WAYS]
    lines: dict[tuple[str, str], dict[Any, Entry]] = {}
    for (part, label, place), ways in parts.by_way(data).items():
        for way in WAYS:
            row = ways.get(way)
            text = parts.milliseconds(row) if row else ""
            best = row is not None and row["seconds"] == fastest[(part, *place)]
            made = replace(parts.entry(row, ways.get(""), text), best=best)
            lines.setdefault((part, label), {})[parts.column_of(place), way] = made
    return laid_out(lines.items(), ["Layer", "Framework"], columns)
