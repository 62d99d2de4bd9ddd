"""The answer in the terminal: the matrices of the report's first page as text, the fastest framework first."""

import textwrap
from collections import Counter
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import ratios
from steptime.machine import interference
from steptime.page.answer import matrices
from steptime.plain import plural
from steptime.plan.cell import IDENTITY
from steptime.render.tables import DASH
from steptime.render.words import significant
from steptime.say import WIDEST

# With what `page.summary` says besides, 24 lines.
MOST_LINES = 14
# The name of a network in the catalogue, by its label and mini-batch.
Names = dict[tuple[str, int], str]


def lines(inputs: Inputs) -> list[str]:
    """Returns, for each device, networks by frameworks at all threads, what the signs mean, and who is fastest."""
    rows = _rows(inputs)
    keys = zip(rows["network_label"], rows["batch"], strict=True)
    names = dict(zip(keys, rows["network"], strict=True))
    timed = [each for each in matrices(rows) if rows.loc[each["rows"], "seconds"].notna().any()]
    devices: dict[tuple[str, int], dict[str, Any]] = {}
    for place in timed:
        devices.setdefault(place["device"], place)
    shown: list[str] = []
    for place in devices.values():
        matrix, left = _matrix(place, names), MOST_LINES - len(shown)
        if shown and len(matrix) > left:
            break
        if len(matrix) > left:
            matrix = [*matrix[: left - 1], f"... and {len(matrix) - left + 1} more in the report"]
        shown += [*matrix, ""]
    if not shown:
        return []
    signs = "ms of the shortest time, × times as long, ? not decided"
    marks = ", * disturbed" if rows["marks"].str.contains("disturbed").any() else ""
    mean = "overall: times the first, with its interval"
    where = f"{timed[0]['title']}: " if len(devices) > 1 else ""
    says = textwrap.wrap(f"{where}{timed[0]['says']}", WIDEST)
    return [*shown[:-1], f"({signs}{marks}; {mean})", "", *says]


def disturbed(inputs: Inputs) -> list[str]:
    """Names the results that were measured while something else was at work."""
    rows = _rows(inputs)
    return [
        f"{row['framework_label']} on {row['network']} with {plural(row['threads'], 'thread')}"
        for row in rows[rows["marks"].str.contains("disturbed")].to_dict("records")
    ]


def seconds_again(inputs: Inputs) -> float:
    """Returns how many seconds the disturbed runs have taken, which `cells.again` measures once more."""
    runs = inputs.measured.rows.drop_duplicates([*IDENTITY, "repeat"])
    took = (runs["ended_at"] - runs["started_at"]).dt.total_seconds()
    are_disturbed = [interference.disturbed(row) for row in runs.to_dict("records")]
    return float(took[are_disturbed].sum())


def _rows(inputs: Inputs) -> pd.DataFrame:
    rows, _ = ratios.table(inputs)
    # PyTorch's own versions end so.
    return rows.assign(framework_label=rows["framework_label"].str.replace("+cpu", "", regex=False))


def _matrix(place: dict[str, Any], names: Names) -> list[str]:
    """Returns the lines of one place: a heading, and one for each framework, in the order of their overall means."""
    means, networks = place["overall"], place["lines"]
    meant = [name for name, mean in means.items() if mean["mean"] != DASH]
    count = sum(
        all("at" in entries.get(name, {}) for name in meant) for entries in networks.values()
    )
    total = "overall" if count == len(networks) else f"overall, of {count}"
    sizes = Counter(names[key] for key in networks)
    headings = [
        f"{names[key]}/{key[1]}" if sizes[names[key]] > 1 else names[key] for key in networks
    ]
    body = [
        [name, *(_entry(entries.get(name)) for entries in networks.values()), _mean(mean)]
        for name, mean in means.items()
    ]
    return _aligned([[place["title"], *headings, total], *body])


def _entry(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return ""
    if "at" not in entry:
        return DASH
    is_shortest = entry["is_shortest"]
    text = significant(1000 * entry["seconds"], 4) if is_shortest else entry["ratio"]
    text = text.replace(" ", "")
    return f"{text}*" if entry["disturbed"] else text


def _mean(mean: dict[str, str]) -> str:
    interval = f" ({mean['interval']})" if mean["interval"] else ""
    return mean["mean"].replace(" ×", "") + interval


def _aligned(table: list[list[str]]) -> list[str]:
    """Returns lines of aligned columns, without the last networks where the lines would be too wide."""
    while True:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        if sum(widths) + 2 * len(widths) <= WIDEST or len(widths) < 4:
            break
        table = [[*line[:-2], line[-1]] for line in table]
        table[0][-1] = f"... {table[0][-1].removeprefix('... ')}"
    return [
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
