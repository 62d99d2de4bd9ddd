"""Epochs and seconds to an accuracy over several seeds: as a table, and as a figure against the time."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import (
    CELL,
    Trained,
    by_cell,
    judged,
    lines,
    modes_of,
    read,
    runner,
    spread,
)
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, Entry
from steptime.render.words import facts, plural, significant, status_reason

COLUMNS = [
    *CELL,
    "label",
    "environment_label",
    "target_accuracy",
    "seeds",
    "reached",
    "status",
    "reason",
]
SPREAD = [
    "epochs",
    "epoch_seconds",
    "seconds",
    "accuracy",
    "feed_share",
    "host_joules",
    "peak_memory_bytes",
]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, and of each of SPREAD its median, `least_` and `most_` over the seeds) and the layout.

    `epochs` and `seconds` are those to the accuracy, over the seeds that reached it; `accuracy` is that after the last
    epoch of every seed, `epoch_seconds` the median epoch of each, `feed_share` the share of the time in which images
    were drawn.
    """
    trained, frameworks = judged(read(inputs.paths("trainings")[0])), inputs.frameworks
    page = inputs.page
    rows = []
    for row, runs, own in by_cell(trained, frameworks):
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
        rows.append(row | spread(values))
    columns = [*COLUMNS, *(f"{part}{name}" for name in SPREAD for part in ("", "least_", "most_"))]
    data = pd.DataFrame(rows, columns=columns)
    page.facts = facts(trained.times)
    page.notes = [
        "Median over the seeds, and from the least to the most of them where they differ. Epochs and seconds count "
        "only seeds that reached the accuracy, on the test images; how many did stands beside. Judging is not in "
        "the seconds. Start values and the order of the images are the same in every framework, by seed; the masks "
        "of dropout are each framework's own.",
        *trained.notes,
        *page.notes,
        f"All epochs: {trained.times.source}; one file for each training: results/cells/.",
    ]
    return data, _layout(data)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The data behind the figure (CURVE_COLUMNS; seconds of training until the end of an epoch) and the figure.

    Of several numbers of threads, one of each platform is drawn (`Trained.drawn_threads`); the data have all.
    """
    trained, frameworks, artefact = (
        judged(read(inputs.paths("trainings")[0])),
        inputs.frameworks,
        inputs.entry,
    )
    data = trained.epochs.reindex(
        columns=[*CURVE_COLUMNS, "framework", "target_accuracy", "device"]
    )
    modes = modes_of(data)
    data["runner"] = [runner(row, modes) for row in data.to_dict("records")]
    drawn = data[data["threads"] == data["platform"].map(trained.drawn_threads)]
    looks = lines(drawn)
    labels = list(dict.fromkeys(trained.runs["label"]))
    look = {"sharex": False, "squeeze": False}
    with figures.canvas(len(labels), 1, 1.6 + PANEL_INCHES * len(labels), **look) as (
        drawing,
        grid,
    ):
        for axes, label in zip(grid[:, 0], labels, strict=True):
            own = drawn[drawn["label"] == label]
            for (name, _), line in own.groupby(["runner", "seed"], sort=False):
                framework, style = looks[name]
                axes.plot(
                    line["elapsed"],
                    line["accuracy"],
                    **frameworks[framework].look,
                    linestyle=style,
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
        figures.title(drawing, artefact["title"])
        figures.notes_below(drawing, _notes(trained, drawn), _keys(drawn, frameworks), 4)
    return data[CURVE_COLUMNS], drawing


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    body = []
    for row in data.to_dict("records"):
        missed = (status_reason(row["status"], row["reason"]),) if row["reason"] else ()
        body.append(
            [
                Entry(f"{100 * row['target_accuracy']:g} %"),
                Entry(f"{row['reached']} of {row['seeds']}", missed),
                _entry(row, "epochs", lambda value: f"{value:g}"),
                _entry(row, "seconds", significant),
                _entry(row, "epoch_seconds", significant),
                _entry(row, "accuracy", lambda value: f"{100 * value:.2f} %"),
                _entry(row, "feed_share", lambda value: f"{100 * value:.1f} %"),
                _entry(row, "peak_memory_bytes", lambda value: f"{value / 2**30:.2f} GiB"),
            ]
        )
    places = [
        f"{row['platform']}, {plural(row['threads'], 'thread')}" for row in data.to_dict("records")
    ]
    index = pd.MultiIndex.from_arrays(
        [data["label"], data["environment_label"], places], names=["Network", "Framework", "Here"]
    )
    columns = ["Accuracy asked for", "Seeds that reached it", "Epochs to it", "Seconds to it"]
    columns += ["Seconds of an epoch", "Accuracy at the end", "Share of feeding", "Peak memory"]
    return pd.DataFrame(body, index=index, columns=columns, dtype=object)


def _entry(row, name, text):
    value, least, most = row[name], row[f"least_{name}"], row[f"most_{name}"]
    if pd.isna(value):
        return Entry(DASH, (status_reason(row["status"], row["reason"]),))
    alone = text(least) == text(most)
    return Entry(text(value) if alone else f"{text(value)} ({text(least)} to {text(most)})")


CURVE_COLUMNS = [
    "label",
    "environment",
    "mode",
    "platform",
    "threads",
    "seed",
    "epoch",
    "elapsed",
    "accuracy",
]
PANEL_INCHES = 2.6


def _keys(drawn: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    return [
        figures.key(name, **frameworks[framework].look, linestyle=style)
        for name, (framework, style) in lines(drawn).items()
    ] + [figures.key("accuracy asked for", color=figures.GREY, linewidth=1, linestyle="--")]


def _notes(trained: Trained, drawn: pd.DataFrame) -> list[str]:
    threads = "; ".join(
        f"{platform}: {plural(int(count), 'thread')}"
        for platform, count in drawn.groupby("platform")["threads"].max().items()
    )
    failed, modes = trained.runs[trained.runs["epochs"] == 0], modes_of(trained.runs)
    missing = [
        f"Not drawn: {runner(row, modes)}, {row['label']} ({status_reason(row['status'], row['reason'])})."
        for row in failed.drop_duplicates(["environment", "mode", "label"]).to_dict("records")
    ]
    return [
        f"A line for each seed, a mark for each epoch; {threads}.",
        *missing,
        " ".join(facts(trained.times)),
    ]
