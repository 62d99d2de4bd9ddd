"""Every framework beside every network: time, share of the peak, start, memory, registers, linear algebra."""

import pandas as pd

from steptime.artefacts import common, efficiency, startup
from steptime.artefacts.inputs import Inputs
from steptime.environments.libraries import registers
from steptime.merge.measured import ARITHMETIC
from steptime.plan.cell import IDENTITY, PLACE
from steptime.render.columns import Column, Row
from steptime.render.tables import Entry
from steptime.render.words import STATUS_WORDS, plural, processes, remarks, significant, spread

COLUMNS = [*common.NAMED, "marks", "word", "seconds", "low", "high", "ratio", "share_of_peak"]
COLUMNS += ["startup_seconds", "peak_memory_bytes", *ARITHMETIC]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS; seconds, bytes) of each platform's highest thread count, and the layout."""
    measured = inputs.measured
    shares, begun = efficiency.shares(inputs), startup.medians(inputs)
    cells = common.whole(measured.cells)
    data = shares.merge(cells[[*IDENTITY, "word", "peak_memory_bytes", *ARITHMETIC]], on=IDENTITY)
    data = data.merge(begun[[*IDENTITY, "total_seconds"]], on=IDENTITY, how="left")
    data = data.rename(columns={"total_seconds": "startup_seconds"})
    data = common.of_most_threads(data)
    place = data.groupby(PLACE, dropna=False)["seconds"]
    data = data.assign(ratio=data["seconds"].astype(float) / place.transform("min").astype(float))
    data = data.reindex(columns=COLUMNS).reset_index(drop=True)
    common.describe(
        inputs,
        "Registers: the widest that the framework's compiled libraries multiply in, counted in those that the process "
        "had loaded (SSE: 128 bits, AVX and AVX2: 256, AVX-512: 512); `at run time`: some of them can make code for "
        "the processor at hand while they run. Linear algebra: the libraries that are in them.",
        "Start: seconds from the import to the end of the first step. Memory: the most that the process and those "
        "below it had at a time, with data and start values.",
        processes(measured.cells),
    )
    return data, _layout(data)


def _time(row: Row) -> Entry:
    if pd.isna(row["seconds"]):
        words = str(STATUS_WORDS.get(row["status"], row["status"]))
        return Entry(words, tuple(remarks(row)), kind="ours words")
    text = f"{significant(row['seconds'])} {spread(row['seconds'], row['low'], row['high'])}"
    return Entry(text, tuple(remarks(row)), row["ratio"] == 1, "ours")


def _number(heading: str, name: str, scale: float, digits: int, unit: str = "") -> Column:
    def shown(row: Row) -> float | None:
        return row[name] if row["status"] == "ok" else None

    return Column(
        heading, shown, lambda value: significant(value * scale, digits) + unit, kind="ours"
    )


LINES = [
    Column("time per mini-batch (s)", _time),
    _number("times the fastest", "ratio", 1, 2),
    _number("share of peak", "share_of_peak", 100, 2, " %"),
    _number("start (s)", "startup_seconds", 1, 2),
    _number("memory (MiB)", "peak_memory_bytes", 2**-20, 3),
]
NAMES = ["Framework", "Threads", "Registers", "Linear algebra"]


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    # Framework by framework, in the order in which they stand for the first network.
    order = pd.factorize(data["framework_label"])[0]
    runners = ["order", "environment", "mode", "platform"]
    groups = []
    for _, rows in data.assign(order=order).groupby(runners, dropna=False):
        records = rows.to_dict("records")
        known = next((row for row in records if row["vector"]), records[0])
        label = known["framework_label"]
        label += f", {known['platform']}" if data["platform"].nunique() > 1 else ""
        threads = plural(int(known["threads"]), "thread")
        groups.append(((label, threads, registers(known), known["blas"]), records))
    return common.stacked(groups, LINES, NAMES, map(common.of_network, data.to_dict("records")))
