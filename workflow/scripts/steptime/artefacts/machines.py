"""The table of the machines: those that measured here beside the paper's."""

from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.render.tables import DASH, Entry
from steptime.render.words import cores_text, gibibytes, raw_data

COLUMNS = ["source", "platform", "unit", "cores", "memory", "os", "note"]
HEADINGS = {"cores": "Cores", "memory": "Memory", "os": "Operating system"}
NOT_FOUND = "not found on the machine"
GPU_CORES = "the driver does not say how many cores a GPU has"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, texts) and the layout; fills the page's notes and footnotes."""
    measured, printed, paper = inputs.measured, inputs.printed, inputs.catalogue
    page = inputs.page
    rows = [
        row
        for platform, machine in measured.platforms.items()
        for row in _our_rows(platform, machine)
    ]
    rows += _their_rows(printed, paper)
    data = pd.DataFrame(rows, columns=COLUMNS)
    body = []
    for row in data.to_dict("records"):
        entries = []
        for column in HEADINGS:
            missing = GPU_CORES if row["note"] == "GPU" and column == "cores" else NOT_FOUND
            entries.append(Entry(row[column]) if row[column] else Entry(DASH, (missing,)))
        # The kind of unit only chooses the footnote; what the paper adds on its machines is shown.
        entries.append(Entry("" if row["source"] == "here" else row["note"], kind="words"))
        body.append(entries)
    index = pd.MultiIndex.from_arrays(
        [data["source"].replace({"here": "Here"}), data["platform"], data["unit"]],
        names=["Measured", "Platform", "Computational unit"],
    )
    layout = pd.DataFrame(body, index=index, columns=[*HEADINGS.values(), "Note"], dtype=object)
    page.notes = [raw_data(measured), *page.notes]
    return data, layout


def _our_rows(platform: str, machine: dict[str, Any]) -> list[dict[str, Any]]:
    cpu = machine.get("cpu", {})
    system = " ".join(part for part in (machine.get("os"), machine.get("kernel")) if part)
    common = {"source": "here", "platform": platform, "os": system}
    rows = [
        {
            **common,
            "unit": cpu.get("model") or "CPU",
            "cores": cores_text(cpu),
            "memory": gibibytes(machine.get("memory_bytes")),
            "note": "CPU",
        }
    ]
    for gpu in machine.get("gpus", []):
        driver = f"{system}, driver {gpu['driver']}" if gpu.get("driver") else system
        memory = gibibytes(gpu.get("memory_bytes"))
        rows.append(
            {
                **common,
                "unit": gpu["model"],
                "cores": "",
                "memory": memory,
                "os": driver,
                "note": "GPU",
            }
        )
    return rows


def _their_rows(printed: pd.DataFrame, paper: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for unit, cells in printed.groupby("row", sort=False):
        value = {
            row["column"]: f"{row['value']} {row['unit']}".strip()
            for row in cells.to_dict("records")
        }
        rows.append(
            {
                "source": paper["short"],
                "platform": paper["platforms"][cells["platform"].iloc[0]]["name"],
                "unit": unit,
                "cores": value["Cores"],
                "memory": value["Memory"],
                "os": value["OS"],
                "note": cells["note"].iloc[0],
            }
        )
    return rows
