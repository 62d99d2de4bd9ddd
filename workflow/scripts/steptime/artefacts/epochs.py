"""The table of epochs: how many of them, and how many seconds, each framework takes to an accuracy, over several
seeds.
"""

import pandas as pd

from steptime.artefacts.inputs import Frameworks
from steptime.artefacts.trained import CELL, Trained
from steptime.render.tables import DASH, Entry, Page
from steptime.render.words import environment_label, facts, plural, significant, status_reason
from worker.statistics import median

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


def build(
    trained: Trained, frameworks: Frameworks, page: Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, and of each of SPREAD its median, `least_` and `most_` over the seeds) and the layout.

    `epochs` and `seconds` are those to the accuracy, over the seeds that reached it; `accuracy` is that after the last
    epoch of every seed, `epoch_seconds` the median epoch of each, `feed_share` the share of the time in which images
    were drawn.
    """
    modes = trained.runs.groupby("framework")["adapter_mode"].nunique().gt(1).to_dict()
    labels, rows = list(dict.fromkeys(trained.runs["label"])), []
    for _, runs in trained.runs.groupby(CELL, sort=False, dropna=False):
        first = runs.iloc[0].to_dict()
        reached = runs[runs["status"] == "ok"]
        failed = runs[~runs["status"].isin(["ok"])]
        row = {name: first[name] for name in [*CELL, "label", "target_accuracy"]}
        row |= {
            "seeds": len(runs),
            "reached": len(reached),
            "status": "ok" if len(reached) else first["status"],
        }
        row["reason"] = "" if failed.empty else failed.iloc[0]["reason"]
        row["environment_label"] = environment_label(frameworks, first, modes[first["framework"]])
        own = trained.epochs[trained.epochs["key"].isin(runs["key"])]
        by_seed = own.groupby("key", sort=False)
        values = {
            "epochs": reached["epochs"],
            "seconds": reached["seconds"],
            "epoch_seconds": by_seed["seconds"].median(),
            "accuracy": by_seed["accuracy"].last(),
            "feed_share": by_seed["feed_seconds"].sum() / by_seed["seconds"].sum(),
            "host_joules": runs["host_energy_joules"].dropna(),
            "peak_memory_bytes": runs["peak_memory_bytes"].dropna(),
        }
        for name in SPREAD:
            found = [float(value) for value in values[name]]
            row |= (
                {name: median(found), f"least_{name}": min(found), f"most_{name}": max(found)}
                if found
                else {}
            )
        rows.append(row)
    columns = [*COLUMNS, *(f"{part}{name}" for name in SPREAD for part in ("", "least_", "most_"))]
    rows.sort(
        key=lambda row: (
            labels.index(row["label"]),
            frameworks[row["framework"]].order,
            row["platform"],
            row["threads"],
        )
    )
    data = pd.DataFrame(rows, columns=columns)
    page.facts = facts(trained.times)
    page.notes = [
        "Median over the seeds, and from the least to the most of them where they differ. Epochs and seconds count "
        "only seeds that reached the accuracy, on the test images; how many did stands beside. Judging is not in "
        "the seconds. Start values and the order of the images are the same in every framework, by seed; the masks "
        "of dropout are each framework's own.",
        *trained.notes,
        *page.notes,
        f"All epochs: {trained.times.source}; one file for each training: results/training/.",
    ]
    return data, _layout(data)


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
