"""The figure of time per mini-batch against the number of devices, in parts of the time on one device."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import curves
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plan.cell import without
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import environment_labels, machine_name, origin, plural, significant

COLUMNS = ["source", "framework", "label", "network", "platform", "devices", "relative_time"]
ALIKE = without("devices", "exchange")
NOT_HERE = "Here no result on several devices is measured: `devices` of a grid asks for it."


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows behind the figure (COLUMNS) and the figure: by how many percent devices shorten the time."""
    frameworks, artefact = inputs.frameworks, inputs.entry
    data = pd.DataFrame([*_theirs(inputs), *_ours(inputs.measured, frameworks)], columns=COLUMNS)
    most = int(data["devices"].max())
    with figures.canvas() as (drawing, axes):
        figures.batch_axis(axes, sorted(set(data["devices"])))
        axes.set_xlim(0.9, most * 1.12)
        axes.set_xlabel("devices")
        axes.set_ylabel("time per mini-batch (1 on one device), less is better")
        axes.set_ylim(0, 1.12 * max(1.0, data["relative_time"].max()))
        even: dict[str, Any] = {"color": figures.GREY, "linestyle": ":"}
        axes.plot([1, most], [1, 1 / most], **even, zorder=2)
        keys = [figures.key("as many times faster as there are devices", **even)]
        keys += _lines(axes, data, frameworks)
        is_ours = (data["source"] == "ours").any()
        title = f"{artefact['title']}{'' if is_ours else ', as printed'}"
        figures.headings(axes, title, [artefact["caption"]])
        words = f"{_printed(inputs)} {'Outlined, dashed: ours.' if is_ours else NOT_HERE}"
        figures.caption(drawing, words, _notes(inputs) if is_ours else [], keys, 2)
    return data, drawing


def _theirs(inputs: Inputs) -> list[dict[str, Any]]:
    return [
        {
            "source": "paper",
            "framework": row["framework"],
            "label": inputs.frameworks[row["framework"]].label,
            "devices": devices,
            "relative_time": relative,
        }
        for row in inputs.printed.to_dict("records")
        for devices, relative in ((1, 1.0), (2, 1 - row["number"] / 100))
    ]


def _ours(measured: Measured, frameworks: Frameworks) -> list[dict[str, Any]]:
    timed = measured.cells[measured.cells["seconds"].notna()]
    # Two versions of one framework are two lines.
    timed = timed.assign(label=environment_labels(frameworks, timed))
    rows = []
    for _, line in timed.groupby(ALIKE, sort=False, dropna=False):
        alone, several = line[line["devices"] == 1], line[line["devices"] > 1]
        for exchange, sharing in several.groupby("exchange") if len(alone) else ():
            points = pd.concat([alone, sharing]).sort_values("devices")
            for row in points.to_dict("records"):
                words = [row["label"], row["network"], machine_name(row["platform"])]
                words.append(plural(row["threads"], "thread"))
                if exchange != "sync":
                    words.append(exchange)
                time = row["seconds"] / alone["seconds"].iloc[0]
                known = {"source": "ours", "label": ", ".join(words), "relative_time": time}
                rows.append(row | known)
    return rows


def _printed(inputs: Inputs) -> str:
    short, (place, *_) = inputs.catalogue["short"], inputs.entry["sources"]
    return f"Filled, solid: GPUs, by the text of {short}; its {place} has no numbers."


def _notes(inputs: Inputs) -> list[str]:
    cells = inputs.measured.cells
    lacking = cells[cells["seconds"].isna() & (cells["devices"] > 1)]
    lacking = lacking.assign(label=environment_labels(inputs.frameworks, lacking))
    return [
        "On CPUs a device is a process with CPUs of its own, and the threads are those of each.",
        *curves.not_drawn(
            lacking,
            lambda row: f"{row['label']}, {plural(row['devices'], 'device')} {row['exchange']}",
        ),
        *origin(inputs.measured),
    ]


def _lines(axes: Axes, data: pd.DataFrame, frameworks: Frameworks) -> list[Any]:
    """Draws a line for each label; returns the legend's keys, with the change of the time on the most devices."""
    keys = []
    turns: dict[str, int] = {}
    for (source, label), line in data.groupby(["source", "label"], sort=False):
        name = line["framework"].iloc[0]
        if source == "ours":
            # Dashed and outlined, each version in dashes of its own.
            turns[name] = turns.get(name, 0) + 1
        style = frameworks[name].line(turns[name] if source == "ours" else 0)
        axes.plot(line["devices"], line["relative_time"], **style, zorder=3)
        end = line["relative_time"].iloc[-1]
        words = f"{label}: {'+' if end > 1 else '−'}{significant(100 * abs(end - 1), 2)} %"
        keys.append(figures.key(words, **style))
    return keys
