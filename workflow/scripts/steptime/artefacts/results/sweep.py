"""Figure of time per mini-batch against mini-batch size, one line per framework and platform."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results.times import SOME_OTHER_SCRIPTS, other_scripts
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import (
    environment_labels,
    machine_name,
    mark_notes,
    origin,
    plural,
    processes,
)

COLUMNS = ["source", *IDENTITY, "framework", "label", "seconds", "low", "high", "samples"]
COLUMNS += ["repeats", "status", "reason", "marks"]
# Slowest by fastest time up to which the paper's numbers do not flatten our lines.
WIDEST_WITH_PAPER = 3000
# What is added below the times for the names at the paper's numbers, in parts of the axis above it.
ROOM = 0.27
# Statuses of what was tried and gave no time.
FAILURES = ("out_of_memory", "timeout", "crashed", "diverged")
HOLLOW: dict[str, Any] = {"markersize": 4.5, "markerfacecolor": "white", "linestyle": ""}


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the data (COLUMNS; seconds per mini-batch) and the figure; a paper's points are of GPUs alone."""
    paper, frameworks = inputs.catalogue, inputs.frameworks
    measured, artefact = inputs.measured, inputs.entry
    ours, network = _ours(measured, frameworks), artefact["network"]
    printed = [
        row
        for row in common.printed_rows(inputs)
        if row["network"] == network and row["device"] == "gpu"
    ]
    theirs = pd.DataFrame(printed, columns=COLUMNS)
    timed = ours[ours["seconds"].notna()]
    times = [timed["seconds"], timed["low"], timed["high"], theirs["seconds"]]
    everything = pd.concat(times).astype(float)
    with_paper = len(theirs) > 0 and everything.max() / everything.min() <= WIDEST_WITH_PAPER
    parts = _parts(ours, inputs)
    with figures.canvas(1, len(parts), squeeze=False) as (drawing, grid):
        shown = everything if with_paper else everything.iloc[: 3 * len(timed)]
        batches = sorted({*ours["batch"], *(theirs["batch"] if with_paper else [])})
        styles = curves.styles_of(timed, frameworks)
        handles = curves.keys(styles)
        for axes, (name, part) in zip(grid[0], parts.items(), strict=True):
            figures.batch_axis(axes, batches)
            if len(shown):
                low, high = shown.min(), shown.max()
                figures.time_axis(axes, low / (high / low) ** (ROOM if with_paper else 0), high)
            _draw(axes, part, styles, frameworks)
            figures.say(axes, name, (0, 1), (4, -11), xycoords="axes fraction", fontweight="bold")
            axes.label_outer()
        handles += _key_of_crosses(ours)
        axes = grid[0][0]
        if with_paper:
            handles += _draw_theirs(axes, theirs, paper, frameworks)
        label = inputs.networks[artefact["network"]]["label"]
        title = f"{artefact['sources'][0]}: {label}, time per mini-batch"
        figures.headings(axes, title, _platforms(measured, ours, len(theirs) > 0))
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02)}
        grid[0][-1].legend(handles=handles, labelspacing=0.7, **place)
        words = figures.starred(ours, _words(inputs, theirs) if with_paper else "")
        figures.caption(drawing, words, _notes(inputs, ours, theirs, with_paper))
    data = pd.concat([ours, theirs], ignore_index=True) if len(theirs) else ours
    return data.astype({"threads": "Int64", "samples": "Int64", "repeats": "Int64"}), drawing


def _ours(measured: Measured, frameworks: Frameworks) -> pd.DataFrame:
    cells = measured.cells
    several = {name: cells[name].nunique() > 1 for name in ("platform", "threads", "devices")}
    labels = []
    names = environment_labels(frameworks, cells)
    for name, cell in zip(names, cells.to_dict("records"), strict=True):
        on_cpu = cell["device"] == "cpu"
        parts = [name, cell["variant"]]
        parts += [machine_name(cell["platform"])] if several["platform"] else []
        parts += [plural(cell["threads"], "thread")] if several["threads"] and on_cpu else []
        parts += [plural(cell["devices"], "device")] if several["devices"] else []
        labels.append(", ".join(filter(None, parts)))
    ours = cells.assign(source="ours", label=labels, marks=cells["marks"].str.join(", "))
    return ours[COLUMNS]


def _parts(ours: pd.DataFrame, inputs: Inputs) -> dict[str, pd.DataFrame]:
    """Returns the rows of each panel by its name: versions of the paper's time, and today's; one panel where there is
    only one.

    Of the paper's time are the versions that its catalogue calls the nearest, and all released until two years after
    it.
    """
    if "releases" not in inputs.entry.get("needs", []):
        return {"": ours}
    catalogue = inputs.paths("catalogue")[0]
    nearest = {runner for each in inputs.catalogue.get("nearest", {}).values() for runner in each}
    year = int(catalogue.parent.name[-4:]) + 2
    released = ours["environment"].map(inputs.releases).fillna("9999").str[:4].astype(int)
    is_old = (ours["environment"] + "." + ours["mode"]).isin(nearest) | (released <= year)
    parts = {"of the paper's time": ours[is_old], "today's": ours[~is_old]}
    has_both = all(part["seconds"].notna().any() for part in parts.values())
    return parts if has_both else {"": ours}


