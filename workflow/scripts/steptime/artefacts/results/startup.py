"""Table and figure of what a user waits for until the first step is done: import, build, first step."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import common, curves, over_seeds
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import IDENTITY
from steptime.render import figures
from steptime.render.columns import Column, Row, columns
from steptime.render.words import (
    facts,
    machine_name,
    mark_notes,
    marked,
    plural,
    significant,
    why,
    why_or,
)

# The parts of a start, in the order in which they pass, with what they are called.
PARTS = {"import_seconds": "import", "build_seconds": "build", "first_step_seconds": "first step"}
# Cells on several devices note this: seconds from the start of their processes until each has built its network.
READY = "ready_seconds"
NOT_NOTED = "measured before this was noted"
COLUMNS = [*IDENTITY, "framework", "network_label", "framework_label", "status", "reason", "marks"]
COLUMNS += ["repeats", *PARTS, READY, "total_seconds"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; seconds, medians over repeats) and the layout."""
    data, page, shown = medians(inputs), inputs.page, SHOWN
    most = data["repeats"].max()
    several = f"Medians of up to {most} starts of a result."
    page.facts = ["Each result was started once." if most == 1 else several]
    page.notes = [
        "The start of the interpreter and the making of the start values and of the mini-batch, which are ours and not "
        "the framework's, are left out. Files may have been in the page cache: a first import is slower.",
        "The first step is a training step too: a slow network starts long for that alone. Where a framework compiles "
        "once more for a later step, that is not in it.",
        "One file for each run: results/cells/.",
    ]
    if data["devices"].max() > 1:
        shown = [*SHOWN, ALL_READY]
        page.notes[:0] = [
            "On several devices, building lasts until the process of each has met the others and has built its "
            "network: the longest counts. Importing is that of the first.",
            "Until all are ready: from the start of the processes to the end of building, with the start of the "
            "interpreter and the making of start values. Results that were measured before this was noted have a dash.",
        ]
    return data, columns(data, shown, _index(data))


def medians(inputs: Inputs) -> pd.DataFrame:
    """Returns the tidy rows (COLUMNS): one for each cell, medians over its repeats."""
    rows = common.whole(inputs.measured.rows.drop_duplicates([*IDENTITY, "repeat"]))
    groups = rows.groupby(IDENTITY, sort=False, dropna=False)
    cells = pd.DataFrame([_middle(own) for _, own in groups])
    return common.labelled(cells, inputs.frameworks, inputs.networks).reindex(columns=COLUMNS)


def _middle(rows: pd.DataFrame) -> Row:
    """Returns the repeats of a cell as one row: medians of those that started, or what stopped the first of them."""
    begun = rows[rows["first_step_seconds"].notna()]
    chosen = begun if len(begun) else rows
    row = chosen.iloc[0].to_dict()
    for name in (*PARTS, READY):
        row[name] = pd.to_numeric(chosen[name]).median()
    row["marks"] = over_seeds.marks_of(chosen[chosen["status"] == "ok"])
    row["repeats"] = len(chosen)
    row["total_seconds"] = sum(row[name] for name in PARTS)
    return row


def _seconds(value: float) -> str:
    return significant(value, 2 if value < 0.1 else 3)


SHOWN = [
    Column(("Seconds", words), name, _seconds, why, "ours", marked)
    for name, words in (PARTS | {"total_seconds": "all of it"}).items()
]
NOT_READY = why_or(NOT_NOTED)
ALL_READY = Column(("Seconds", "until all are ready"), READY, _seconds, NOT_READY, "ours", marked)


def _index(data: pd.DataFrame) -> dict[str, Any]:
    several, ranks = data["platform"].nunique() > 1, data["devices"].max() > 1

    def place(row: Row) -> str:
        alone = plural(row["threads"], "thread")
        place = common.ranks_of(row) if row["devices"] > 1 else alone
        return f"{machine_name(row['platform'])}, {place}" if several else place

    named = {"Network": common.of_network, "Framework": "framework_label"}
    return named | {"Devices" if ranks else "Threads": place}


# Colours of Okabe and Ito (Color Universal Design, 2008) that also differ in lightness; frameworks have others.
COLOURS = ("#4D4D4D", "#009E73", "#E69F00")
BAR_INCHES = 0.175
GAP = 0.9  # bars between two networks


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn, those of each platform's highest thread count, and the figure."""
    drawn = common.of_most_threads(inputs.table[0])
    order = pd.factorize(drawn["network_label"])[0]
    drawn = drawn.assign(order=order).sort_values(["order", "total_seconds"], kind="stable")
    drawn = drawn.drop(columns="order").reset_index(drop=True)
    names = ["network_label", "framework_label"]
    names += ["platform"] if drawn["platform"].nunique() > 1 else []
    networks = drawn["network_label"].ne(drawn["network_label"].shift()).cumsum() - 1
    places = list(drawn.index + 1 + GAP * networks)
    at = places[-1]
    with figures.canvas(height=1.3 + BAR_INCHES * (at + 1)) as (drawing, axes):
        left = pd.Series(0.0, index=drawn.index)
        for colour, (column, label) in zip(COLOURS, PARTS.items(), strict=True):
            seconds = pd.to_numeric(drawn[column]).fillna(0)
            axes.barh(places, seconds, left=left, height=0.78, color=colour, label=label, zorder=3)
            left += seconds
        for place, total, row in zip(places, left, drawn.to_dict("records"), strict=True):
            timed = pd.notna(row["total_seconds"])
            star = "*" if "disturbed" in row["marks"] else ""
            text = f"{significant(total)} s{star}" if timed else row["status"]
            figures.say(axes, text, (total, place), (3, 0), va="center")
        figures.name_lines(axes, places, list(drawn[names].agg(", ".join, axis=1)), 8)
        axes.set_ylim(at + 0.7, places[0] - 0.7)
        axes.set_xlim(0, max(left.max(), 1e-9) * 1.1)
        axes.set_xlabel("seconds from the import to the end of the first step (less is better)")
        figures.headings(axes, "What a start costs", [curves.threads_drawn(drawn)])
        notes = [*_notes(drawn), *facts(inputs.measured)]
        figures.caption(drawing, figures.starred(drawn), notes, axes.containers, len(PARTS))
    return drawn, drawing


def _notes(drawn: pd.DataFrame) -> list[str]:
    notes = [
        "The first step traces, compiles and allocates, and is a step too. Medians where a result was measured more "
        "than once."
    ]
    untimed = drawn[drawn["total_seconds"].isna()]
    missing = curves.not_drawn(untimed, lambda row: row["framework_label"], at="network_label")
    return [*notes, *missing, *mark_notes(drawn)]
