"""How many words or images a second a training takes, which share of the machine's peak its model needs, and where
the entry asks for it, the seconds of a training until a loss.
"""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.statistics import median
from steptime import networks
from steptime.artefacts import common, efficiency
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import Trained, joined
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    count,
    facts,
    mark_notes,
    plural,
    processes,
    raw_data,
    significant,
    status_reason,
)

COLUMNS = [*efficiency.COLUMNS, "parameters", "optimiser"]
COLUMNS += ["item", "items_per_step", "items_per_second"]
# Where the entry says `until` which loss trainings are asked for: that loss, the seconds, or why there are none.
PLACE = ["environment", "mode", "platform", "threads", "devices"]
UNTIL = ["loss_asked", "seconds_to_loss", "no_loss"]
TO_A_LOSS = "to a loss"
# What a step is counted in, by the kind of a network's input; `item` is one sample where it is no sequence.
ITEMS = {"tokens": "words", "one_hot": "words", "image": "images", "dense": "samples"}
PANEL_INCHES = 0.75
LINE_INCHES = 0.24


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, and UNTIL where it is asked for; seconds, and numbers a second) and the layout."""
    data = rates(inputs)
    if "until" in inputs.entry:
        trained = joined(inputs)
        found = [_to_a_loss(row, inputs.entry, trained) for row in data.to_dict("records")]
        data = data.join(pd.DataFrame(found, index=data.index, columns=UNTIL))
    inputs.page.facts = facts(inputs.measured)
    inputs.page.notes = [*_notes(), processes(inputs.measured.cells), raw_data(inputs.measured)]
    return data, _layout(data)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing: a panel for each network and mini-batch."""
    data = inputs.table[0]
    drawn = data[data["items_per_second"].notna()]
    groups = list(drawn.groupby(["network_label", "batch"], sort=False))
    lines = [len(rows) for _, rows in groups] or [1]
    height = 0.6 + PANEL_INCHES * len(lines) + LINE_INCHES * sum(lines)
    look = {"sharex": False, "sharey": False, "squeeze": False}
    with figures.canvas(max(1, len(groups)), 1, height, **look) as (drawing, grid):
        for axes, ((label, batch), rows) in zip(grid.flat, groups, strict=False):
            _panel(axes, rows, inputs.frameworks)
            axes.set_title(
                f"{label}, mini-batch {batch}, {rows.iloc[0]['optimiser']}", fontsize=9.5
            )
        figures.title(drawing, inputs.entry["title"])
        missing = data[data["items_per_second"].isna()]
        why = [
            f"{row['network_label']}, {row['framework_label']}: "
            f"{status_reason(row['status'], row['reason']).rstrip('.')}."
            for row in missing.drop_duplicates(["network_label", "framework_label"]).to_dict(
                "records"
            )
        ]
        notes = [*_notes()[:2], *why, *mark_notes(drawn), *facts(inputs.measured)]
        figures.notes_below(drawing, [*notes, raw_data(inputs.measured)])
    return drawn, drawing


def rates(inputs: Inputs) -> pd.DataFrame:
    """One row (COLUMNS) for each cell."""
    data = efficiency.shares(inputs.measured, inputs.peaks, inputs.frameworks, inputs.networks)
    specs = {name: networks.specify(name, inputs.networks) for name in data["network"].unique()}
    counted = [_counted(row, specs[row["network"]]) for row in data.to_dict("records")]
    added = pd.DataFrame(counted, index=data.index, columns=COLUMNS[len(efficiency.COLUMNS) :])
    return data.join(added)


