"""Table and figure of trainings in which one number of a network varies: hidden nodes, or the bound of start values."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from steptime import networks
from steptime.artefacts import common, curves, over_seeds
from steptime.artefacts.inputs import Inputs
from steptime.merge.trainings import in_step
from steptime.render import figures
from steptime.render.columns import Column, columns
from steptime.render.tables import COUNT
from steptime.render.words import count, mark_notes, marked, plural

COLUMNS = ["network", "varied", "label", "parameters", "framework", "environment", "mode"]
COLUMNS += ["environment_label", "platform", "threads", "device", "epochs", "status", "reason"]
COLUMNS += ["marks"]
TYPES = {"parameters": COUNT}
# What is shown over the seeds, and drawn.
SPREAD = {
    "accuracy": over_seeds.column(
        "Right on test images", "accuracy", lambda share: f"{100 * share:.2f} %"
    ),
    "test_loss": over_seeds.column("Loss on test images", "test_loss"),
    "epoch_seconds": over_seeds.column("Seconds of an epoch", "epoch_seconds", remarks=marked),
}
SHOWN = [Column("Parameters", "parameters", count), *SPREAD.values()]
PANEL_INCHES = 2.3


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS, and spreads of SPREAD) after the last epoch of all seeds, and the layout."""
    runs = inputs.trained.runs
    numbers = inputs.entry["varied"]
    rows = []
    trained = inputs.trained.only(runs[common.whole(runs)["network"].isin(list(numbers))])
    shared = in_step(trained)
    most = int(shared["epoch"].max()) if len(shared) else 0
    for row, runs, epochs in over_seeds.by_cell(trained, inputs.frameworks):
        name = runs.iloc[0]["variant"] or row["network"]
        row |= {"network": name, "varied": float(numbers[name])}
        row |= {"epochs": most, "status": "ok", "reason": ""}
        row["parameters"] = networks.count_parameters(networks.specify(name, inputs.networks))
        row["marks"] = over_seeds.marks_of(runs)
        own = shared[shared["key"].isin(epochs["key"])]
        if own.empty:
            row |= {name: runs.iloc[0][name] for name in ("status", "reason")}
        by_seed = own.groupby("key", sort=False)
        values = {name: by_seed[name].last() for name in ("accuracy", "test_loss")}
        rows.append(
            row | over_seeds.spread(values | {"epoch_seconds": by_seed["seconds"].median()})
        )
    data = pd.DataFrame(rows, columns=over_seeds.with_spreads(COLUMNS, SPREAD))
    data = data.sort_values("varied", kind="stable", ignore_index=True)
    over_seeds.describe(
        inputs,
        trained,
        f"After {plural(most, 'epoch')} of plain stochastic gradient descent, as many as every training had that did "
        f"not fail; on {' and '.join(dict.fromkeys(trained.runs['dataset_label']))}. Median over the seeds, and from "
        "the least to the most of them where they differ.",
    )
    index: dict[str, Any] = {inputs.entry["quantity"]: lambda row: f"{row['varied']:g}"}
    index |= {name: over_seeds.HERE[name] for name in ("Framework", "Here")}
    return data, columns(data, SHOWN, index)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: a panel for each of SPREAD against the number that varies."""
    data = common.of_most_threads(inputs.table[0])
    styles = curves.styles_of(data, inputs.frameworks, "environment_label")
    with figures.panels(len(SPREAD), PANEL_INCHES, 1.2, sharey=False) as (drawing, panels):
        for axes, (name, column) in zip(panels, SPREAD.items(), strict=True):
            known = data[data[name].notna()]
            curves.draw(axes, known, "varied", name, styles, "environment_label")
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
        names = {"network": "network_label", "environment_label": "framework_label"}
        marks = mark_notes(data.rename(columns=names))
        notes = [*inputs.page.notes, *marks, *inputs.page.facts]
        words = figures.starred(data, f"After {plural(int(data['epochs'].max()), 'epoch')} each.")
        figures.stars(seconds, data[data["epoch_seconds"].notna()], "varied", "epoch_seconds")
        figures.caption(drawing, words, notes, curves.keys(styles), 3)
    return data, drawing
