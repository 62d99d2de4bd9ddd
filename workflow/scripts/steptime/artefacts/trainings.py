"""Whole trainings: their times to an accuracy beside a paper's, as a table and as bars."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import curves, times
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.seeds import modes_of, runner
from steptime.merge.measured import Measured
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import NOTHING_MEASURED, facts, raw_data, significant

COLUMNS = ["source", "network", "device", "group", "framework", "label", "seconds", "low", "high"]
COLUMNS += ["variant", "status", "reason"]
PANEL_INCHES = 3.4
HATCHES = ("", "//", "..", "xx", "\\\\", "oo")
WIDTH = 0.82  # of a group, whose place is 1 wide
HEADROOM = 1.18
LEGEND_LETTERS = 110  # of a legend's line that fit the figure's width
KEY_LETTERS = 6  # as wide as a key and the space around it


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    inputs.page.notes[:0] = inputs.trained.notes
    return times.build(inputs, inputs.trained.times)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The data behind the figure (COLUMNS; seconds) and the figure; printed bars are filled, ours are outlined.

    The artefact's entry says which `networks` and which kind of `device`; CPUs are grouped by threads, GPUs by network.
    What is trained on other data, or is another network, is in a panel of its own with an axis of its own.
    """
    measured, printed, paper = inputs.trained.times, inputs.printed, inputs.catalogue
    frameworks, artefact = inputs.frameworks, inputs.entry
    data = pd.DataFrame(
        [
            *_theirs(printed, paper, frameworks, artefact),
            *_ours(measured, paper, frameworks, artefact),
        ],
        columns=COLUMNS,
    )
    parts = list(dict.fromkeys(data["variant"].fillna("")))
    own_axes = {"sharex": False, "sharey": False}
    with figures.panels(len(parts), PANEL_INCHES, 1.2, **own_axes) as (drawing, panels):
        for axes, part in zip(panels, parts, strict=True):
            _draw(axes, data[data["variant"].fillna("") == part], frameworks)
            axes.set_xlabel("threads" if artefact["device"] == "cpu" else "data set")
            axes.set_ylabel(f"{artefact['quantity'].lower()} (s), less is better")
            axes.grid(visible=False, axis="x")
            axes.set_title(f"Here, {part}" if part else "")
        is_ours = (data["source"] == "ours").any()
        title = f"{artefact['title']}{'' if is_ours else ', as printed'}"
        figures.headings(panels[0], title, [artefact["caption"]])
        legends = [axes.get_legend_handles_labels() for axes in panels]
        named = [each for legend in legends for each in zip(*legend, strict=True)]
        keys = [handle for handle, label in named if label]
        longest = max(len(label) for _, label in named)
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
            "variant": "",
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
        {name: row[name] for name in COLUMNS if name in row}
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
    # Of what failed alone there is none.
    highest = data["seconds"].fillna(0).max() or 1
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
    notes += curves.not_drawn(missing, lambda row: row["label"], at="group")
    return [*notes, " ".join(["Outlined: measured here.", *facts(measured)]), raw_data(measured)]