def _draw(axes: Axes, ours: pd.DataFrame, styles: curves.Styles, frameworks: Frameworks) -> None:
    """Draws the lines of a panel, and a cross at the top for each mini-batch at which a framework failed."""
    timed = ours[ours["seconds"].notna()]
    for name, line in timed.groupby("label", sort=False):
        line = line.sort_values("batch")
        curves.whiskers(axes, line, "batch", "seconds", "low", "high", **styles[str(name)])
    figures.stars(axes, timed, "batch", "seconds")
    for row in _failed(ours).to_dict("records"):
        style: dict[str, Any] = {"marker": "x", "color": frameworks[row["framework"]].colour}
        axes.plot(row["batch"], 1, transform=axes.get_xaxis_transform(), clip_on=False, **style)


def _failed(ours: pd.DataFrame) -> pd.DataFrame:
    return ours[ours["seconds"].isna() & ours["status"].isin(FAILURES)]


def _key_of_crosses(ours: pd.DataFrame) -> list[Any]:
    grey: dict[str, Any] = {"marker": "x", "color": figures.GREY, "linestyle": ""}
    return [figures.key("failed", **grey)] if len(_failed(ours)) else []


def _draw_theirs(
    axes: Axes, theirs: pd.DataFrame, paper: dict[str, Any], frameworks: Frameworks
) -> list[Any]:
    names = list(theirs.loc[theirs["seconds"].notna(), "framework"].unique())
    low, high = axes.get_xlim()
    # In points as far apart in a narrow panel as in a wide one.
    spacing = 0.0285 / axes.get_position().width * math.log2(high / low)
    for place, name in enumerate(names):
        rows = theirs[(theirs["framework"] == name) & theirs["seconds"].notna()]
        # All are at one mini-batch size: side by side they can be told apart.
        x = rows["batch"].iloc[0] * 2 ** (spacing * (place - (len(names) - 1) / 2))
        colour = frameworks[name].colour
        axes.plot([x] * len(rows), rows["seconds"], color=colour, linewidth=0.8, zorder=2)
        for row in rows.to_dict("records"):
            marker = paper["platforms"][row["platform"]]["marker"]
            axes.plot(x, row["seconds"], **HOLLOW, marker=marker, color=colour, zorder=2)
        style = {"ha": "center", "va": "top", "fontsize": 7, "color": "#6A6A6A"}
        at = x, rows["seconds"].min()
        name = row["label"].split(" ")[0]
        figures.say(axes, name, at, (0, -5), rotation=90, path_effects=figures.HALO, **style)
    handles = [
        figures.key(f"\n{paper['short']}, mini-batch {theirs['batch'].iloc[0]}:", linestyle="")
    ]
    for platform in theirs["platform"].unique():
        entry = paper["platforms"][platform]
        style = {"marker": entry["marker"], "color": figures.GREY}
        handles.append(figures.key(entry["name"], **HOLLOW, **style))
    return handles


def _notes(inputs: Inputs, ours: pd.DataFrame, theirs: pd.DataFrame, with_paper: bool) -> list[str]:
    measured, short, artefact = inputs.measured, inputs.catalogue["short"], inputs.entry
    named = ours.assign(network_label=artefact["title"], framework_label=ours["label"])
    notes = curves.not_drawn(ours[ours["seconds"].isna()], lambda row: row["label"], at="batch")
    notes += mark_notes(named)
    missing = theirs[theirs["seconds"].isna()]
    notes += [f"Not printed: {reason}." for reason in missing["reason"].unique()]
    figure_place, table_place = artefact["sources"]
    notes.append(f"{figure_place} of {short} is a picture without numbers.")
    notes += other_scripts(theirs, inputs.catalogue, inputs) if with_paper else []
    if len(theirs) and not with_paper:
        notes.append(f"{table_place} of {short} is left out: its numbers would flatten our lines.")
    sizes = ", ".join(map(str, sorted({*ours["batch"]})))
    notes.append(f"Measured: mini-batch {sizes}. Others take longer: GRID=paper.")
    return [processes(measured.cells), *notes, *origin(measured)]


def _words(inputs: Inputs, theirs: pd.DataFrame) -> str:
    """Says what the paper's marks are, which are on the same axis as our lines."""
    table, short = inputs.entry["sources"][1], inputs.catalogue["short"]
    where = f"at mini-batch {theirs['batch'].iloc[0]}, set side by side"
    others = other_scripts(theirs, inputs.catalogue, inputs)
    words = [
        f"Outlined: {table} of {short}, on GPUs, {where}.",
        SOME_OTHER_SCRIPTS if others else "",
    ]
    return " ".join(filter(None, words))


def _platforms(measured: Measured, ours: pd.DataFrame, theirs_on_gpus: bool) -> list[str]:
    """Says of each platform its machine and its threads, and that it is no GPU where the paper shows GPUs."""
    lines = []
    for platform, machine in measured.platforms.items():
        rows = ours[ours["platform"] == platform]
        cpu = machine.get("cpu", {}).get("model", "")
        on_gpu = (rows["device"] == "gpu").any()
        gpus = " and ".join(dict.fromkeys(gpu["model"] for gpu in machine.get("gpus", [])))
        parts = [machine_name(platform), gpus if on_gpu else cpu]
        if not on_gpu:
            counts = sorted(rows["threads"].unique())
            word = "thread" if counts == [1] else "threads"
            parts.append(f"{', '.join(map(str, counts))} {word}")
        lines.append("on " + ", ".join(filter(None, parts)))
        if theirs_on_gpus and not on_gpu:
            has_none = "" if gpus else "this machine has no GPU; "
            lines.append(f"{has_none}the paper's figure shows GPUs")
    return lines
