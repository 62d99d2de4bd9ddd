"""Tables of machines: what a paper says of its own, and the same of those that measured here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import IDENTITY
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import OURS, PAPER, TEXT, Entry
from steptime.render.words import cores_text, gibibytes, machine_name, plural, significant

COLUMNS = ["source", "platform", "place", "quantity", "value", "number", "unit", "note"]
TYPES = dict.fromkeys(["place", "quantity", "unit", "note"], TEXT)
NO_COUNTER = "no counter of energy was read on it"
NOT_TIMED = "nothing was timed on it"
NOT_FOUND = "not found on the machine"
GPU_CORES = "the driver does not say how many cores a GPU has"
HERE = "Measured here"
NUMBERS = (
    "What the paper says is the maker's or another's number; what is measured here is the best of this run's "
    "library calls and results. A dash here has its reason; an empty place is something that the paper does not say."
)


@dataclass(frozen=True)
class Machine:
    """What is known of a platform."""

    inputs: Inputs
    platform: str

    @property
    def described(self) -> Row:
        return self.inputs.measured.platforms[self.platform]

    @property
    def peak(self) -> Row:
        """Returns what the machine itself reaches, by its numbers of threads; {} where nothing was measured."""
        return self.inputs.peaks.get(self.platform, {}).get("threads", {})

    def cells(self, network: str = "") -> pd.DataFrame:
        """Returns the platform's timed cells, of one network where it is named."""
        return _of(self.inputs.measured.cells, self.platform, network)

    def samples(self, network: str = "", energy: str = "energy_joules") -> pd.DataFrame:
        """Returns the platform's samples in which a counter of energy was read."""
        rows = _of(self.inputs.measured.rows, self.platform, network)
        return rows[rows[energy].notna()] if len(rows) else rows


def _of(rows: pd.DataFrame, platform: str, network: str) -> pd.DataFrame:
    rows = rows[(rows["platform"] == platform) & rows["seconds"].notna()]
    return rows[rows["network"] == network] if network else rows


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; `value` as text) and the layout.

    The entry's `quantities` says which printed quantities are shown, and which of ours are the same. `not_here` says
    why others are not shown. `down` says what the lines are: devices, their `units` by platform, or quantities.
    """
    entry, rows = inputs.entry, _their_rows(inputs)
    for platform in inputs.measured.platforms:
        machine = Machine(inputs, platform)
        facts = [
            {"quantity": quantity} | fact
            for quantity, key in entry["quantities"].items()
            for fact in MEASURED[key](machine)
        ]
        missing = entry.get("not_here", {}).items()
        facts += [{"quantity": name, "note": why_not} for name, why_not in missing]
        here = {"source": OURS, "platform": platform, "place": machine_name(platform), "note": ""}
        rows += [here | row for row in facts]
    data = pd.DataFrame(rows, columns=COLUMNS)
    common.describe(inputs, *([NUMBERS] if "down" not in entry else []))
    return data, _layout(data, entry, inputs.page.paper)


def _their_rows(inputs: Inputs) -> list[Row]:
    """Returns a row for each device and quantity; several numbers of one, such as lowest and highest, share it."""
    across = inputs.entry.get("down") == "quantities"
    place, quantity = ("column", "row") if across else ("row", "column")
    named = inputs.printed[quantity]
    printed = inputs.printed.assign(quantity=named.str.partition(",")[0])
    shown = {*inputs.entry["quantities"], *inputs.entry.get("not_here", {})}
    printed = printed[printed["quantity"].isin(shown) & ~named.str.endswith(", rounded")]
    names = inputs.catalogue.get("platforms", {})
    return [
        {
            "source": PAPER,
            "platform": names.get(rows["platform"].iloc[0], {}).get("name", ""),
            "place": device,
            "quantity": name,
            "value": f"{' to '.join(rows['value'])} {rows['unit'].iloc[0]}".strip(),
            "number": rows["number"].iloc[0] if len(rows) == 1 else None,
            "unit": rows["unit"].iloc[0],
            "note": "; ".join(dict.fromkeys(filter(None, rows["note"]))),
        }
        for (device, name), rows in printed.groupby([place, "quantity"], sort=False)
    ]


def _layout(data: pd.DataFrame, entry: Row, short: str) -> pd.DataFrame:
    def source(row: Row) -> str:
        return short if row["source"] == PAPER else HERE

    def note(row: Row) -> list[str]:
        return [row["note"].rstrip(".")] if row["note"] else []

    def column(heading: Callable[[Row], Any], kind: str) -> list[Column]:
        def shown(row: Row) -> Any:
            if row["source"] == PAPER or pd.isna(row["value"]):
                return row["value"]
            return Entry(row["value"], tuple(note(row)), False, f"ours {kind}".strip())

        return [Column(heading, shown, str, lambda row: row["note"], kind, note)]

    if entry.get("down") == "quantities":
        shown = column(lambda row: (source(row), row["place"]), "words")
        return columns(data, shown, {"Metric": "quantity"})
    index: dict[str, Any] = {"Source": source, "Platform": "platform", "Device": "place"}
    if entry.get("down") != "units":
        del index["Platform"]
    return columns(data, column(lambda row: row["quantity"], ""), index)[[*entry["quantities"]]]


def _number(value: float, unit: str, note: str) -> list[Row]:
    return [{"value": f"{significant(value)} {unit}", "number": value, "unit": unit, "note": note}]


def _performance(here: Machine) -> list[Row]:
    """Returns operations per second of the machine's own matrix product; without one, of the fastest cell."""
    if here.peak:
        threads, fastest = max(here.peak.items(), key=lambda entry: entry[1]["flops_per_second"])
        of_cpu = f"with {plural(int(threads), 'thread')}"
        by = f"of {fastest['blas']}" if "transfers" in fastest else of_cpu
        note = f"float32, the fastest matrix product {by}"
        return _number(fastest["flops_per_second"] / 1e9, "GFLOP/s", note)
    cells = here.cells()
    speeds = (cells["flops_per_step"] / cells["seconds"]).dropna()
    if speeds.empty:
        return [{"note": NOT_TIMED}]
    note = "float32, of the fastest cell: no matrix product is measured on it"
    return _number(speeds.max() / 1e9, "GFLOP/s", note)


