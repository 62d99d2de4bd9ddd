"""What a user waits for before the first useful step: import, build, first step, warm-up; as a table and a figure."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.machine import interference
from steptime.plan.cell import IDENTITY
from steptime.render import figures, tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import MARK_WORDS, mark_notes, plural, significant, status_reason

# The parts of a start, in the order in which they pass, with what they are called.
PARTS = {
    "import_seconds": "import",
    "build_seconds": "build",
    "first_step_seconds": "first step",
    "settling_seconds": "rest of the warm-up",
}
# Of the processes of several devices: from their start until each has built its network.
READY = "ready_seconds"
FACTS = ("framework", "framework_version", "status", "reason")
NOT_NOTED = "measured before this was noted"
COLUMNS = [*IDENTITY, "framework", "network_label", "framework_label", "status", "reason", "marks"]
COLUMNS += ["repeats", *PARTS, READY, "warmup_seconds", "warmup_steps", "steady", "total_seconds"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(read_starts(inputs), inputs.frameworks, inputs.networks, inputs.page)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing."""
    return draw(inputs.table[0], PARTS)


def read_starts(inputs: Inputs) -> pd.DataFrame:
    """What `starts` gives, of the artefact's cells."""
    return starts(inputs.measured.rows)


def starts(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each process of the merged rows: its cell and its PARTS, in seconds, where the worker came so far."""
    processes = rows.drop_duplicates([*IDENTITY, "repeat"])
    known = processes.astype(object).where(processes.notna(), None)
    return pd.DataFrame(_start(row) for row in known.to_dict("records"))


def build(
    starts: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any], page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS; seconds, medians over repeats) and the layout; fills the page's facts and notes."""
    data = medians(starts, frameworks, catalogue)
    most = data["repeats"].max()
    page.facts = [
        "Each cell was started once." if most == 1 else f"Medians of up to {most} starts of a cell."
    ]
    page.notes = [
        "The start of the interpreter and the making of the start values and of the mini-batch, which are ours and not "
        "the framework's, are left out. Files may have been in the page cache: a first import is slower.",
        "The first step, and each of the warm-up, is a training step too: a slow network starts long for that alone.",
        "The warm-up runs for at least half a second or two steps, so a short rest of it is our floor and not the "
        "framework's need.",
        "One file for each cell: results/cells/.",
    ]
    if data["devices"].max() > 1:
        page.notes[:0] = [
            "On several devices, building lasts until the process of each has met the others and has built its "
            "network: the longest counts. Importing is that of the first.",
            "Until all are ready: from the start of the processes to the end of building, with the start of the "
            "interpreter and the making of start values. Cells that were measured before this was noted have a dash.",
        ]
    return data, _layout(data)


def medians(
    starts: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]
) -> pd.DataFrame:
    """The tidy rows (COLUMNS): one for each cell, medians over its repeats."""
    cells = pd.DataFrame(
        [_middle(rows) for _, rows in starts.groupby(IDENTITY, sort=False, dropna=False)]
    )
    data = common.labelled(cells, frameworks, catalogue)
    return data.reindex(columns=COLUMNS).astype({"warmup_steps": "Int64"})


def _start(row: dict[str, Any]) -> dict[str, Any]:
    first, whole = row["first_step_seconds"], row["warmup_seconds"]
    marked = row["status"] == "ok" and interference.disturbed(row)
    return {name: row[name] for name in (*IDENTITY, *FACTS)} | {
        "marks": "disturbed" if marked else "",
        "network": common.whole_name(row),
        "import_seconds": row["import_seconds"],
        "build_seconds": row["build_seconds"],
        READY: row[READY],
        "first_step_seconds": first,
        "settling_seconds": whole - first if whole and first else None,
        "warmup_seconds": whole,
        "warmup_steps": row["warmup_steps"],
        "steady": row["warmup_steady"],
    }


