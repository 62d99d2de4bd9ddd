"""Every framework beside every network: time, share of the peak, start, memory or the reason, as a table and a picture.

python -m report.zoo --artefact shi2016_table4 --config '{"grid": "zoo"}' --merged results/merged/shi2016_table4.parquet
    --peaks results/peaks/local-cpu.json --frameworks ... --networks ...
    --table-prefix results/tables/zoo --figure-prefix results/figures/zoo
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from steptime import project
from steptime.artefacts import common, efficiency, startup, tiles
from steptime.artefacts.inputs import (
    ARITHMETIC,
    Frameworks,
    Measured,
    read_json,
    read_measured,
    read_yaml,
)
from steptime.environments.libraries import registers
from steptime.plan import configuration, grid
from steptime.render import figures, tables
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    STATUS_WORDS,
    facts,
    plural,
    processes,
    raw_data,
    significant,
    spread,
)

KEY = ["network", "environment", "adapter_mode", "platform", "devices", "threads", "batch"]
COLUMNS = [
    *KEY,
    "network_label",
    "framework",
    "framework_label",
    "status",
    "reason",
    "marks",
    "seconds",
    "low",
    "high",
    "ratio",
    "share_of_peak",
    "startup_seconds",
    "peak_memory_bytes",
    *ARITHMETIC,
]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="artefacts.zoo", description="Make the table and picture of all frameworks."
    )
    parser.add_argument("--artefact", required=True, help="the artefact whose shards are read")
    parser.add_argument(
        "--config", required=True, type=json.loads, help="Snakemake's configuration, as JSON"
    )
    parser.add_argument(
        "--merged", type=Path, required=True, help="merged rows of the artefact, Parquet"
    )
    parser.add_argument(
        "--peaks", type=Path, nargs="*", default=[], help="the peak of each platform, JSON"
    )
    parser.add_argument(
        "--table-prefix", type=Path, required=True, help="path of the table without its endings"
    )
    parser.add_argument(
        "--figure-prefix", type=Path, required=True, help="path of the figure without its endings"
    )
    common.run(_make, parser)


def build(
    measured: Measured,
    peaks: dict[str, Any],
    starts: pd.DataFrame,
    frameworks: Frameworks,
    catalogue: dict[str, Any],
) -> tuple[pd.DataFrame, pd.DataFrame, tables.Page]:
    """The tidy rows (COLUMNS; seconds, bytes), those of each platform's highest thread count, the layout and the page.

    `starts` is what `report.startup.read_starts` returns.
    """
    shares, _, _ = efficiency.build(measured, peaks, frameworks, catalogue)
    begun, _, _ = startup.build(starts, frameworks, catalogue)
    cells = measured.cells.assign(
        network=[common.whole_name(cell) for cell in measured.cells.to_dict("records")]
    )
    data = shares.merge(cells[[*KEY, "peak_memory_bytes", *ARITHMETIC]], on=KEY)
    data = data.merge(begun[[*KEY, "total_seconds"]], on=KEY, how="left")
    data = data.rename(columns={"total_seconds": "startup_seconds"})
    data = data[data["threads"] == data.groupby("platform")["threads"].transform("max")]
    place = data.groupby(["network", "batch", "platform", "devices", "threads"])["seconds"]
    data = data.assign(ratio=data["seconds"].astype(float) / place.transform("min").astype(float))
    data = data.reindex(columns=COLUMNS).reset_index(drop=True)
    page = common.page(
        "zoo",
        "Every framework, every network",
        "One training step of each network in each framework on the same machine: its time, that time divided by the "
        "fastest's, the share of the machine's measured peak, what a start costs and what memory it takes; or why "
        "there is no time.",
    )
    page.facts = facts(measured)
    page.notes = [
        "Registers: the widest that the framework's compiled libraries multiply in, counted in those that the process "
        "had loaded (SSE: 128 bits, AVX and AVX2: 256, AVX-512: 512); `at run time`: some of them can make code for "
        "the processor at hand while they run. Linear algebra: the libraries that are in them.",
        "Start: seconds from the import to the end of the warm-up. Memory: the most that the process and those below "
        "it had at a time, with data and start values.",
        processes(measured.cells),
        raw_data(measured),
    ]
    return data, _layout(data), page


def _make(options: argparse.Namespace) -> None:
    plan = grid.expand(
        configuration.load(project.ROOT, options.config), len(os.sched_getaffinity(0))
    )
    starts = startup.read_starts(plan.artefacts[options.artefact])
    measured = read_measured(options.merged)
    peaks = {path.stem: read_json(path) for path in options.peaks}
    data, layout, page = build(
        measured, peaks, starts, Frameworks(options.frameworks), read_yaml(options.networks)
    )
    tables.write(options.table_prefix, data, layout, page)
    figures.write(options.figure_prefix, *tiles.draw(data))


def _time(row: dict[str, Any]) -> Entry:
    texts = [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]
    remarks = tuple(texts + ([row["reason"].rstrip(".")] if row["reason"] else []))
    if pd.isna(row["seconds"]):
        return Entry(STATUS_WORDS.get(row["status"], row["status"]), remarks, kind="ours words")
    text = f"{significant(row['seconds'])} {spread(row['seconds'], row['low'], row['high'])}"
    return Entry(text, remarks, row["ratio"] == 1, "ours")


def _number(
    name: str, scale: float, digits: int, unit: str = ""
) -> Callable[[dict[str, Any]], Entry]:
    def entry(row: dict[str, Any]) -> Entry:
        if row["status"] != "ok" or pd.isna(row[name]):
            return Entry()
        return Entry(significant(row[name] * scale, digits) + unit, kind="ours")

    return entry


LINES: dict[str, Callable[[dict[str, Any]], Entry]] = {
    "time per mini-batch (s)": _time,
    "times the fastest": _number("ratio", 1, 2),
    "share of peak": _number("share_of_peak", 100, 2, " %"),
    "start (s)": _number("startup_seconds", 1, 2),
    "memory (MiB)": _number("peak_memory_bytes", 2**-20, 3),
}


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    several = data["platform"].nunique() > 1
    runners = ["framework_label", "environment", "adapter_mode", "platform"]
    columns = list(dict.fromkeys(_column(row) for row in data.to_dict("records")))
    body, index = [], []
    for _, rows in _in_order(data).groupby(runners, sort=False, dropna=False):
        records = rows.to_dict("records")
        known = next((row for row in records if row["vector"]), records[0])
        threads = plural(int(known["threads"]), "thread")
        label = (
            f"{known['framework_label']}, {known['platform']}"
            if several
            else known["framework_label"]
        )
        heading = (label, threads, registers(known), known["blas"])
        cells = {_column(row): row for row in records}
        for line, entry in LINES.items():
            entries = [entry(cells[column]) if column in cells else Entry() for column in columns]
            # Where nothing ran, one line says so.
            if line == next(iter(LINES)) or any(each.text for each in entries):
                body.append(entries)
                index.append((*heading, line))
    names = ["Framework", "Threads", "Registers", "Linear algebra", ""]
    return pd.DataFrame(
        body, index=pd.MultiIndex.from_tuples(index, names=names), columns=columns, dtype=object
    )


def _in_order(data: pd.DataFrame) -> pd.DataFrame:
    """Framework by framework, in the order in which they stand for the first network."""
    order = {label: at for at, label in enumerate(dict.fromkeys(data["framework_label"]))}
    return data.sort_values("framework_label", key=lambda labels: labels.map(order), kind="stable")


def _column(row: dict[str, Any]) -> str:
    return f"{row['network_label']}, batch {row['batch']}"


if __name__ == "__main__":
    main()
