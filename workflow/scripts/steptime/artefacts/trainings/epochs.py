"""Table of epochs and seconds to an accuracy over several seeds, and figure of the accuracy against the time."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from steptime.artefacts import curves, over_seeds
from steptime.artefacts.inputs import Inputs
from steptime.merge.trainings import CELL, judged
from steptime.render import figures
from steptime.render.columns import Column, columns
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import environment_labels, facts, why

COLUMNS = [*CELL, "label", "environment_label", "target_accuracy", "seeds", "reached"]
COLUMNS += ["status", "reason"]
TYPES = {"dataset_label": TEXT, "seeds": COUNT, "reached": COUNT}
SPREAD = ["epochs", "epoch_seconds", "seconds", "accuracy", "feed_share", "host_joules"]
SPREAD += ["peak_memory_bytes"]
SHOWN = [
    Column("Accuracy asked for", "target_accuracy", lambda share: f"{100 * share:g} %"),
    Column(
        "Seeds that reached it",
        lambda row: f"{row['reached']} of {row['seeds']}",
        remarks=lambda row: [why(row)] if row["reason"] else [],
    ),
    over_seeds.column("Epochs to it", "epochs", lambda count: f"{count:g}"),
    over_seeds.column("Seconds to it", "seconds"),
    over_seeds.column("Seconds of an epoch", "epoch_seconds"),
    over_seeds.column("Accuracy at the end", "accuracy", lambda share: f"{100 * share:.2f} %"),
    over_seeds.column("Share of feeding", "feed_share", lambda share: f"{100 * share:.1f} %"),
    over_seeds.column("Peak memory", "peak_memory_bytes", over_seeds.gibibytes),
]
CURVE = ["label", "environment", "mode", "platform", "threads", "seed", "epoch", "elapsed"]
CURVE += ["accuracy"]
PANEL_INCHES = 2.6


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; of each of SPREAD the median, `least_` and `most_` over the seeds) and the
    layout.

    `epochs` and `seconds` are those to the accuracy, over the seeds that reached it. `accuracy` is that after the last
    epoch that all seeds have; `feed_share` is the share of the time in which images were drawn.
    """
    trained = judged(inputs.trained)
    rows = []
    for row, runs, own in over_seeds.by_cell(trained, inputs.frameworks):
        reached = runs[runs["status"] == "ok"]
        failed = runs[runs["status"] != "ok"]
        row["reached"] = len(reached)
        row["status"] = "ok" if len(reached) else runs.iloc[0]["status"]
        row["reason"] = "" if failed.empty else failed.iloc[0]["reason"]
        by_seed = own.groupby("key", sort=False)
        values = {
            "epochs": reached["epochs"],
            "seconds": reached["seconds"],
            "epoch_seconds": by_seed["seconds"].median(),
            "accuracy": by_seed["accuracy"].last(),
            "feed_share": by_seed["feed_seconds"].sum() / by_seed["seconds"].sum(),
            "host_joules": runs["host_energy_joules"],
            "peak_memory_bytes": runs["peak_memory_bytes"],
        }
        rows.append(row | over_seeds.spread(values))
    data = pd.DataFrame(rows, columns=over_seeds.with_spreads(COLUMNS, SPREAD))
    over_seeds.describe(
        inputs,
        trained,
        "Median over the seeds, and from the least to the most of them where they differ. Epochs and seconds count "
        "only seeds that reached the accuracy, on the test images; how many did is beside. Judging is not in "
        "the seconds. Start values and the order of the images are the same in every framework, by seed; the masks "
        "of dropout are each framework's own.",
    )
    return data, columns(data, SHOWN, over_seeds.HERE)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the data behind the figure (CURVE; seconds until the end of an epoch) and the figure."""
    trained = judged(inputs.trained)
    names = environment_labels(inputs.frameworks, trained.epochs)
    data = trained.epochs.assign(runner=names)
    drawn = data[data["threads"] == data["platform"].map(trained.drawn_threads)]
    styles = curves.styles_of(drawn, inputs.frameworks, "runner")
    labels = list(dict.fromkeys(trained.runs["label"]))
    dashed: dict[str, Any] = {"color": figures.GREY, "linewidth": 1, "linestyle": "--"}
    with figures.panels(len(labels), PANEL_INCHES, 1.6, sharex=False) as (drawing, panels):
        for axes, label in zip(panels, labels, strict=True):
            own = drawn[drawn["label"] == label]
            curves.draw(axes, own, "elapsed", "accuracy", styles, "runner", ["seed"])
            axes.axhline(own["target_accuracy"].max(), **dashed)
            axes.set_title(label, fontsize=9)
            axes.set_xlim(left=0)
            axes.set_ylabel("accuracy on test images")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        panels[-1].set_xlabel("seconds of training, without judging")
        figures.title(drawing, inputs.entry["title"])
        names = environment_labels(inputs.frameworks, trained.runs)
        failed = trained.runs.assign(runner=names)[trained.runs["epochs"] == 0]
        words = f"A line for each seed, a mark for each epoch; {curves.threads_drawn(drawn)}."
        missing = curves.not_drawn(failed, lambda row: f"{row['runner']}, {row['label']}")
        notes = [*missing, *facts(trained.times)]
        handles = [*curves.keys(styles), figures.key("accuracy asked for", **dashed)]
        figures.caption(drawing, words, notes, handles, 4)
    return data[CURVE], drawing
