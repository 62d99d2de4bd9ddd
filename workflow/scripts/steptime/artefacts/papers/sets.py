"""Table and figure of the sets into which a paper sorts its frameworks, and of what runs here of each framework."""

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts.inputs import Inputs
from steptime.render import figures
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import facts, plural, why

COLUMNS = ["set", "framework", "label", "environments", "timed", "cells", "networks", "why_not"]
TYPES = dict.fromkeys(["set", "environments", "networks", "why_not"], TEXT)
TYPES |= {"timed": COUNT, "cells": COUNT}
NOT_ASKED = "it is in no environment of this grid"
ROW_INCHES = 0.3


def _here(row: Row) -> str | None:
    return row["environments"] if row["timed"] else None


def _timed(row: Row) -> str | None:
    return f"{row['timed']} of {row['cells']}" if row["cells"] else None


SHOWN = [
    Column("Runs here", _here, str, lambda row: row["why_not"], "ours words"),
    Column("Results timed", _timed, str, lambda row: row["why_not"], "ours"),
    Column("Networks timed", "networks", kind="ours words long"),
]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    data, page = rows_of(inputs), inputs.page
    runs = data["timed"] > 0
    page.facts = [
        f"Of {plural(len(data), 'framework')} of the paper, {int(runs.sum())} are timed in this grid.",
        *facts(inputs.measured),
    ]
    return data, columns(data, SHOWN, {"Set": "set", "Framework": "label"})


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: a column for each set, filled where a framework runs here."""
    data, frameworks = rows_of(inputs), inputs.frameworks
    sets = list(dict.fromkeys(data["set"]))
    most = int(data["set"].value_counts().max())
    with figures.canvas(1, len(sets), 0.9 + ROW_INCHES * most) as (drawing, grid):
        for axes, name in zip(grid, sets, strict=True):
            axes.set(xlim=(0, 1), ylim=(most - 0.4, -0.6))
            axes.axis("off")
            axes.set_title(f"{name}", fontsize=9.5)
            for at, row in enumerate(data[data["set"] == name].to_dict("records")):
                shown = frameworks[row["framework"]]
                style = {"markerfacecolor": shown.colour if row["timed"] else "white"}
                axes.plot(0.04, at, **shown.style, **style, linestyle="")
                axes.text(0.11, at, row["label"], va="center", fontsize=8)
                here = row["environments"] if row["timed"] else ""
                axes.text(0.56, at, here, va="center", fontsize=7, color="#6A6A6A")
        figures.title(drawing, inputs.entry["title"])
        words = "Filled: timed here, in the environments that are named. The table says why others are not."
        place = f"The paper's {inputs.entry['sources'][0]} is a picture of names."
        figures.caption(drawing, words, [place, *facts(inputs.measured)])
    return data, drawing


def rows_of(inputs: Inputs) -> pd.DataFrame:
    """Returns the tidy rows (COLUMNS; `timed` of `cells` have a time). `not_here` says why a framework is missing."""
    measured, networks, not_here = inputs.measured, inputs.networks, inputs.entry["not_here"]
    rows = []
    for row in inputs.printed.to_dict("records"):
        name = row["framework"]
        own = measured.cells[measured.cells["framework"] == name]
        timed = own[own["seconds"].notna()]
        labels = [networks[each]["label"] for each in networks if (timed["network"] == each).any()]
        failed = not_here.get(name, NOT_ASKED) if own.empty else why(own.iloc[0])
        rows.append(
            {
                "set": row["value"],
                "framework": name,
                "label": row["row"],
                "environments": ", ".join(dict.fromkeys(timed["environment"])),
                "timed": len(timed),
                "cells": len(own),
                "networks": ", ".join(labels),
                "why_not": failed if timed.empty else "",
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)
