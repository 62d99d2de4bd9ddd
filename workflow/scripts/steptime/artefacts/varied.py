"""What comes of trainings of one network in which one number is varied: hidden nodes, or the bound of start values."""

from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from steptime import networks
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import (
    Trained,
    by_cell,
    in_step,
    lines,
    read,
    spread,
)
from steptime.machine import interference
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, Entry
from steptime.render.words import (
    MARK_WORDS,
    count,
    facts,
    mark_notes,
    plural,
    significant,
    status_reason,
)

COLUMNS = ["network", "varied", "label", "parameters", "framework", "environment", "mode"]
COLUMNS += ["environment_label", "platform", "threads", "device", "epochs", "status", "reason"]
COLUMNS += ["marks"]
SPREAD = ["accuracy", "test_loss", "epoch_seconds"]
# Of each of SPREAD: the heading, and the number as a text.
HEADINGS: dict[str, tuple[str, Any]] = {
    "accuracy": ("Right on test images", lambda value: f"{100 * value:.2f} %"),
    "test_loss": ("Loss on test images", significant),
    "epoch_seconds": ("Seconds of an epoch", significant),
}
PANEL_INCHES = 2.3


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, and of each of SPREAD its median, `least_` and `most_` over the seeds) and the layout.

    All is after the last epoch that every training has; `varied` is the entry's number of a network.
    """
    trained = chosen(inputs)
    numbers, rows = inputs.entry["varied"], []
    shared = in_step(trained)
    common = int(shared["epoch"].max()) if len(shared) else 0
    for row, runs, epochs in by_cell(trained, inputs.frameworks):
        name = runs.iloc[0]["variant"] or row["network"]
        row |= {"network": name, "varied": float(numbers[name])}
        row |= {"epochs": common, "status": "ok", "reason": ""}
        spec = networks.specify(name, inputs.networks)
        row["parameters"] = networks.count_parameters(spec)
        disturbed = any(map(interference.disturbed, runs.to_dict("records")))
        row["marks"] = "disturbed" if disturbed else ""
        own = shared[shared["key"].isin(epochs["key"])]
        if own.empty:
            row |= {name: runs.iloc[0][name] for name in ("status", "reason")}
        by_seed = own.groupby("key", sort=False)
        values = {name: by_seed[name].last() for name in ("accuracy", "test_loss")}
        rows.append(row | spread(values | {"epoch_seconds": by_seed["seconds"].median()}))
    columns = [*COLUMNS, *(f"{part}{name}" for name in SPREAD for part in ("", "least_", "most_"))]
    data = pd.DataFrame(rows, columns=columns)
    data = data.sort_values("varied", kind="stable", ignore_index=True)
    inputs.page.facts = facts(trained.times)
    inputs.page.notes = [
        f"After {plural(common, 'epoch')} of plain stochastic gradient descent, as many as every training had that did "
        f"not fail; on {' and '.join(dict.fromkeys(trained.runs['dataset_label']))}. Median over the seeds, and from "
        "the least to the most of them where they differ.",
        *trained.notes,
        *inputs.page.notes,
    ]
    return data, _layout(data, inputs.entry["quantity"])


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing: a panel for each of SPREAD against the number that is varied."""
    data = inputs.table[0].copy()
    data["runner"] = data["environment_label"]
    data = data[data["threads"] == data.groupby("platform")["threads"].transform("max")]
    looks = lines(data)
    height = 1.2 + PANEL_INCHES * len(SPREAD)
    with figures.canvas(len(SPREAD), 1, height, sharex=True, sharey=False, squeeze=False) as (
        drawing,
        grid,
    ):
        for axes, name in zip(grid[:, 0], SPREAD, strict=True):
            for line, (framework, style) in looks.items():
                _draw(axes, data[data["runner"] == line], name, framework, style, inputs.frameworks)
            axes.set_ylabel(HEADINGS[name][0].lower())
            axes.set_xscale("log")
        accuracy, loss, seconds = grid[:, 0]
        accuracy.yaxis.set_major_formatter(PercentFormatter(1.0))
        loss.set_yscale("log")
        figures.plain_logarithms(loss.yaxis)
        seconds.set_ylim(bottom=0)
        grid[-1, 0].set_xlabel(inputs.entry["quantity"].lower())
        grid[-1, 0].set_xticks(
            values := sorted(data["varied"].unique()), [f"{x:g}" for x in values]
        )
        grid[-1, 0].minorticks_off()
        figures.title(drawing, inputs.entry["title"])
        named = data.assign(
            network_label=data["network"], framework_label=data["environment_label"]
        )
        keys = [
            figures.key(line, **inputs.frameworks[framework].look, linestyle=style)
            for line, (framework, style) in looks.items()
        ]
        figures.notes_below(
            drawing, [*inputs.page.notes, *mark_notes(named), *inputs.page.facts], keys, 3
        )
    return data.drop(columns="runner"), drawing


def chosen(inputs: Inputs) -> Trained:
    """The trainings of the networks that the entry varies."""
    trained = read(inputs.paths("trainings")[0])
    names = trained.runs["variant"].where(trained.runs["variant"] != "", trained.runs["network"])
    runs = trained.runs[names.isin(list(inputs.entry["varied"]))]
    return replace(
        trained, runs=runs, epochs=trained.epochs[trained.epochs["key"].isin(runs["key"])]
    )


def _draw(
    axes: Axes, rows: pd.DataFrame, name: str, framework: str, style: str, frameworks: Frameworks
) -> None:
    rows = rows[rows[name].notna()]
    look = frameworks[framework].look
    axes.plot(rows["varied"], rows[name], **look, linestyle=style, markersize=4)


def _layout(data: pd.DataFrame, quantity: str) -> pd.DataFrame:
    body = []
    for row in data.to_dict("records"):
        entries = [Entry(count(row["parameters"]))]
        for name, (_, text) in HEADINGS.items():
            value, least, most = row[name], row[f"least_{name}"], row[f"most_{name}"]
            if pd.isna(value):
                entries.append(Entry(DASH, (status_reason(row["status"], row["reason"]),)))
                continue
            alone = text(least) == text(most)
            shown = text(value) if alone else f"{text(value)} ({text(least)} to {text(most)})"
            marked = name == "epoch_seconds" and row["marks"]
            entries.append(Entry(shown, (MARK_WORDS[row["marks"]],) if marked else (), kind="ours"))
        body.append(entries)
    places = [
        f"{row['platform']}, {plural(row['threads'], 'thread')}" for row in data.to_dict("records")
    ]
    index = pd.MultiIndex.from_arrays(
        [[f"{number:g}" for number in data["varied"]], data["environment_label"], places],
        names=[quantity, "Framework", "Here"],
    )
    columns = ["Parameters", *(heading for heading, _ in HEADINGS.values())]
    return pd.DataFrame(body, index=index, columns=columns, dtype=object)
