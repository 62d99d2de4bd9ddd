"""Table of energy per sample of training steps, where a counter of it can be read; elsewhere, why there is none."""

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import TEXT
from steptime.render.words import plural, significant, why_or

COLUMNS = [*IDENTITY, "network_label", "framework", "framework_version", "framework_label"]
COLUMNS += ["status", "reason", "joules_per_sample", "watts", "joules_by"]
TYPES = {"joules_by": TEXT}
# By what a GPU's energy is known (machine.gpu), in words.
BY = {
    "counter": "NVML's counter of the GPU",
    "power": "NVML's power of the GPU over the time",
    "rapl": "RAPL of all processors",
}
NOTHING_READ = "no energy was read on it"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; joules, watts) and the layout."""
    data = common.labelled(used(inputs.measured), inputs.frameworks, inputs.networks)
    data = data.reindex(columns=COLUMNS)
    common.describe(
        inputs,
        "Energy over all samples of a result, divided by the samples of their mini-batches. Of a GPU it is that of the "
        "card alone, idle share included; of a CPU, that of all processors of the machine, whatever else they did. The "
        "two are not the same quantity: neither holds the rest of the machine.",
    )
    return data, columns(data, SHOWN, INDEX)


def used(measured: Measured) -> pd.DataFrame:
    """Returns one row for each cell: joules a sample, watts, how they were measured, or as `reason` why not."""
    rows = measured.rows
    uses = [_of(group, measured) for _, group in rows.groupby(IDENTITY, sort=False, dropna=False)]
    return pd.DataFrame(uses)


def _of(rows: pd.DataFrame, measured: Measured) -> Row:
    timed = rows[rows["status"] == "ok"]
    row = (timed if len(timed) else rows).iloc[0].to_dict()
    row["network"] = row["variant"] or row["network"]
    machine = measured.machines.get(row["machine_id"], {})
    on_gpu = row["device"] == "gpu"
    row["joules_by"] = (machine.get("gpu_energy") or "") if on_gpu else "rapl"
    counter = "energy_joules" if on_gpu else "host_energy_joules"
    counted = timed[timed[counter].notna() & timed["seconds"].notna()]
    if counted.empty:
        row["joules_by"] = ""
        why = "" if on_gpu else machine.get("processor_energy", "")
        if len(timed):
            row["reason"] = NOTHING_READ if why in ("", "read") else why
        return row
    processes = counted.assign(spent=counted["seconds"] * counted["steps"]).groupby("repeat")
    joules = processes[counter].first().sum()
    row["joules_per_sample"] = joules / (processes["steps"].sum().sum() * row["batch"])
    row["watts"] = joules / processes["spent"].sum().sum()
    return row


def _place(row: Row) -> str:
    several = [plural(row["devices"], "device"), row["exchange"]] if row["devices"] > 1 else []
    return ", ".join([common.place_of(row), *several])


NOT_READ = why_or(lambda row: row["reason"])
SHOWN = [
    Column("Joules a sample", "joules_per_sample", significant, NOT_READ, "ours"),
    Column("Watts", "watts", significant, NOT_READ, "ours"),
    Column("By", lambda row: BY.get(row["joules_by"]), kind="words"),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label", "Place": _place}
