"""Table and figure of seconds of training until a loss, on one device and on several, by how these share gradients."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.grouping import GROUPED
from steptime.artefacts import curves, over_seeds
from steptime.artefacts.common import ranks_of
from steptime.artefacts.inputs import Inputs
from steptime.merge import trainings
from steptime.merge.trainings import CELL, NOT_REACHED
from steptime.render import figures
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import (
    machine_name,
    mark_notes,
    marked,
    percent,
    plural,
    significant,
    why,
)

COLUMNS = [*CELL, "label", "environment_label", "network_label", "wanted_loss", "seeds", "reached"]
COLUMNS += ["status", "reason", "marks", "share"]
TYPES = {"dataset_label": TEXT, "seeds": COUNT, "reached": COUNT}
SPREAD = ["seconds", "epochs", "epoch_seconds", "test_loss", "staleness"]
STYLES = {"sync": "-", "async": "--", "mixed": "-."}
ALIKE = [name for name in CELL if name not in ("devices", "exchange")]


def _why(row: Row) -> str:
    """Says why a cell did not come to the loss; of a training that ran to its end, the `reason` says it alone."""
    return str(row["reason"]) if row["status"] == NOT_REACHED else why(row)


SHOWN = [
    over_seeds.column("Seconds to the loss", "seconds", why_not=_why, remarks=marked),
    Column("Of those on one device", "share", percent, kind="ratio"),
    over_seeds.column("Epochs to it", "epochs", lambda count: f"{count:g}", _why),
    over_seeds.column("Seconds of an epoch", "epoch_seconds", why_not=_why, remarks=marked),
    over_seeds.column("Loss at the end", "test_loss", why_not=_why),
    Column("Missed updates", "staleness", significant, kind="ours"),
    Column("Seeds that reached it", lambda row: f"{row['reached']} of {row['seeds']}"),
]
INDEX: dict[str, Any] = {
    "Network": "network_label",
    "Framework": "environment_label",
    "Devices": lambda row: f"{machine_name(row['platform'])}, {ranks_of(row)}",
}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; of each of SPREAD the median, `least_` and `most_` over the seeds) and the
    layout.

    `seconds` and `epochs` end with the first epoch after which the loss on test images is at most the entry's `loss`,
    over the seeds that came to it. `share` is `seconds` divided by those of one device alone.
    """
    trained, wanted = trainings.read(inputs.paths("cells")[0]), inputs.entry["loss"]
    rows = [
        row | _reached(runs, epochs, wanted)
        for row, runs, epochs in over_seeds.by_cell(trained, inputs.frameworks)
    ]
    data = pd.DataFrame(rows, columns=over_seeds.with_spreads(COLUMNS, SPREAD))
    data["network_label"] = data["variant"].where(data["variant"] != "", data["network"])
    alone = data[data["devices"] == 1].set_index(ALIKE)["seconds"].to_dict()
    base = [alone.get(tuple(row[name] for name in ALIKE)) for row in data.to_dict("records")]
    data["share"] = data["seconds"].astype(float) / pd.Series(base, data.index, dtype=float)
    places = ["label", "environment", "mode", "platform", "threads"]
    data["place"] = pd.factorize(pd.MultiIndex.from_frame(data[places]))[0]
    data = data.sort_values(["place", "devices", "exchange"], ascending=[True, True, False])
    data = data.drop(columns="place").reset_index(drop=True)
    over_seeds.describe(
        inputs,
        trained,
        *_notes(inputs.entry, data),
        "Missed updates: those of others between the reading of weights and the update that follows, in the mean.",
    )
    return data, columns(data, SHOWN, INDEX)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: seconds to the loss against the number of devices."""
    data = inputs.table[0]
    drawn = data[data["seconds"].notna()]
    with figures.canvas() as (drawing, axes):
        counts = sorted(set(drawn["devices"])) or [1]
        figures.batch_axis(axes, counts)
        axes.set_xlim(0.9, counts[-1] * 1.12)
        axes.set_xlabel("devices")
        axes.set_ylabel(f"seconds until a loss of {inputs.entry['loss']:g}")
        keys = _lines(axes, drawn, inputs)
        axes.set_ylim(bottom=0)
        figures.headings(axes, inputs.entry["title"], [inputs.entry["caption"]])
        missing = curves.not_drawn(data[data["seconds"].isna()], _named, _why)
        named = drawn.assign(framework_label=drawn["environment_label"])
        notes = [*_notes(inputs.entry, data), *missing, *mark_notes(named), *inputs.page.facts]
        figures.caption(drawing, figures.starred(drawn), notes, keys, 2)
    return drawn, drawing


def _reached(runs: pd.DataFrame, epochs: pd.DataFrame, wanted: float) -> Row:
    within = epochs[epochs["test_loss"] <= wanted].groupby("key", sort=False)
    by_seed = epochs.groupby("key", sort=False)
    values = {
        "seconds": within["elapsed"].first(),
        "epochs": within["epoch"].first(),
        "epoch_seconds": by_seed["seconds"].median(),
        "test_loss": by_seed["test_loss"].last(),
        "staleness": runs["staleness"].astype(float),
    }
    row: Row = {"reached": within.ngroups, "marks": over_seeds.marks_of(runs)}
    failed = runs[~runs["status"].isin(["ok", NOT_REACHED])]
    if len(failed):
        row |= {name: failed.iloc[0][name] for name in ("status", "reason")}
    elif not within.ngroups:
        last = f"{epochs['test_loss'].min():.3g}" if len(epochs) else "not known"
        row |= {"status": NOT_REACHED, "reason": f"the least loss on the test images was {last}"}
    else:
        row |= {"status": "ok", "reason": ""}
    return row | over_seeds.spread(values)


def _notes(entry: dict[str, Any], data: pd.DataFrame) -> list[str]:
    lacking = entry.get("lacking", {}).items()
    return [
        f"Until the end of the first epoch after which the loss on the test images is {entry['loss']:g} or less; "
        "judging is not in the seconds. Median over the seeds, and from the least to the most where they differ.",
        "All devices together take a mini-batch as large as that of the one. sync: they make one update of it. async: "
        "each makes its own, at the same rate, of its share. mixed: each group of two makes one, of its share.",
        *(f"{name}: {reason}." for name, reason in lacking if name not in set(data["exchange"])),
    ]


def _named(row: Row) -> str:
    devices = plural(row["devices"], "device")
    return f"{row['environment_label']}, {devices} {row['exchange']}".strip()


def _lines(axes: Axes, drawn: pd.DataFrame, inputs: Inputs) -> list[Any]:
    """Draws a line from one device to several, by framework, place and way of sharing; returns the legend's keys."""
    keys = []
    versions: dict[str, list[str]] = {}
    for _, alike in drawn.groupby(ALIKE, sort=False, dropna=False):
        first = alike.iloc[0]
        style = inputs.frameworks[first["framework"]].style
        own = versions.setdefault(first["framework"], [])
        if first["environment"] not in own:
            own.append(first["environment"])
        # Another version of a framework has the same colour and marker, but paler.
        style |= {"alpha": 0.4 ** own.index(first["environment"])}
        for exchange in [name for name in STYLES if (alike["exchange"] == name).any()] or [""]:
            line = alike[(alike["devices"] == 1) | (alike["exchange"] == exchange)]
            line_style: dict[str, Any] = {"linestyle": STYLES.get(exchange, "-"), "markersize": 6}
            line_style |= {"markerfacecolor": "white" if exchange in GROUPED else style["color"]}
            axes.plot(line["devices"], line["seconds"], **style, **line_style)
            apart = line[line["most_seconds"] > line["least_seconds"]]
            bars = {"fmt": "none", "ecolor": style["color"], "capsize": 2}
            spans = "least_seconds", "most_seconds"
            curves.whiskers(axes, apart, "devices", "seconds", *spans, **bars)
            figures.stars(axes, line, "devices", "seconds")
            threads = plural(first["threads"], "thread")
            words = [first["environment_label"], machine_name(first["platform"]), threads, exchange]
            keys.append(figures.key(", ".join(filter(None, words)), **style, **line_style))
    return keys
