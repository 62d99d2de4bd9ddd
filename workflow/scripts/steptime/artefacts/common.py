"""How rows are named, placed and ordered in the tables and figures of all networks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from shared.precisions import USUAL
from steptime.artefacts.inputs import Inputs
from steptime.imported.digest import function_digest
from steptime.merge.measured import Measured
from steptime.plain import plural
from steptime.plan.cell import IDENTITY
from steptime.render import words
from steptime.render.columns import Column, Row, laid_out
from steptime.render.frameworks import Frameworks
from steptime.render.tables import PAPER

# What tidy rows begin with that have one row for each cell.
NAMED = [*IDENTITY, "network_label", "framework", "framework_label", "status", "reason"]
PLACES = ["platform", "devices", "threads"]


def labelled(rows: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]) -> pd.DataFrame:
    """Returns rows with `network_label` and `framework_label`, sorted by network, mini-batch, framework, version, mode,
    place.

    Needs network (a variant by its own name), environment, framework, framework_version and mode.
    """
    named = rows.assign(
        network_label=[catalogue[name].get("label", name) for name in rows["network"]],
        framework_label=words.environment_labels(frameworks, rows),
    )
    place = pd.DataFrame(
        {
            "network": rows["network"].map(list(catalogue).index),
            **({"batch": rows["batch"]} if "batch" in rows else {}),
            "framework": [frameworks[name].order for name in rows["framework"]],
            "environment": rows["environment"].map(words.version_order),
            # The first mode seen is the framework's default.
            "mode": rows["mode"].map({mode: at for at, mode in enumerate(rows["mode"].unique())}),
        }
    )
    axes = [name for name in ("precision", "platform", "threads", "devices") if name in rows]
    place = place.join(rows[axes])
    if "precision" in place:
        place["precision"] = place["precision"] != USUAL
    return named.loc[place.sort_values(list(place), kind="stable").index].reset_index(drop=True)


def cells_of(inputs: Inputs) -> pd.DataFrame:
    """Returns the measured results of an artefact's cells, named and in order; variants have their own names."""
    cells = whole(inputs.measured.cells)
    return labelled(cells, inputs.frameworks, inputs.networks)


def whole(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns rows whose `network` is the variant's name where they have a variant."""
    variant = rows["variant"].fillna("")
    return rows.assign(variant=variant, network=variant.where(variant != "", rows["network"]))


def of_network(row: Mapping[str, Any]) -> str:
    """Returns the heading of a row's network: 'FCN-5, batch 64'."""
    return f"{row['network_label']}, batch {row['batch']}"


def place_of(row: Mapping[str, Any]) -> str:
    """Says where a row was measured: 'this machine, 2 threads'; of a GPU its platform."""
    machine, threads = words.machine_name(row["platform"]), int(row["threads"])
    return machine if row.get("device") == "gpu" else f"{machine}, {plural(threads, 'thread')}"


def ranks_of(row: Mapping[str, Any]) -> str:
    """Says on how many devices a row was measured, and how they share gradients: '2 x 1 thread, sync'."""
    ranks = f"{row['devices']} x {plural(row['threads'], 'thread')}"
    return f"{ranks}, {row['exchange']}" if row["exchange"] else ranks


def ratio_of(row: Row) -> str | None:
    """Returns a row's ratio with its interval, None where it has none."""
    return None if pd.isna(row["ratio"]) else words.ranged(row["ratio"], row["low"], row["high"])


def number(heading: str, of: str, scale: float = 1, digits: int = 2, kind: str = "ours") -> Column:
    """Returns a table's column that shows the number `of` a row, times `scale`, where the row was timed."""

    def shown(row: Row) -> float | None:
        return None if pd.isna(row["seconds"]) else row[of]

    return Column(heading, shown, lambda value: words.significant(value * scale, digits), kind=kind)


def stacked(
    groups: Iterable[tuple[tuple[Any, ...], list[Row]]],
    lines: Sequence[Column],
    names: Sequence[str],
    headings: Iterable[str],
) -> pd.DataFrame:
    """Returns a layout with networks across: in each group, one line for each of `lines` that has an entry."""
    shown = []
    for name, rows in groups:
        for line in lines:
            entries = {of_network(row): line.entry(row) for row in rows}
            if line is lines[0] or any(entry.text for entry in entries.values()):
                shown.append(((*name, line.heading), entries))
    return laid_out(shown, [*names, ""], headings)


def imported(catalogue: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Says of each imported network that nobody has edited since which module it is the same function as."""
    entries = (catalogue.get(name, {}) for name in dict.fromkeys(names))
    return [
        f"{entry['label']} is the same function as {entry['same_as']}."
        for entry in entries
        if f"layers {function_digest(entry)}" in entry.get("same_as", "")
    ]


def describe(inputs: Inputs, *notes: str, measured: Measured | None = None) -> None:
    """Fills a table's page: facts of what was measured, `notes`, the entry's notes, and where the rows are."""
    measured = measured or inputs.measured
    *inputs.page.facts, rows = words.origin(measured)
    inputs.page.notes = [*notes, *inputs.page.notes, rows]


def of_most_threads(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["threads"] == rows.groupby("platform")["threads"].transform("max")]


def by_threads(what: str) -> Callable[[Row], tuple[str, str]]:
    """Returns a function of a row that gives its column's heading: 'this machine, GFLOP/s, threads' above '2 x 2'."""

    def heading(row: Row) -> tuple[str, str]:
        devices = f" x {row['devices']}" if row["devices"] > 1 else ""
        machine = words.machine_name(row["platform"])
        return f"{machine}, {what}, threads", f"{row['threads']}{devices}"

    return heading


def printed_rows(inputs: Inputs) -> list[Row]:
    """Returns what the paper printed as rows like ours; mini-batch and threads are None where the paper names none."""
    paper, kept = inputs.catalogue, ("network", "framework", "platform", "status", "reason")
    return [
        {name: row[name] for name in (*kept, "unit", "value")}
        | {name: int(row[name]) if row[name] else None for name in ("batch", "threads")}
        | {"device": paper["platforms"][row["platform"]]["device"], "devices": 1, "variant": ""}
        | {"label": inputs.frameworks.printed(row["framework"], paper), "seconds": row["number"]}
        | {"source": PAPER}
        for row in inputs.printed.to_dict("records")
    ]
