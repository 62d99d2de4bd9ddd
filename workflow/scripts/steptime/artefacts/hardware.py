"""The table of kinds of hardware by metric: as the paper ranks them, and as measured on each platform."""

from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY
from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, OURS, PAPER, Entry, Page
from steptime.render.words import environment_label, facts, plural, raw_data, significant

COLUMNS = ["source", "metric", "place", "value", "number", "unit", "note"]
NOT_TIMED = "no cell was timed on it"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    made = inputs.measured, inputs.peaks, inputs.printed, inputs.frameworks
    return build(*made, inputs.entry, inputs.page)


def build(
    measured: Measured,
    peaks: dict[str, dict[str, Any]],
    printed: pd.DataFrame,
    frameworks: Frameworks,
    artefact: dict[str, Any],
    page: Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout: metrics down, the paper's kinds of device and our platforms across.

    The artefact's `here` says which metrics are measured, its `not_here` why the others are not.
    """
    rows = [
        {
            "source": PAPER,
            "metric": row["row"],
            "place": row["column"],
            "value": row["value"],
            "note": row["note"],
        }
        for row in printed.to_dict("records")
    ]
    for platform in measured.platforms:
        cells = measured.cells[measured.cells["platform"] == platform]
        samples = measured.rows[measured.rows["platform"] == platform]
        known = {
            "performance": _performance(cells, peaks.get(platform)),
            "latency": _latency(cells, frameworks),
            "energy": _energy(samples, measured.platforms[platform]),
            "compatibility": _compatibility(cells),
        }
        for metric in printed["row"].unique():
            key = artefact["here"].get(metric)
            found = known[key] if key else {"note": artefact["not_here"][metric]}
            rows.append({"source": OURS, "metric": metric, "place": platform} | found)
    data = pd.DataFrame(rows, columns=COLUMNS)
    page.facts = facts(measured)
    page.notes = [*page.notes, raw_data(measured)]
    return data, _layout(data, page.paper)


def _performance(cells: pd.DataFrame, peak: dict[str, Any] | None) -> dict[str, Any]:
    """Operations per second: of the machine's own matrix product, or where none is measured, of the fastest cell."""
    if peak and peak["threads"]:
        threads, found = max(
            peak["threads"].items(), key=lambda entry: entry[1]["flops_per_second"]
        )
        by = (
            f"of {found['blas']}"
            if "transfers" in found
            else f"with {plural(int(threads), 'thread')}"
        )
        note = f"float32, the fastest matrix product {by}"
        return _number(found["flops_per_second"] / 1e9, "GFLOP/s", note)
    speeds = (cells["flops_per_step"] / cells["seconds"]).dropna()
    if speeds.empty:
        return {"note": NOT_TIMED}
    return _number(
        speeds.max() / 1e9,
        "GFLOP/s",
        "float32, of the fastest cell: no matrix product is measured on it",
    )


def _latency(cells: pd.DataFrame, frameworks: Frameworks) -> dict[str, Any]:
    timed = cells[cells["seconds"].notna()]
    if timed.empty:
        return {"note": NOT_TIMED}
    cell = timed.loc[timed["seconds"].idxmin()]
    framework = environment_label(frameworks, cell.to_dict(), False)
    place = f"{cell['variant'] or cell['network']}, mini-batch {cell['batch']}, {framework}"
    return _number(cell["seconds"], "s", f"the shortest training step of any cell: {place}")


def _energy(samples: pd.DataFrame, machine: dict[str, Any]) -> dict[str, Any]:
    """Operations per joule of the cell that has most of them; a cell's energy is that of all its sampled steps: of a
    GPU its own, of a CPU that of all processors of the machine.
    """
    samples = samples.assign(
        energy_joules=samples["energy_joules"].where(
            samples["device"] != "cpu", samples["host_energy_joules"]
        )
    )
    counted = samples[samples["energy_joules"].notna() & samples["seconds"].notna()]
    if counted.empty:
        why = machine.get("processor_energy", "read")
        return {"note": "no counter of energy was read on it" if why == "read" else why}
    steps = counted.groupby([*IDENTITY, "repeat"], dropna=False).agg(
        steps=("steps", "sum"), flops=("flops_per_step", "first"), joules=("energy_joules", "first")
    )
    most = (steps["flops"] * steps["steps"] / steps["joules"]).max()
    return _number(most / 1e9, "GFLOP/J", "of the cell that has most")


def _compatibility(cells: pd.DataFrame) -> dict[str, Any]:
    environments = cells["environment"].nunique()
    ran = cells.loc[cells["status"] == "ok", "environment"].nunique()
    note = "environments of which a cell was timed on it"
    return {
        "value": f"{ran} of {environments}",
        "number": ran,
        "unit": "environments",
        "note": note,
    }


def _number(value: float, unit: str, note: str) -> dict[str, Any]:
    return {"value": f"{significant(value)} {unit}", "number": value, "unit": unit, "note": note}


def _layout(data: pd.DataFrame, short: str) -> pd.DataFrame:
    table: dict[str, dict[tuple[str, str], Entry]] = {}
    for row in data.to_dict("records"):
        group = short if row["source"] == PAPER else "Measured here"
        notes = (row["note"].rstrip("."),) if row["note"] else ()
        text = row["value"] if isinstance(row["value"], str) else DASH
        table.setdefault(row["metric"], {})[group, row["place"]] = Entry(
            text, notes, kind=f"{row['source']} words"
        )
    columns = list(dict.fromkeys(column for entries in table.values() for column in entries))
    body = [[entries[column] for column in columns] for entries in table.values()]
    return pd.DataFrame(
        body, pd.Index(table, name="Metric"), pd.MultiIndex.from_tuples(columns), object
    )