def _counted(row: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """What a step of a cell takes in, and how much of that a second."""
    source = spec["input"]
    steps = source["shape"][0] if source["kind"] in ("tokens", "one_hot") else 1
    items = steps * row["batch"]
    timed = row["status"] == "ok" and pd.notna(row["seconds"])
    return {
        "parameters": networks.count_parameters(spec),
        "optimiser": spec["optimiser"]["name"],
        "item": ITEMS[source["kind"]],
        "items_per_step": items,
        "items_per_second": items / row["seconds"] if timed else None,
    }


def _to_a_loss(row: dict[str, Any], entry: dict[str, Any], trained: Trained) -> dict[str, Any]:
    """Seconds of training until the loss on test images that the entry asks for: the median of seeds that reach it."""
    asked = entry["until"].get(row["network"])
    if asked is None:
        return {"no_loss": entry["no_loss"].get(row["network"], "no loss is asked for")}
    nothing = {"loss_asked": asked["loss"]}
    runs = trained.runs
    if len(runs):
        same = (runs[[*PLACE]] == pd.Series({name: row[name] for name in PLACE})).all(axis=1)
        runs = runs[same & (runs["variant"] == asked["trained"])]
    if runs.empty:
        return nothing | {"no_loss": f"{asked['trained']} was not trained here"}
    epochs = trained.epochs[trained.epochs["key"].isin(runs["key"])]
    reached = epochs[epochs["test_loss"] <= asked["loss"]].groupby("key")["elapsed"].min()
    if len(reached):
        return nothing | {"seconds_to_loss": median(list(reached))}
    first = runs.iloc[0]
    return nothing | {"no_loss": status_reason(first["status"], first["reason"])}


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    """Networks and frameworks down; of each platform and thread count, time, speed and share of the peak."""
    columns = [("One step", name) for name in ("takes in", "trains", "optimiser")]
    body: dict[tuple[str, str], dict[tuple[str, str], Entry]] = {}
    for row in data.to_dict("records"):
        entries = body.setdefault(
            (f"{row['network_label']}, batch {row['batch']}", row["framework_label"]), {}
        )
        entries[columns[0]] = Entry(f"{count(row['items_per_step'])} {row['item']}")
        entries[columns[1]] = Entry(f"{count(row['parameters'])} parameters")
        entries[columns[2]] = Entry(row["optimiser"])
        devices = f" x {row['devices']}" if row["devices"] > 1 else ""
        place = f"{row['platform']}, {plural(row['threads'], 'thread')}{devices}"
        for name, entry in _entries(row).items():
            entries[place, name] = entry
            columns += [(place, name)] if (place, name) not in columns else []
    index = pd.MultiIndex.from_tuples(list(body), names=["Network", "Framework"])
    rows = [[entries.get(column, Entry()) for column in columns] for entries in body.values()]
    return pd.DataFrame(rows, index=index, columns=pd.MultiIndex.from_tuples(columns), dtype=object)


def _entries(row: dict[str, Any]) -> dict[str, Entry]:
    entries = _speeds(row)
    if "no_loss" in row:
        entries[TO_A_LOSS] = _seconds_to_loss(row)
    return entries


def _seconds_to_loss(row: dict[str, Any]) -> Entry:
    if pd.isna(row["seconds_to_loss"]):
        return common.dash(row["no_loss"])
    said = f"seconds of training until the loss on test images is {row['loss_asked']:g}"
    return Entry(significant(row["seconds_to_loss"]), (said,), kind="ours")


def _speeds(row: dict[str, Any]) -> dict[str, Entry]:
    names = ("seconds", "a second", "of the peak")
    if pd.isna(row["items_per_second"]):
        return dict.fromkeys(names, common.dash(status_reason(row["status"], row["reason"])))
    remarks = tuple(MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark)
    texts = [significant(row["seconds"]), significant(row["items_per_second"])]
    shown = [Entry(text, remarks, row["best"], "ours") for text in texts]
    if pd.isna(row["share_of_peak"]):
        return dict(zip(names, [*shown, common.dash(row["no_peak"])], strict=True))
    low = (f"of a peak that was {efficiency.LOW_PEAK}",) if row["peak_disturbed"] else ()
    share = f"{significant(100 * row['share_of_peak'], 2)} %"
    return dict(zip(names, [*shown, Entry(share, remarks + low, row["best"], "ours")], strict=True))


def _panel(axes: Axes, rows: pd.DataFrame, frameworks: Frameworks) -> None:
    """A bar for each framework and thread count, the fastest on top, and its 95 % interval."""
    rows = rows.sort_values("items_per_second").reset_index(drop=True)
    edge = 1.35 * math.nextafter(rows["items_per_second"].max(), math.inf)
    for at, row in rows.iterrows():
        items, fastest = row["items_per_step"], row["items_per_second"]
        axes.barh(at, fastest, height=0.62, color=frameworks[row["framework"]].colour, alpha=0.85)
        if pd.notna(row["low"]):
            axes.plot([items / row["high"], items / row["low"]], [at, at], color="#222222")
        share = row["share_of_peak"]
        words = f"{significant(fastest)}"
        words += f", {significant(100 * share, 2)} % of the peak" if pd.notna(share) else ""
        end = max(fastest, items / row["low"]) if pd.notna(row["low"]) else fastest
        if end > edge:
            # An interval that is longer than the axis goes on: behind its end, words would not be drawn.
            axes.plot(edge, at, marker=">", markersize=4, color="#222222", clip_on=False)
        axes.annotate(
            words,
            (min(end, edge), at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    several = rows["threads"].nunique() > 1 or rows["platform"].nunique() > 1
    axes.set_yticks(
        range(len(rows)),
        [
            row["framework_label"]
            + (f", {row['platform']}, {plural(row['threads'], 'thread')}" if several else "")
            for row in rows.to_dict("records")
        ],
    )
    axes.set_xlim(0, edge)
    axes.set_xlabel(f"{rows.iloc[0]['item']} a second")
    axes.grid(axis="y", visible=False)


def _notes() -> list[str]:
    return [
        "Words or images a second: those of a mini-batch divided by the median time of a step: forward, loss, backward "
        "and update.",
        "Share of the peak, which others call model FLOP utilisation: 2 operations for each multiply-add that the "
        "model needs, forward and backward, divided by the time and by the fastest matrix product that the same "
        "threads of the same machine were seen to reach. Of attention, pairs of words that are masked count for "
        "nothing; Chowdhery et al. 2022 count them. An optimiser's work counts for nothing.",
    ]
