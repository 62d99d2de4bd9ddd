"""Table and bars of whole trainings: their times to an accuracy, beside a paper's."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import times
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import (
    NOTHING_MEASURED,
    environment_labels,
    machine_name,
    origin,
    significant,
)

COLUMNS = ["source", "network", "device", "group", "framework", "label", "seconds", "low", "high"]
COLUMNS += ["variant", "status", "reason"]
PANEL_INCHES = 3.4
HATCHES = ("", "//", "..", "xx", "\\\\", "oo")
WIDTH = 0.82  # of a group, whose place is 1 wide
HEADROOM = 1.18
LEGEND_LETTERS = 110  # of a legend's line that fit the figure's width
KEY_LETTERS = 6  # as wide as a key and the space around it


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    inputs.page.notes[:0] = inputs.trained.notes
    return times.build(inputs, inputs.trained.times)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the data behind the figure (COLUMNS; seconds) and the figure: the paper's bars filled, ours outlined.

    The entry says which `networks` and kind of `device`; other data and other networks have panels of their own.
    """
    frameworks, artefact = inputs.frameworks, inputs.entry
    data = pd.DataFrame([*_theirs(inputs), *_ours(inputs)], columns=COLUMNS)
    timed = data[data["seconds"].notna()]
    parts = list(dict.fromkeys(timed["variant"].fillna("")))
    own_axes = {"sharex": False, "sharey": False}
    with figures.panels(len(parts), PANEL_INCHES, 1.2, **own_axes) as (drawing, panels):
        for axes, part in zip(panels, parts, strict=True):
            _draw(axes, timed[timed["variant"].fillna("") == part], frameworks)
            axes.set_xlabel("threads" if artefact["device"] == "cpu" else "data set")
            axes.set_ylabel(f"{artefact['quantity'].lower()} (s), less is better")
            axes.grid(visible=False, axis="x")
            axes.set_title(f"Here, {part}" if part else "")
        is_ours = (timed["source"] == "ours").any()
        title = f"{artefact['title']}{'' if is_ours else ', as printed'}"
        figures.headings(panels[0], title, [artefact["caption"]])
        legends = [axes.get_legend_handles_labels() for axes in panels]
        named = [each for legend in legends for each in zip(*legend, strict=True)]
        keys = [handle for handle, label in named if label]
        longest = max(len(label) for _, label in named)
        columns = min(4, len(keys), max(1, LEGEND_LETTERS // (longest + KEY_LETTERS)))
        words = "Filled: the paper's. " + ("Outlined: ours." if is_ours else NOTHING_MEASURED)
        figures.caption(drawing, words, _notes(inputs, data), keys, columns)
    return data, drawing


def _theirs(inputs: Inputs) -> list[dict[str, Any]]:
    paper, artefact = inputs.catalogue, inputs.entry
    return [
        row | {"group": str(row["threads"] or paper["labels"][row["network"]])}
        for row in common.printed_rows(inputs)
        if row["network"] in artefact["networks"] and row["device"] == artefact["device"]
    ]


def _ours(inputs: Inputs) -> list[dict[str, Any]]:
    cells, artefact = inputs.trained.times.cells, inputs.entry
    is_here = cells["network"].isin(artefact["networks"]) & (cells["device"] == artefact["device"])
    here, labels = cells[is_here], inputs.catalogue.get("labels", {})
    several = here["platform"].nunique() > 1
    names, on_cpu = environment_labels(inputs.frameworks, here), artefact["device"] == "cpu"
    rows = []
    for name, row in zip(names, here.to_dict("records"), strict=True):
        where = f"here on {machine_name(row['platform'])}" if several else "here"
        group = str(row["threads"]) if on_cpu else labels[row["network"]]
        named = {"source": "ours", "group": group, "label": f"{name}, {where}"}
        rows.append({name: row[name] for name in COLUMNS if name in row} | named)
    return rows


def _draw(axes: Axes, data: pd.DataFrame, frameworks: Frameworks) -> None:
    groups = list(dict.fromkeys(data["group"]))
    groups = sorted(groups, key=int) if all(group.isdigit() for group in groups) else groups
    series = data.groupby(["source", "framework", "label"], sort=False)
    width = WIDTH / len(series)
    for at, ((source, framework, label), line) in enumerate(series):
        shift = (at - (len(series) - 1) / 2) * width
        colour, theirs = frameworks[framework].colour, source == "paper"
        style: dict[str, Any] = {"facecolor": colour if theirs else "white"}
        style |= {"edgecolor": "white" if theirs else colour, "linewidth": 0 if theirs else 1.5}
        bars = axes.bar(
            [groups.index(group) + shift for group in line["group"]],
            line["seconds"],
            width * 0.94,
            label=label,
            hatch=HATCHES[at % len(HATCHES)],
            zorder=3,
            **style,
        )
        seconds = line["seconds"]
        texts = [significant(value) if value < 1000 else f"{value:,.0f}" for value in seconds]
        axes.bar_label(bars, texts, rotation=90, padding=3, fontsize=7, color="#333333")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0, data["seconds"].max() * HEADROOM)


def _notes(inputs: Inputs, data: pd.DataFrame) -> list[str]:
    measured = inputs.trained.times
    table, *places = reversed(inputs.entry["sources"])
    notes = [
        f"Filled: {table} of {inputs.catalogue['short']}; their {', '.join(places)} shows the same numbers as a "
        "picture."
    ]
    if measured.cells.empty:
        return notes
    missing = data[data["seconds"].isna()]
    notes += curves.not_drawn(missing, lambda row: row["label"], at="group")
    return [*notes, *origin(measured)]
