"""What comes of trainings of one network in which one number is varied: hidden nodes, or the bound of start values."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from steptime import networks
from steptime.artefacts import curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.seeds import HERE, by_cell, over_seeds, spread, with_spreads
from steptime.machine import interference
from steptime.merge.trainings import Trained, in_step
from steptime.render import figures
from steptime.render.columns import Column, columns
from steptime.render.words import count, facts, mark_notes, marked, plural

COLUMNS = ["network", "varied", "label", "parameters", "framework", "environment", "mode"]
COLUMNS += ["environment_label", "platform", "threads", "device", "epochs", "status", "reason"]
COLUMNS += ["marks"]
# What is shown over the seeds, and drawn.
SPREAD = {
    "accuracy": over_seeds(
        "Right on test images", "accuracy", lambda share: f"{100 * share:.2f} %"
    ),
    "test_loss": over_seeds("Loss on test images", "test_loss"),
    "epoch_seconds": over_seeds("Seconds of an epoch", "epoch_seconds", remarks=marked),
}
SHOWN = [Column("Parameters", "parameters", count), *SPREAD.values()]
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
    data = pd.DataFrame(rows, columns=with_spreads(COLUMNS, SPREAD))
    data = data.sort_values("varied", kind="stable", ignore_index=True)
    inputs.page.facts = facts(trained.times)
    inputs.page.notes = [
        f"After {plural(common, 'epoch')} of plain stochastic gradient descent, as many as every training had that did "
        f"not fail; on {' and '.join(dict.fromkeys(trained.runs['dataset_label']))}. Median over the seeds, and from "
        "the least to the most of them where they differ.",
        *trained.notes,
        *inputs.page.notes,
    ]
    varied = {inputs.entry["quantity"]: lambda row: f"{row['varied']:g}"}
    return data, columns(data, SHOWN, varied | {name: HERE[name] for name in ("Framework", "Here")})


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing: a panel for each of SPREAD against the number that is varied."""
    data = inputs.table[0]
    data = data[data["threads"] == data.groupby("platform")["threads"].transform("max")]
    looks = curves.looks_of(data, inputs.frameworks, "environment_label")
    with figures.panels(len(SPREAD), PANEL_INCHES, 1.2, sharey=False) as (drawing, panels):
        for axes, (name, column) in zip(panels, SPREAD.items(), strict=True):
            known = data[data[name].notna()]
            curves.draw(axes, known, "varied", name, looks, "environment_label")
            axes.set_ylabel(str(column.heading).lower())
            axes.set_xscale("log")
        accuracy, loss, seconds = panels
        accuracy.yaxis.set_major_formatter(PercentFormatter(1.0))
        loss.set_yscale("log")
        figures.plain_logarithms(loss.yaxis)
        seconds.set_ylim(bottom=0)
        seconds.set_xlabel(inputs.entry["quantity"].lower())
        values = sorted(data["varied"].unique())
        seconds.set_xticks(values, [f"{value:g}" for value in values])
        seconds.minorticks_off()
        figures.title(drawing, inputs.entry["title"])
        named = data.assign(
            network_label=data["network"], framework_label=data["environment_label"]
        )
        notes = [*inputs.page.notes, *mark_notes(named), *inputs.page.facts]
        figures.notes_below(drawing, notes, curves.keys(looks), 3)
    return data, drawing


def chosen(inputs: Inputs) -> Trained:
    """The trainings of the networks that the entry varies."""
    trained = inputs.trained
    names = trained.runs["variant"].where(trained.runs["variant"] != "", trained.runs["network"])
    runs = trained.runs[names.isin(list(inputs.entry["varied"]))]
    return replace(
        trained, runs=runs, epochs=trained.epochs[trained.epochs["key"].isin(runs["key"])]
    )
