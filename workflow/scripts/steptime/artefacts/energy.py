"""The energy of each sample that training steps take in, where a counter of it may be read; else why there is none."""

from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, raw_data, significant, status_reason

COLUMNS = [*IDENTITY, "network_label", "framework", "framework_version", "framework_label"]
COLUMNS += ["status", "reason", "joules_per_sample", "watts", "joules_by"]
# By what a GPU's energy is known (machine.gpu), in words.
BY = {
    "counter": "NVML's counter of the GPU",
    "power": "NVML's power of the GPU over the time",
    "rapl": "RAPL of all processors",
}
NOTHING_READ = "no energy was read on it"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS; joules, watts) and the layout."""
    data = common.labelled(used(inputs.measured), inputs.frameworks, inputs.networks)
    data = data.reindex(columns=COLUMNS)
    inputs.page.facts = facts(inputs.measured)
    inputs.page.notes = [
        "Energy over all samples of a cell, divided by the samples of their mini-batches. Of a GPU it is that of the "
        "card alone, idle share included; of a CPU, that of all processors of the machine, whatever else they did. The "
        "two are not the same quantity: neither holds the rest of the machine.",
        *inputs.page.notes,
        raw_data(inputs.measured),
    ]
    return data, _layout(data)


def used(measured: Measured) -> pd.DataFrame:
    """One row for each cell: joules a sample, watts, by what they are known, or as `reason` why they are not."""
    rows = measured.rows
    if rows.empty:
        return pd.DataFrame(columns=[*COLUMNS])
    found = [_of(group, measured) for _, group in rows.groupby(IDENTITY, sort=False, dropna=False)]
    return pd.DataFrame(found)


def _of(rows: pd.DataFrame, measured: Measured) -> dict[str, Any]:
    timed = rows[rows["status"] == "ok"]
    row = (timed if len(timed) else rows).iloc[0].to_dict()
    row["network"] = common.whole_name(row)
    machine = measured.machines.get(row["machine_id"], {})
    on_gpu = row["device"] == "gpu"
    row["joules_by"] = (machine.get("gpu_energy") or "") if on_gpu else "rapl"
    counted = timed[timed["energy_joules" if on_gpu else "host_energy_joules"].notna()]
    counted = counted[counted["seconds"].notna()]
    if counted.empty:
        row["joules_by"] = ""
        why = "" if on_gpu else machine.get("processor_energy", "")
        if len(timed):
            row["reason"] = NOTHING_READ if why in ("", "read") else why
        return row
    processes = counted.assign(spent=counted["seconds"] * counted["steps"]).groupby("repeat")
    joules = processes["energy_joules" if on_gpu else "host_energy_joules"].first().sum()
    row["joules_per_sample"] = joules / (processes["steps"].sum().sum() * row["batch"])
    row["watts"] = joules / processes["spent"].sum().sum()
    return row


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    body, index = [], []
    for row in data.to_dict("records"):
        place = [row["platform"]]
        place += [] if row["device"] == "gpu" else [plural(row["threads"], "thread")]
        if row["devices"] > 1:
            place += [plural(row["devices"], "device"), row["exchange"]]
        index.append(
            (
                f"{row['network_label']}, batch {row['batch']}",
                row["framework_label"],
                ", ".join(place),
            )
        )
        if pd.isna(row["joules_per_sample"]):
            why = (
                row["reason"]
                if row["status"] == "ok"
                else status_reason(row["status"], row["reason"])
            )
            body.append([common.dash(why)] * 2 + [Entry("")])
        else:
            numbers = (row["joules_per_sample"], row["watts"])
            body.append([*(Entry(significant(each), kind="ours") for each in numbers)])
            body[-1].append(Entry(BY[row["joules_by"]], kind="words"))
    names = ["Network", "Framework", "Place"]
    columns = pd.Index(["Joules a sample", "Watts", "By"])
    empty = pd.MultiIndex.from_arrays([[], [], []], names=names)
    lines = pd.MultiIndex.from_tuples(index, names=names) if index else empty
    return pd.DataFrame(body, index=lines, columns=columns, dtype=object)
