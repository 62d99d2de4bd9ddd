"""What a user waits for before the first useful step: import, build, first step, warm-up; as a table and a figure.

python -m report.startup --artefact shi2016_table4 --config '{"grid": "quick"}' --frameworks ... --networks ...
    --table-prefix results/tables/startup --figure-prefix results/figures/startup
"""

import argparse
import json
import os
from typing import Any

import pandas as pd

from steptime import project
from steptime.artefacts import bars, common
from steptime.artefacts.inputs import Frameworks, read_yaml
from steptime.machine import interference
from steptime.merge import shards
from steptime.plan import configuration, grid
from steptime.render import figures, tables
from steptime.render.tables import Entry
from steptime.render.words import MARK_WORDS, plural, significant, status_reason

# The parts of a start, in the order in which they pass, with what they are called.
PARTS = {
    "import_seconds": "import",
    "build_seconds": "build",
    "first_step_seconds": "first step",
    "settling_seconds": "rest of the warm-up",
}
CELL = [
    "network",
    "variant",
    "environment",
    "framework",
    "adapter_mode",
    "platform",
    "devices",
    "threads",
    "batch",
]
COLUMNS = [
    *CELL,
    "network_label",
    "framework_label",
    "status",
    "reason",
    "marks",
    "repeats",
    *PARTS,
    "warmup_seconds",
    "warmup_steps",
    "steady",
    "total_seconds",
]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="artefacts.startup", description="Make the table and figure of starting up."
    )
    parser.add_argument("--artefact", required=True, help="the artefact whose shards are read")
    parser.add_argument(
        "--config", required=True, type=json.loads, help="Snakemake's configuration, as JSON"
    )
    common.run(_make, parser, "table", "figure")


def read_starts(keys: list[str]) -> pd.DataFrame:
    """One row for each cell: its columns and its PARTS, in seconds, where the worker came so far.

    Raises ShardError and MixedRowsError as `merge.shards.read` does.
    """
    found = shards.read(keys)
    return pd.DataFrame(_start(row, footer["worker"].get("warmup", {})) for row, _, footer in found)


def build(
    starts: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame, tables.Page]:
    """The tidy rows (COLUMNS; seconds, medians over repeats), the layout and the page."""
    cells = pd.DataFrame(
        [_middle(rows) for _, rows in starts.groupby(CELL, sort=False, dropna=False)]
    )
    data = common.labelled(cells, frameworks, catalogue)
    data = data.reindex(columns=COLUMNS).astype({"warmup_steps": "Int64"})
    page = common.page(
        "startup",
        "What a start costs",
        "Seconds that pass in a new process before its steps are as fast as they get: importing the framework, "
        "building the network from its start values, the first step (tracing, compiling, first allocation) and the "
        "rest of the warm-up.",
    )
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
        "One file for each cell: results/shards/.",
    ]
    return data, _layout(data), page


def _make(options: argparse.Namespace) -> None:
    plan = grid.expand(
        configuration.load(project.ROOT, options.config), len(os.sched_getaffinity(0))
    )
    starts = read_starts(plan.artefacts[options.artefact])
    frameworks, catalogue = Frameworks(options.frameworks), read_yaml(options.networks)
    data, layout, page = build(starts, frameworks, catalogue)
    tables.write(options.table_prefix, data, layout, page)
    figures.write(options.figure_prefix, *bars.draw(data, PARTS))


def _start(row: dict[str, Any], warmup: dict[str, Any]) -> dict[str, Any]:
    first, whole = warmup.get("first_seconds"), warmup.get("seconds")
    marked = row["status"] == "ok" and interference.disturbed(row)
    return {name: row[name] for name in (*CELL, "framework_version", "status", "reason")} | {
        "marks": "disturbed" if marked else "",
        "network": common.whole_name(row),
        "import_seconds": row["import_seconds"],
        "build_seconds": row["build_seconds"],
        "first_step_seconds": first,
        "settling_seconds": whole - first if warmup else None,
        "warmup_seconds": whole,
        "warmup_steps": row["warmup_steps"],
        "steady": warmup.get("steady"),
    }


def _middle(rows: pd.DataFrame) -> dict[str, Any]:
    """Repeats of a cell as one row: medians of those that started, or what stopped the first of them."""
    warm = rows[rows["warmup_seconds"].notna()]
    chosen = warm if len(warm) else rows
    row = chosen.iloc[0].to_dict()
    for name in (*PARTS, "warmup_seconds", "warmup_steps"):
        row[name] = pd.to_numeric(chosen[name]).median()
    row["warmup_steps"] = None if pd.isna(row["warmup_steps"]) else int(row["warmup_steps"])
    row["steady"] = bool(warm["steady"].all()) if len(warm) else None
    row["marks"] = max(chosen["marks"])
    row["repeats"] = len(chosen)
    row["total_seconds"] = sum(row[name] for name in PARTS)
    return row


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    several = data["platform"].nunique() > 1
    body, index = [], []
    for row in data.to_dict("records"):
        place = plural(row["threads"], "thread")
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
    columns = [("Seconds", name) for name in (*PARTS.values(), "all of it")] + [
        ("Warm-up", "steps")
    ]
    return pd.DataFrame(
        body,
        index=pd.MultiIndex.from_tuples(index, names=["Network", "Framework", "Threads"]),
        columns=pd.MultiIndex.from_tuples(columns),
        dtype=object,
    )


def _seconds(value: float | None, reason: str, remarks: tuple[str, ...]) -> Entry:
    if pd.isna(value):
        return common.dash(reason)
    return Entry(significant(value, 2 if value < 0.1 else 3), remarks, kind="ours")


if __name__ == "__main__":
    main()
