"""The table of the transfer model (Wünsche 2018, section IV-B): how long memory takes to fill several devices."""

from typing import Any

import pandas as pd

from steptime.artefacts.devices import exchange
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plain import machine_name
from steptime.reading import InputError
from steptime.render.columns import dash, laid_out
from steptime.render.tables import TEXT, Entry

COLUMNS = ["quantity", "key", "unit", "formula", "place", "value", "printed", "ratio", "reason"]
TYPES = dict.fromkeys(["quantity", "key", "unit", "formula", "place", "printed"], TEXT)
INPUTS = ("bandwidth", "memory", "devices", "waited_for", "compute")
FORMULAS = {
    "transfer_one": "memory ÷ bandwidth",
    "transfer_all": "devices × transfer to one",
    "transfer_others": "devices waited for × transfer to one",
    "idle": "transfer to those waited for − calculation",
    "effective_share": "calculation ÷ transfer to those waited for",
    "lost_share": "100 % − effective share",
    "raid": "SSDs × read speed of one",
}
AS_PRINTED = "calculated"
GIGA = 1e9


def evaluate(
    bandwidth: float, memory: float, devices: float, waited_for: float, compute: float
) -> dict[str, float]:
    """Computes seconds and percent from GB/s, GB and seconds. A device that never waits has 100 %."""
    one = memory / bandwidth
    others = waited_for * one
    share = 100 * compute / max(others, compute)
    return {
        "transfer_one": one,
        "transfer_all": devices * one,
        "transfer_others": others,
        "idle": max(0.0, others - compute),
        "effective_share": share,
        "lost_share": 100 - share,
    }


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout: quantities as printed, from printed inputs, and by ours."""
    printed, peaks, page = inputs.printed, inputs.peaks, inputs.page
    summed = summed_per_second(inputs.parts)
    rows = printed.set_index("column")
    missing = [name for name in INPUTS if name not in rows.index]
    if missing:
        raise InputError(
            f"The transfer model needs a row with the column '{missing[0]}' in its printed numbers: add it."
        )
    theirs = rows["number"].to_dict()
    copied = {
        machine_name(name): copied_per_second(peak)
        for name, peak in peaks.items()
        if peak["threads"]
    }
    copied |= {
        f"{machine_name(platform)}, sums over ranks": most for platform, most in summed.items()
    }
    disks = {
        f"{machine_name(name)}, disk": peak["disk_bytes_per_second"]
        for name, peak in peaks.items()
        if peak.get("disk_bytes_per_second")
    }
    between = {f"{name}, between GPUs": between_gpus(peak) for name, peak in peaks.items()}
    linked = {place: most for place, (most, _) in between.items() if most}
    absent = {place: why for place, (_, why) in between.items() if why}
    given = {name: theirs[name] for name in INPUTS}
    values = {AS_PRINTED: given | evaluate(**given)}
    values[AS_PRINTED] |= {"ssd": theirs["ssd"], "ssds": theirs["ssds"]}
    values[AS_PRINTED] |= {"raid": theirs["ssd"] * theirs["ssds"]}
    for place, most in (copied | disks | linked).items():
        model = given | {"bandwidth": most / GIGA}
        values[place] = model | evaluate(**model)
        values[place] |= {"ssd": model["bandwidth"]} if place in disks else {}
    values |= {place: dict.fromkeys(["bandwidth", *FORMULAS]) for place in absent}
    quantities = [
        {
            "quantity": row["row"],
            "key": key,
            "unit": row["unit"],
            "formula": FORMULAS.get(key, ""),
            "place": place,
            "value": own[key],
            "printed": row["number"],
            "ratio": None if own[key] is None else own[key] / row["number"],
            "reason": absent.get(place, ""),
        }
        for key, row in rows.to_dict("index").items()
        for place, own in values.items()
        if key in own
    ]
    data = pd.DataFrame(quantities, columns=COLUMNS)
    ranks = "Sums over ranks: the most that any framework's sums over ranks reached (steptime_exchange)."
    notes = [*_notes(peaks), *([ranks] if summed else []), *([DISK_NOTE] if disks else [])]
    page.notes = [*notes, *page.notes]
    return data, _layout(data, rows, page.paper)


def copied_per_second(peak: dict[str, Any]) -> float:
    """Returns the bytes per second that a platform's host copies to its GPU out of pinned memory.

    Without a GPU, returns what it copies in its own memory, at the thread count that copies most. STREAM's copy counts
    each byte twice, as it is read and as it is written (McCalpin 1995); a transfer moves it once.
    """
    peaks = peak["threads"].values()
    if all("transfers" in known for known in peaks):
        return max(known["transfers"]["to_device_pinned"] for known in peaks)
    return max(known["streams"]["copy"] for known in peaks) / 2


def between_gpus(peak: dict[str, Any]) -> tuple[float, str]:
    """Returns bytes per second from the first GPU to the one that it reaches slowest, or (0, why); (0, "") on CPUs."""
    for known in peak["threads"].values():
        rates = [each["bytes_per_second"] for each in known.get("peers", [])]
        return min(rates, default=0.0), known.get("no_peers", "")
    return 0.0, ""


def summed_per_second(alone: list[Measured]) -> dict[str, float]:
    """Returns, by platform, the most bytes per second of an array that ranks summed, over sizes and frameworks."""
    known = exchange.timed_sums(alone)
    if known.empty:
        return {}
    place = ["platform", "environment", "devices", "threads", "part", "bytes"]
    rates = known.groupby(place)["seconds"].median().reset_index()
    fastest = (rates["bytes"] / rates["seconds"]).groupby(rates["platform"]).max()
    return {str(name): float(rate) for name, rate in fastest.items()}


def _layout(data: pd.DataFrame, rows: pd.DataFrame, short: str) -> pd.DataFrame:
    value = data.set_index(["key", "place"])["value"]
    reasons = dict(zip(data["place"], data["reason"], strict=True))
    places = list(reasons)
    headings = [(short, "printed"), (short, "calculated"), ("Calculated ÷ printed", "")]
    headings += [("Measured bandwidth", place) for place in places[1:]]
    lines = []
    for key, row in rows.to_dict("index").items():
        # Only the part after the first semicolon of a note is for readers; the part before says whether it is given or
        # a result.
        note = row["note"].partition("; ")[2]
        line = {(short, "printed"): Entry(row["value"], (note,) if note else (), kind="paper")}
        if key in FORMULAS:
            calculated = value[key, AS_PRINTED]
            ratio = Entry(f"{calculated / row['number']:.4f}", kind="ratio")
            text = f"{calculated:.6f}" if calculated < 2 else f"{calculated:.4g}"
            line |= {(short, "calculated"): Entry(text, kind="ours")}
            line |= {("Calculated ÷ printed", ""): ratio}
        for place in places[1:]:
            known, missing = value.get((key, place)), dash(reasons[place] or NOT_HERE)
            entry = missing if pd.isna(known) else Entry(f"{known:.4g}", kind="ours")
            line["Measured bandwidth", place] = entry
        lines.append(((row["row"], row["unit"], FORMULAS.get(key, "given")), line))
    return laid_out(lines, ["Quantity", "Unit", "Formula"], headings)


DISK_NOTE = (
    "Disk: the one that results lie on, as fast as a file is read from it once, past the kernel's cache (rule `peak`). "
    "A virtual machine's host may have had it in memory."
)
NOT_HERE = "it does not follow from the bandwidth that was measured"


def _notes(peaks: dict[str, dict[str, Any]]) -> list[str]:
    if not peaks:
        return [
            "No memory bandwidth is measured, since the grid has no platform that times a step."
        ]
    return [
        "Measured bandwidth, in place of the bus of the paper: of a GPU, bytes copied to it from pinned memory of the "
        "host (rule `gpu_peak`); of CPUs, bytes copied within the machine's own memory (rule `peak`), the most that a "
        "device in the same memory could be given; between GPUs, from the first one to that which it reaches slowest. "
        "All else is the paper's."
    ]