def _bandwidth(here: Machine) -> list[Row]:
    if not here.peak:
        return [{"note": "no peak is measured on it"}]
    threads, fastest = max(here.peak.items(), key=lambda entry: entry[1]["bytes_per_second"])
    note = f"STREAM, read and written, {plural(int(threads), 'thread')}"
    return _number(fastest["bytes_per_second"] / 1e9, "GB/s", note)


def _memory(here: Machine) -> list[Row]:
    size = here.described.get("memory_bytes")
    return _number(size / 1e9, "GB", "of the machine") if size else [{"note": "it is not told"}]


def _clock(here: Machine) -> list[Row]:
    most = here.described.get("cpu", {}).get("most_khz")
    if not most:
        return [{"note": "the kernel does not tell it"}]
    return _number(int(most) / 1e6, "GHz", "the highest, as the kernel tells")


def _speed(here: Machine) -> list[Row]:
    """Returns images per second in training steps of the entry's network, in the fastest framework."""
    network = here.inputs.entry["network"]
    timed = here.cells(network)
    if timed.empty:
        return [{"note": NOT_TIMED}]
    speeds = timed["batch"].astype(float) / timed["seconds"].astype(float)
    best = timed.loc[speeds.idxmax()]
    note = (
        f"trained, {here.inputs.networks[network]['label']} at mini-batch {best['batch']} by "
        f"{best['environment']}; the paper's are classified"
    )
    return _number(speeds.max(), "images/s", note)


def _power(here: Machine) -> list[Row]:
    counted = here.samples()
    if counted.empty:
        return [{"note": NO_COUNTER}]
    counted = counted.assign(spent=counted["seconds"] * counted["steps"])
    runs = counted.groupby(["environment", "mode", "network", "threads", "batch", "repeat"])
    watts = runs["energy_joules"].first() / runs["spent"].sum()
    return _number(watts.max(), "W", "the most of any result")


def _efficiency(here: Machine) -> list[Row]:
    own = here.samples(here.inputs.entry["network"])
    if own.empty:
        return [{"note": NO_COUNTER}]
    runs = own.groupby(["environment", "mode", "threads", "batch", "repeat"])
    images = runs["steps"].sum() * runs["batch"].first() / runs["energy_joules"].first()
    return _number(images.max(), "images/J", "trained, the most")


def _energy(here: Machine) -> list[Row]:
    """Returns operations per joule of the result that has most: by a GPU's own energy, or that of all processors."""
    both = []
    for name, device in (("energy_joules", "gpu"), ("host_energy_joules", "cpu")):
        rows = here.samples(energy=name)
        rows = rows[rows["device"] == device] if len(rows) else rows
        both += [rows.assign(joules=rows[name])] if len(rows) else []
    if not both:
        why = here.described.get("processor_energy", "read")
        return [{"note": NO_COUNTER if why == "read" else why}]
    steps = (
        pd.concat(both)
        .groupby([*IDENTITY, "repeat"], dropna=False)
        .agg(steps=("steps", "sum"), flops=("flops_per_step", "first"), joules=("joules", "first"))
    )
    most = (steps["flops"] * steps["steps"] / steps["joules"]).max()
    return _number(most / 1e9, "GFLOP/J", "of the result that has most")


def _of_units(
    of_cpu: Callable[[Row], str], of_gpu: Callable[[Row], str], no_gpu: str = NOT_FOUND
) -> Any:
    """Returns a function that says something of each processor and GPU of a machine."""

    def facts(here: Machine) -> list[Row]:
        machine = here.described
        cpu = machine.get("cpu", {}).get("model") or "CPU"
        units = [(cpu, of_cpu(machine), NOT_FOUND)]
        units += [(gpu["model"], of_gpu(machine | gpu), no_gpu) for gpu in machine.get("gpus", [])]
        return [
            {"place": unit, "value": text} if text else {"place": unit, "note": missing}
            for unit, text, missing in units
        ]

    return facts


def _memory_text(machine: Row) -> str:
    return gibibytes(machine.get("memory_bytes"))


def _system(machine: Row) -> str:
    system = " ".join(filter(None, (machine.get("os"), machine.get("kernel"))))
    return f"{system}, driver {machine['driver']}" if machine.get("driver") else system


MEASURED: dict[str, Callable[[Machine], list[Row]]] = {
    "performance": _performance,
    "bandwidth": _bandwidth,
    "memory": _memory,
    "clock": _clock,
    "speed": _speed,
    "power": _power,
    "efficiency": _efficiency,
    "energy": _energy,
    "unit_cores": _of_units(
        lambda machine: cores_text(machine.get("cpu", {})), lambda gpu: "", GPU_CORES
    ),
    "unit_memory": _of_units(_memory_text, _memory_text),
    "unit_system": _of_units(_system, _system),
}
