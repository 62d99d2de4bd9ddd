"""Rows of the report's table, one for each result of a run: its time, the paper's, and its share of the peak."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.merge.measured import Measured
from steptime.page.explorer import Column, plain
from steptime.plan.cell import IDENTITY
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.words import MARK_WORDS, STATUS_WORDS, machine_name

COLUMNS = (
    Column("network_label", "Network", "text", True),
    Column("framework_label", "Framework", "text", True),
    Column("batch", "Mini-batch", "count", True),
    Column("mode", "Mode", "text", True),
    Column("platform", "Platform", "text", True),
    Column("threads", "Threads", "count", True),
    Column("devices", "Devices", "count", True),
    # Beside the time, so that it is in sight why there is none.
    Column("status", "Status", "text", True),
    Column("seconds", "Ours (s)", "number"),
    Column("interval", "95 % interval (s)", "interval"),
    Column("theirs", "Theirs (s)", "number"),
    Column("ratio", "Ours ÷ theirs", "number"),
    Column("share_of_peak", "Share of peak", "share"),
    Column("peak_memory_bytes", "Memory (MiB)", "mebibytes"),
    Column("samples", "Samples", "count"),
    Column("repeats", "Runs", "count"),
    Column("remarks", "Reason and remarks", "words"),
)


def gather(
    measured: Iterable[Measured],
    compared: Iterable[tuple[str, pd.DataFrame]],
    shares: Iterable[pd.DataFrame],
    frameworks: Frameworks,
    catalogue: dict[str, Any],
) -> pd.DataFrame:
    """Returns one row per result, with the names of COLUMNS.

    `compared` are rows of tables of times, each with its paper, which give `theirs` and `ratio`; `shares` are rows of
    tables that compare ours with a peak.
    """
    cells = pd.concat([part.cells for part in measured], ignore_index=True)
    cells = cells.drop_duplicates(IDENTITY)
    cells = common.whole(_with_peaks(_with_printed(cells, compared), shares))
    cells = common.labelled(cells, frameworks, catalogue)
    times = zip(cells["seconds"], cells["low"], cells["high"], strict=True)
    cells["interval"] = [_interval(*each) for each in times]
    noted = cells[["reason", "marks", "theirs", "printed_in", "theirs_platform", "caveat"]]
    cells["remarks"] = [_remarks(cell) for cell in noted.to_dict("records")]
    cells["platform"] = cells["platform"].map(machine_name)
    cells["status"] = cells["status"].map(lambda status: STATUS_WORDS.get(status, status))
    return cells


def columns_of(cells: pd.DataFrame) -> list[Column]:
    """Returns COLUMNS, without the number of devices where it is the same for all."""
    several = cells["devices"].nunique() > 1
    return [column for column in COLUMNS if column.name != "devices" or several]


def marks_of(cells: pd.DataFrame) -> dict[str, str]:
    """Explains each mark that some of the results have."""
    marks = dict.fromkeys(mark for marks in cells["marks"] for mark in marks)
    return {mark: MARK_WORDS.get(mark, mark) for mark in marks}


def _with_printed(
    cells: pd.DataFrame, tables_of_times: Iterable[tuple[str, pd.DataFrame]]
) -> pd.DataFrame:
    """Adds `theirs`, `ratio` and `printed_in`, from the first table that compares the cell with a printed number."""
    compared = [
        frame[(frame["source"] == tables.OURS) & frame["theirs"].notna()].assign(
            printed_in=paper, variant=lambda rows: rows["variant"].fillna("")
        )
        for paper, frame in tables_of_times
        if frame["theirs"].notna().any()
    ]
    if not compared:
        nothing = dict.fromkeys(("theirs", "ratio", "printed_in", "theirs_platform"))
        return cells.assign(**nothing, caveat="")
    printed = pd.concat(compared, ignore_index=True).drop_duplicates(IDENTITY)
    kept = [*IDENTITY, "theirs", "ratio", "printed_in", "theirs_platform", "caveat"]
    # A cell's numbers of threads and devices may be of another integer type in a table, which a merge does not mind.
    return cells.merge(printed[kept], on=IDENTITY, how="left")


def _with_peaks(cells: pd.DataFrame, shares: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Adds `share_of_peak`: operations per second of the cell's median step, divided by the peak of its threads."""
    needed = ["platform", "threads", "peak_flops_per_second"]
    known = [rows[needed].dropna() for rows in shares]
    if not known:
        return cells.assign(share_of_peak=None)
    peaks = pd.concat(known).drop_duplicates(["platform", "threads"])
    cells = cells.merge(peaks, on=["platform", "threads"], how="left")
    speed = pd.to_numeric(cells["flops_per_step"]) / pd.to_numeric(cells["seconds"])
    on_cpu = cells["device"] == "cpu"
    return cells.assign(share_of_peak=(speed / cells["peak_flops_per_second"]).where(on_cpu))


def _interval(seconds: float, low: float, high: float) -> list[float] | None:
    """Returns [low, high, larger half as a share of the time], in seconds; None where there is no interval."""
    if pd.isna(low):
        return None
    return [plain(value) for value in (low, high, max(high - seconds, seconds - low) / seconds)]


def _remarks(cell: dict[str, Any]) -> str:
    texts = [cell["reason"], *cell["marks"]]
    if pd.notna(cell["theirs"]):
        texts += [f"theirs: {cell['printed_in']}, {cell['theirs_platform']}", cell["caveat"]]
    return "; ".join(text.rstrip(".") for text in texts if text)
