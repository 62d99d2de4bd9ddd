"""Table and figure of training: words or images a second, share of the machine's peak, and seconds until a loss."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.statistics import median
from steptime import networks
from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import efficiency
from steptime.artefacts.results.efficiency import percent, share_of
from steptime.merge.trainings import Trained
from steptime.render import figures
from steptime.render.columns import Column, Row, columns
from steptime.render.frameworks import Frameworks
from steptime.render.tables import COUNT, TEXT
from steptime.render.words import (
    count,
    machine_name,
    mark_notes,
    marked,
    origin,
    processes,
    significant,
    why,
)

COLUMNS = [*efficiency.COLUMNS, "parameters", "optimiser"]
COLUMNS += ["item", "items_per_step", "items_per_second"]
TYPES = efficiency.TYPES | {"parameters": COUNT, "items_per_step": COUNT}
TYPES |= dict.fromkeys(["optimiser", "item", "no_loss"], TEXT)
# Where the entry says `until` which loss trainings are asked for: that loss, the seconds, or why there are none.
PLACE = ["environment", "mode", "platform", "threads", "devices"]
UNTIL = ["loss_asked", "seconds_to_loss", "no_loss"]
# What a step is counted in, by the kind of a network's input; `item` is one sample where it is no sequence.
ITEMS = {"tokens": "words", "one_hot": "words", "image": "images", "dense": "samples"}
PANEL_INCHES = 0.75
LINE_INCHES = 0.24
NOTES = (
    "Words or images a second: those of a mini-batch divided by the time of a step: forward, loss, backward and "
    "update.",
    "Share of the peak, which others call model FLOP utilisation: 2 operations for each multiply-add that the "
    "model needs, forward and backward, divided by the time and by the fastest matrix product that the same "
    "threads of the same machine were seen to reach. Of attention, pairs of words that are masked count for "
    "nothing; Chowdhery et al. 2022 count them. An optimiser's work counts for nothing.",
)


def _heading(what: str) -> Callable[[Row], tuple[str, str]]:
    return lambda row: (
        common.place_of(row | {"device": "cpu"})
        + (f" x {row['devices']}" if row["devices"] > 1 else ""),
        what,
    )


def _loss(row: Row) -> list[str]:
    return [f"seconds of training until the loss on test images is {row['loss_asked']:g}"]


def _peak_remarks(row: Row) -> list[str]:
    return efficiency.peak_remarks(row | {"reason": ""})


SHOWN = [
    Column(("One step", "takes in"), lambda row: f"{count(row['items_per_step'])} {row['item']}"),
    Column(("One step", "trains"), "parameters", lambda number: f"{count(number)} parameters"),
    Column(("One step", "optimiser"), "optimiser"),
    Column(_heading("seconds"), "seconds", significant, why, "ours", marked, "best"),
    Column(_heading("a second"), "items_per_second", significant, why, "ours", marked, "best"),
    Column(_heading("of the peak"), share_of, percent, "", "ours", _peak_remarks, "best"),
]
TO_A_LOSS = Column(
    _heading("to a loss"), "seconds_to_loss", significant, lambda row: row["no_loss"], "ours", _loss
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS, and UNTIL where asked for; seconds, and numbers a second) and the layout."""
    data, shown = rates(inputs), SHOWN
    if "until" in inputs.entry:
        trained = inputs.trained
        results = [_to_a_loss(row, inputs.entry, trained) for row in data.to_dict("records")]
        data = data.join(pd.DataFrame(results, index=data.index, columns=UNTIL))
        shown = [*SHOWN, TO_A_LOSS]
    common.describe(inputs, *NOTES, processes(inputs.measured.cells))
    return data, columns(data, shown, efficiency.INDEX)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn, of each platform's highest thread count, and the drawing."""
    data = common.of_most_threads(inputs.table[0])
    missing = data[data["items_per_second"].isna()]
    notes = [
        *NOTES,
        *curves.not_drawn(missing, lambda row: row["framework_label"], at="network_label"),
        *mark_notes(data),
        *origin(inputs.measured),
    ]
    return draw(data, inputs.frameworks, inputs.entry["title"], notes)