def _middle(rows: pd.DataFrame) -> dict[str, Any]:
    """Repeats of a cell as one row: medians of those that started, or what stopped the first of them."""
    warm = rows[rows["warmup_seconds"].notna()]
    chosen = warm if len(warm) else rows
    row = chosen.iloc[0].to_dict()
    for name in (*PARTS, READY, "warmup_seconds", "warmup_steps"):
        row[name] = pd.to_numeric(chosen[name]).median()
    row["warmup_steps"] = None if pd.isna(row["warmup_steps"]) else int(row["warmup_steps"])
    row["steady"] = bool(warm["steady"].all()) if len(warm) else None
    row["marks"] = max(chosen["marks"])
    row["repeats"] = len(chosen)
    row["total_seconds"] = sum(row[name] for name in PARTS)
    return row


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    several = data["platform"].nunique() > 1
    ready = {READY: "until all are ready"} if data["devices"].max() > 1 else {}
    body, index = [], []
    for row in data.to_dict("records"):
        place = plural(row["threads"], "thread")
        if row["devices"] > 1:
            place = f"{row['devices']} x {place}, {row['exchange']}"
        index.append(
            (
                f"{row['network_label']}, batch {row['batch']}",
                row["framework_label"],
                f"{row['platform']}, {place}" if several else place,
            )
        )
        reason = status_reason(row["status"], row["reason"])
        remarks = (MARK_WORDS[row["marks"]],) if row["marks"] else ()
        entries = [_seconds(row[name], reason, remarks) for name in (*PARTS, "total_seconds")]
        why_not = NOT_NOTED if row["status"] == "ok" else reason
        entries += [_seconds(row[name], why_not, remarks) for name in ready]
        if row["steady"] is False:
            entries[3] = Entry(
                entries[3].text,
                ("the warm-up ended at its time limit: steps still got faster", *remarks),
                kind="ours",
            )
        body.append(
            [
                *entries,
                common.dash(reason)
                if pd.isna(row["warmup_steps"])
                else Entry(str(row["warmup_steps"])),
            ]
        )
    columns = [("Seconds", name) for name in (*PARTS.values(), "all of it", *ready.values())] + [
        ("Warm-up", "steps")
    ]
    return pd.DataFrame(
        body,
        index=pd.MultiIndex.from_tuples(
            index, names=["Network", "Framework", "Devices" if ready else "Threads"]
        ),
        columns=pd.MultiIndex.from_tuples(columns),
        dtype=object,
    )


def _seconds(value: float, reason: str, remarks: tuple[str, ...]) -> Entry:
    if pd.isna(value):
        return common.dash(reason)
    return Entry(significant(value, 2 if value < 0.1 else 3), remarks, kind="ours")


# Of Okabe and Ito (Color Universal Design, 2008), told apart by lightness too; frameworks' colours mean frameworks.
COLOURS = ("#4D4D4D", "#009E73", "#E69F00", "#D9D9D9")
BAR_INCHES = 0.175
GAP = 0.9  # bars between two networks


def draw(data: pd.DataFrame, parts: Mapping[str, str]) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn, those of each platform's highest thread count, and the figure; `parts` names columns."""
    highest = data.groupby("platform")["threads"].transform("max")
    drawn = data[data["threads"] == highest].reset_index(drop=True)
    several = drawn["platform"].nunique() > 1
    places, at = [], 0.0
    for network in (
        drawn["network_label"].ne(drawn["network_label"].shift()).cumsum().diff().fillna(0)
    ):
        at += 1 + GAP * network
        places.append(at)
    with figures.canvas(height=1.3 + BAR_INCHES * (at + 1)) as (drawing, axes):
        left = pd.Series(0.0, index=drawn.index)
        for colour, (column, label) in zip(COLOURS, parts.items(), strict=True):
            seconds = pd.to_numeric(drawn[column]).fillna(0)
            axes.barh(places, seconds, left=left, height=0.78, color=colour, label=label, zorder=3)
            left += seconds
        for place, total, row in zip(places, left, drawn.to_dict("records"), strict=True):
            text = (
                f"{significant(total)} s" if pd.notna(row["total_seconds"]) else f" {row['status']}"
            )
            axes.annotate(
                text,
                (total, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
                color="#444444",
            )
        axes.set_yticks(
            places, [_label(row, several) for row in drawn.to_dict("records")], fontsize=8
        )
        axes.set_ylim(at + 0.7, places[0] - 0.7)
        axes.set_xlim(0, max(left.max(), 1e-9) * 1.1)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds from the import to the end of the warm-up")
        figures.headings(axes, "What a start costs", _where(drawn))
        figures.notes_below(drawing, _notes(drawn), axes.containers, len(parts))
    return drawn, drawing


def _label(row: dict, several: bool) -> str:
    parts = [row["network_label"], row["framework_label"], *([row["platform"]] if several else [])]
    return ", ".join(parts)


def _where(drawn: pd.DataFrame) -> list[str]:
    return [
        f"on {platform}, {plural(int(rows['threads'].iloc[0]), 'thread')}"
        for platform, rows in drawn.groupby("platform", sort=False)
    ]


def _notes(drawn: pd.DataFrame) -> list[str]:
    notes = [
        "The first step traces, compiles and allocates, and is a step too. The rest of the warm-up lasts at least half "
        "a second or two steps. Medians where a cell was measured more than once."
    ]
    for row in drawn[drawn["total_seconds"].isna()].to_dict("records"):
        reason = status_reason(row["status"], row["reason"]).rstrip(".")
        notes.append(f"{row['network_label']}, {row['framework_label']}: {reason}.")
    return notes + mark_notes(drawn)
