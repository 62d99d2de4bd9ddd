"""The figure of accuracy against the time of training: a panel for each network, a line for each seed of each
framework.
"""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from steptime.artefacts.inputs import Frameworks
from steptime.artefacts.trained import Trained
from steptime.render import figures
from steptime.render.words import facts, plural, status_reason

COLUMNS = [
    "label",
    "environment",
    "adapter_mode",
    "platform",
    "threads",
    "seed",
    "epoch",
    "elapsed",
    "accuracy",
]
PANEL_INCHES = 2.6


def build(
    trained: Trained, frameworks: Frameworks, artefact: dict[str, Any]
) -> tuple[pd.DataFrame, Figure]:
    """The data behind the figure (COLUMNS; seconds of training until the end of an epoch) and the figure.

    Of several numbers of threads, the largest of each platform is drawn; the data have all.
    """
    data = trained.epochs.reindex(columns=[*COLUMNS, "framework", "target_accuracy", "device"])
    most = data.groupby("platform")["threads"].transform("max")
    drawn = data[data["threads"] == most]
    labels = list(dict.fromkeys(trained.runs["label"]))
    look = {"sharex": False, "squeeze": False}
    with figures.canvas(len(labels), 1, 1.6 + PANEL_INCHES * len(labels), **look) as (
        drawing,
        grid,
    ):
        for axes, label in zip(grid[:, 0], labels, strict=True):
            own = drawn[drawn["label"] == label]
            for (framework, _, _), line in own.groupby(
                ["framework", "environment", "seed"], sort=False
            ):
                shown = frameworks[framework]
                axes.plot(
                    line["elapsed"],
                    line["accuracy"],
                    marker=shown.marker,
                    color=shown.colour,
                    markersize=4,
                )
            axes.axhline(
                own["target_accuracy"].max(), color=figures.GREY, linewidth=1, linestyle="--"
            )
            axes.set_title(label, fontsize=9)
            axes.set_xlim(left=0)
            axes.set_ylabel("accuracy on test images")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        grid[-1, 0].set_xlabel("seconds of training, without judging")
        drawing.suptitle(artefact["title"], x=0.012, ha="left", fontweight="bold", fontsize=11)
        figures.notes_below(drawing, _notes(trained, drawn), _keys(drawn, frameworks), 4)
    return data[COLUMNS], drawing


def _keys(drawn: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    named = drawn.drop_duplicates("environment")[["framework", "environment"]].to_dict("records")
    return [
        Line2D(
            [],
            [],
            color=frameworks[row["framework"]].colour,
            marker=frameworks[row["framework"]].marker,
            label=row["environment"],
        )
        for row in named
    ] + [
        Line2D([], [], color=figures.GREY, linewidth=1, linestyle="--", label="accuracy asked for")
    ]


def _notes(trained: Trained, drawn: pd.DataFrame) -> list[str]:
    threads = "; ".join(
        f"{platform}: {plural(int(count), 'thread')}"
        for platform, count in drawn.groupby("platform")["threads"].max().items()
    )
    failed = trained.runs[trained.runs["epochs"] == 0]
    missing = [
        f"Not drawn: {row['environment']}, {row['label']} ({status_reason(row['status'], row['reason'])})."
        for row in failed.drop_duplicates(["environment", "label"]).to_dict("records")
    ]
    return [
        f"A line for each seed, a mark for each epoch; {threads}.",
        *missing,
        " ".join(facts(trained.times)),
    ]
