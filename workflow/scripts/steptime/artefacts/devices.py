"""The table of devices: what a paper's text says of each in numbers, and the same of the machines that are here."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.render.tables import DASH, OURS, PAPER, Entry, Page
from steptime.render.words import facts, plural, raw_data, significant

COLUMNS = ["source", "device", "quantity", "value", "unit", "note"]
NO_COUNTER = "no counter of energy was read on it"
NOT_TIMED = "no cell of it was timed"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    made = inputs.measured, inputs.peaks, inputs.printed, inputs.networks
    return build(*made, inputs.entry, inputs.page)


def build(
    measured: Measured,
    peaks: dict[str, dict[str, Any]],
    printed: pd.DataFrame,
    networks: dict[str, Any],
    artefact: dict[str, Any],
    page: Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout: devices down, quantities across.

    The artefact's `quantities` says which printed columns are shown, and what is measured of the same; a printed column
    may be followed by ", lowest" and such.
    """
    rows = _their_rows(printed, artefact["quantities"])
    for platform in measured.platforms:
        cells = measured.cells[measured.cells["platform"] == platform]
        samples = measured.rows[measured.rows["platform"] == platform]
        for quantity, key in artefact["quantities"].items():
            found = HERE[key](measured, platform, cells, samples, peaks, artefact, networks)
            rows.append({"source": OURS, "device": platform, "quantity": quantity} | found)
    data = pd.DataFrame(rows, columns=COLUMNS)
    page.facts = facts(measured)
    page.notes = [
        "What the paper says is the maker's or another's number; what is measured here is the best of this run's "
        "library calls and cells. A dash here has its reason; an empty place is something that the paper does not say.",
        *page.notes,
        raw_data(measured),
    ]
    return data, _layout(data, list(artefact["quantities"]), page.paper)


def _their_rows(printed: pd.DataFrame, quantities: dict[str, str]) -> list[dict[str, Any]]:
    """A row for each device and quantity; several numbers of one, such as a lowest and a highest, stand together."""
    known = printed.assign(quantity=[name.partition(",")[0] for name in printed["column"]])
    known = known[known["quantity"].isin(quantities) & ~known["column"].str.endswith(", rounded")]
    return [
        {
            "source": PAPER,
            "device": device,
            "quantity": quantity,
            "value": " to ".join(rows["value"]),
            "unit": rows["unit"].iloc[0],
            "note": "; ".join(filter(None, rows["note"])),
        }
        for (device, quantity), rows in known.groupby(["row", "quantity"], sort=False)
    ]


def _performance(measured, platform, cells, samples, peaks, artefact, networks):
    return _of_peak(peaks.get(platform), "flops_per_second", "GFLOP/s", "float32, matrix product")


def _bandwidth(measured, platform, cells, samples, peaks, artefact, networks):
    return _of_peak(peaks.get(platform), "bytes_per_second", "GB/s", "STREAM, read and written")


def _of_peak(peak: dict[str, Any] | None, key: str, unit: str, what: str) -> dict[str, Any]:
    if not peak:
        return {"note": "no peak is measured on it"}
    threads, best = max(
        ((int(count), found[key]) for count, found in peak["threads"].items()),
        key=lambda entry: entry[1],
    )
    note = f"{what}, {plural(threads, 'thread')}"
    return {"value": significant(best / 1e9), "unit": unit, "note": note}


def _memory(measured, platform, cells, samples, peaks, artefact, networks):
    size = measured.platforms[platform].get("memory_bytes")
    return (
        {"value": significant(size / 1e9), "unit": "GB", "note": "of the machine"}
        if size
        else {"note": "it is not told"}
    )


def _clock(measured, platform, cells, samples, peaks, artefact, networks):
    most = measured.platforms[platform].get("cpu", {}).get("most_khz")
    return (
        {
            "value": significant(int(most) / 1e6),
            "unit": "GHz",
            "note": "the highest, as the kernel tells",
        }
        if most
        else {"note": "the kernel does not tell it"}
    )


def _speed(measured, platform, cells, samples, peaks, artefact, networks):
    """Images of training steps a second, of the artefact's network by whoever is fastest."""
    timed = cells[(cells["network"] == artefact["network"]) & cells["seconds"].notna()]
    if timed.empty:
        return {"note": NOT_TIMED}
    speeds = (timed["batch"].astype(float) / timed["seconds"].astype(float)).astype(float)
    best = timed.loc[speeds.idxmax()]
    label = networks[artefact["network"]]["label"]
    note = f"trained, {label} at mini-batch {best['batch']} by {best['environment']}; the paper's are classified"
    return {"value": significant(speeds.max()), "unit": "images/s", "note": note}


def _power(measured, platform, cells, samples, peaks, artefact, networks):
    counted = samples[samples["energy_joules"].notna() & samples["seconds"].notna()]
    if counted.empty:
        return {"note": NO_COUNTER}
    runs = counted.groupby(["environment", "mode", "network", "threads", "batch", "repeat"])
    watts = runs["energy_joules"].first() / runs.apply(
        lambda rows: (rows["seconds"] * rows["steps"]).sum()
    )
    return {"value": significant(watts.max()), "unit": "W", "note": "the most of any cell"}


def _efficiency(measured, platform, cells, samples, peaks, artefact, networks):
    own = samples[(samples["network"] == artefact["network"]) & samples["energy_joules"].notna()]
    if own.empty:
        return {"note": NO_COUNTER}
    runs = own.groupby(["environment", "mode", "threads", "batch", "repeat"])
    images = runs["steps"].sum() * runs["batch"].first() / runs["energy_joules"].first()
    return {"value": significant(images.max()), "unit": "images/J", "note": "trained, the most"}


HERE: dict[str, Callable[..., dict[str, Any]]] = {
    "performance": _performance,
    "bandwidth": _bandwidth,
    "memory": _memory,
    "clock": _clock,
    "speed": _speed,
    "power": _power,
    "efficiency": _efficiency,
}


def _layout(data: pd.DataFrame, quantities: list[str], short: str) -> pd.DataFrame:
    table: dict[tuple[str, str], dict[str, Entry]] = {}
    for row in data.to_dict("records"):
        there = row["source"] == PAPER
        known = isinstance(row["value"], str)
        notes = (row["note"].rstrip("."),) if isinstance(row["note"], str) and row["note"] else ()
        text = f"{row['value']} {row['unit']}" if known else DASH
        place = (short if there else "measured here", row["device"])
        table.setdefault(place, {})[row["quantity"]] = Entry(text, notes, kind=row["source"])
    index = pd.MultiIndex.from_tuples(table, names=["Source", "Device"])
    body = [[entries.get(name, Entry()) for name in quantities] for entries in table.values()]
    return pd.DataFrame(body, index, quantities, object)