def draw(
    data: pd.DataFrame, frameworks: Frameworks, title: str, notes: list[str]
) -> tuple[pd.DataFrame, figures.Drawing]:
    """Returns the rows that are drawn and the drawing: a panel for each network and mini-batch."""
    drawn = data[data["items_per_second"].notna()]
    groups = list(drawn.groupby(["network_label", "batch"], sort=False))
    lines = [len(rows) for _, rows in groups] or [1]
    inches = PANEL_INCHES + LINE_INCHES * sum(lines) / len(lines)
    apart: dict[str, Any] = {"sharex": False, "sharey": False}
    with figures.panels(len(groups), inches, 0.6, 2, **apart) as (drawing, grid):
        for axes, ((label, batch), rows) in zip(grid, groups, strict=False):
            _panel(axes, rows, frameworks)
            heading = f"{label}, batch {batch}: {rows.iloc[0]['item']}/s"
            axes.set_title(heading, fontsize=8.5)
        figures.title(drawing, f"{title}: {curves.threads_drawn(data)}")
        words = "More is better. In brackets: the share of the machine's peak."
        figures.caption(drawing, figures.starred(drawn, words), notes)
    return drawn, drawing


def rates(inputs: Inputs) -> pd.DataFrame:
    """Returns one row (COLUMNS) for each cell."""
    data = efficiency.shares(inputs)
    specs = {name: networks.specify(name, inputs.networks) for name in data["network"].unique()}
    counted = [_counted(row, specs[row["network"]]) for row in data.to_dict("records")]
    added = pd.DataFrame(counted, index=data.index, columns=COLUMNS[len(efficiency.COLUMNS) :])
    return data.join(added)


def _counted(row: Row, spec: dict[str, Any]) -> Row:
    """Says how many words or images a step of a cell takes in, and how many that is a second."""
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


def _to_a_loss(row: Row, entry: dict[str, Any], trained: Trained) -> Row:
    """Returns seconds until the entry's loss on test images: the median of the seeds that reach it."""
    until = entry["until"].get(row["network"])
    if until is None:
        return {"no_loss": entry["no_loss"].get(row["network"], "no loss is asked for")}
    nothing = {"loss_asked": until["loss"]}
    runs = trained.runs
    if len(runs):
        same = (runs[[*PLACE]] == pd.Series({name: row[name] for name in PLACE})).all(axis=1)
        runs = runs[same & (runs["variant"] == until["trained"])]
    if runs.empty:
        return nothing | {"no_loss": f"{until['trained']} was not trained here"}
    epochs = trained.epochs[trained.epochs["key"].isin(runs["key"])]
    reached = epochs[epochs["test_loss"] <= until["loss"]].groupby("key")["elapsed"].min()
    if len(reached):
        return nothing | {"seconds_to_loss": median(list(reached))}
    return nothing | {"no_loss": why(runs.iloc[0])}


def _panel(axes: Axes, rows: pd.DataFrame, frameworks: Frameworks) -> None:
    """Draws a bar for each framework, the fastest on top, with its 95 % interval."""
    rows = rows.sort_values("items_per_second").reset_index(drop=True)
    edge = 1.4 * math.nextafter(rows["items_per_second"].max(), math.inf)
    for at, row in rows.iterrows():
        items, fastest = row["items_per_step"], row["items_per_second"]
        axes.barh(at, fastest, height=0.62, color=frameworks[row["framework"]].colour, alpha=0.85)
        if pd.notna(row["low"]):
            axes.plot([items / row["high"], items / row["low"]], [at, at], color="#222222")
        share = row["share_of_peak"]
        words = significant(fastest) + ("*" if "disturbed" in row["marks"] else "")
        words += f" ({percent(share)})" if pd.notna(share) else ""
        end = max(fastest, items / row["low"]) if pd.notna(row["low"]) else fastest
        is_cut = end > edge
        if is_cut:
            # An interval that is longer than the axis goes on: behind its end, words would not be drawn.
            axes.plot(edge, at, marker=">", markersize=4, color="#222222", clip_on=False)
        figures.say(axes, words, (min(end, edge), at), (7 if is_cut else 4, 0), va="center")
    machines = ", " + rows["platform"].map(machine_name)
    names = rows["framework_label"] + (machines if rows["platform"].nunique() > 1 else "")
    figures.name_lines(axes, range(len(rows)), list(names), 8)
    axes.set_xlim(0, edge)
    axes.tick_params(axis="x", labelsize=7.5)
