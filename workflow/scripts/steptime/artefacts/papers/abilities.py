"""What frameworks can do: as a paper says it, and as it was read here from those that are installed."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.merge.trainings import Trained
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import DASH, OURS, PAPER, TEXT, Entry
from steptime.render.words import plural, significant, why

BUSY = 1.2  # effective threads from which a cell used more than one
NO_DEVICES = "no result with more than one device was timed"
DEVICES = "as proven, each with CPUs of its own; several GPUs were not tried"
NO_SERVERS = "no proof of several processes was asked for: `devices` of a grid asks for such"
SERVERS = "they share gradients as proven, on one machine; several machines were not tried"
PROVEN = "proven to be the specified network"

COLUMNS = ["source", "lineage", "framework", "label", "environment", "property", "value", "note"]
TYPES = dict.fromkeys(["lineage", "property", "note"], TEXT)
LONG = 24  # letters from which a value is broken into lines


@dataclass(frozen=True)
class Ability:
    """What is known of one property: its text, or '' and why there is none. `note` is what a reader must know of it."""

    text: str
    note: str = ""


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS, texts) and the layout: each framework of the paper, below it ours."""
    page, short = inputs.page, inputs.catalogue["short"]
    data = pd.DataFrame([*_their_rows(inputs), *_our_rows(inputs)], columns=COLUMNS)
    data = data.sort_values(
        "lineage", key=lambda names: pd.factorize(names)[0], kind="stable", ignore_index=True
    )
    page.notes = [
        "What is said of a framework here holds for the one build that is installed; its footnotes say how it "
        "was read, and a dash is what was not read.",
        *page.notes,
    ]

    def entry(row: Row) -> Entry:
        notes = (row["note"].rstrip("."),) if row["note"] else ()
        kind = f"{row['source']} words" + (" long" if len(row["value"]) > LONG else "")
        return Entry(row["value"] or DASH, notes, kind=kind)

    index: dict[str, Any] = {
        "Framework": "label",
        "Source": lambda row: "here" if row["source"] == OURS else short,
    }
    shown = [Column(lambda row: row["property"], entry)]
    return data, columns(data, shown, index)[[*inputs.entry["here"]]]


def read(inputs: Inputs) -> pd.DataFrame:
    """Returns one row for each environment: framework, version, and an Ability for each property that is read."""
    measured = inputs.measured
    by_name = {package["environment"]: package for package in inputs.packages}
    labels = {name: entry.get("label", name) for name, entry in inputs.networks.items()}
    rows = {}
    environments = measured.cells.groupby(["environment", "framework"], sort=False)
    for (environment, framework), cells in environments:
        software = measured.software.get(environment, {})
        own = [proof for proof in inputs.proofs if proof["environment"] == environment]
        several = [proof for proof in own if proof.get("devices", 1) > 1]
        passed = {proof["network"] for proof in own if proof["status"] == "ok"}
        names = [label for name, label in labels.items() if name in passed]
        timed = cells[cells["status"] == "ok"]
        rows[environment] = {
            "framework": framework,
            "version": software.get("framework_version") or "",
            **_of_package(by_name.get(environment, {})),
            **_of_cells(timed, why(cells.iloc[0])),
            **_of_build(timed, software),
            **_together(timed, several),
            "networks": _or_none(", ".join(names), "no proof has passed", PROVEN),
            "data": _data(len(timed), environment, inputs.trained),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _of_package(package: Row) -> dict[str, Ability]:
    if "distribution" not in package:
        missing = Ability("", "no package of the environment has this framework")
        return dict.fromkeys(("licence", "core", "interface"), missing)
    source = f"metadata of the package {package['distribution']} {package['version']}"
    languages = ", ".join(package["languages"])
    share = package["compiled"] / max(1, package["compiled"] + package["python"])
    note = "share of the package's code by bytes"
    note += f"; its metadata names {languages}" if languages else ""
    known = Ability(package["licence"], source)
    return {
        "licence": known if package["licence"] else Ability("", f"the {source} names none"),
        "core": Ability(f"{100 * share:.0f} % compiled", note),
        "interface": Ability("Python", "the interface that the results use; others are not tried"),
    }


def _of_cells(timed: pd.DataFrame, why_none: str) -> dict[str, Ability]:
    kinds, on_cpu = sorted(timed["device"].unique()), timed[timed["device"] == "cpu"]
    abilities = {
        "devices": _or_none(", ".join(kinds).upper(), why_none),
        "cpu": _timed(on_cpu) if len(on_cpu) else Ability("", why_none),
        "threads": Ability("", "no result with more than one thread was timed"),
    }
    several = on_cpu[(on_cpu["threads"] > 1) & on_cpu["effective_threads"].notna()]
    if len(several):
        most = several[several["threads"] == several["threads"].max()]
        busy = most["effective_threads"].median()
        text = f"{significant(busy)} of {most['threads'].iloc[0]} busy"
        note = "CPU seconds for each second, median of results"
        abilities["threads"] = Ability(text if busy > BUSY else f"no: {text}", note)
    return abilities


def _together(timed: pd.DataFrame, proofs: list[Row]) -> dict[str, Ability]:
    """Says on how many devices at once a framework trains, and whether several processes train one network."""
    several = timed[timed["devices"] > 1]
    right = [proof for proof in proofs if proof["status"] == "ok"]
    failed = why(proofs[0]) if proofs and not right else ""
    devices, servers = Ability("", failed or NO_DEVICES), Ability("", failed or NO_SERVERS)
    if right:
        most = max(proof["devices"] for proof in right)
        exchanges = " and ".join(sorted({proof["exchange"] for proof in right}))
        devices = Ability(plural(most, "device"), DEVICES)
        servers = Ability(f"{plural(most, 'rank')}, {exchanges}", SERVERS)
    if len(several):
        devices = Ability(plural(int(several["devices"].max()), "device"))
    return {"devices_together": devices, "servers": servers}


def _of_build(timed: pd.DataFrame, software: dict[str, Any]) -> dict[str, Ability]:
    on_gpu = timed[timed["device"] == "gpu"]
    if len(on_gpu):
        gpu = _timed(on_gpu)
    elif software.get("cuda"):
        gpu = Ability(f"CUDA {software['cuda']}", "of the build; no result on a GPU was timed")
    else:
        gpu = Ability("no", "this build is without CUDA; others of the framework may have it")
    cudnn = software.get("cudnn")
    without = Ability("no", "this build is without cuDNN")
    return {"gpu": gpu, "cudnn": Ability(str(cudnn)) if cudnn else without}


def _data(timed: int, environment: str, trained: Trained) -> Ability:
    """Says on what data a framework's cells were timed, and on what it was trained to an accuracy."""
    runs = trained.runs
    own = runs[(runs["environment"] == environment) & (runs["epochs"] > 0)] if len(runs) else runs
    labels = list(dict.fromkeys(own["dataset_label"])) if len(own) else []
    if not timed and not labels:
        return Ability("", "not timed")
    note = "steps are timed on made-up mini-batches"
    note += "; whole trainings are on real images" if labels else ""
    return Ability(", ".join([*labels, *(["synthetic"] if timed else [])]), note)


def _timed(cells: pd.DataFrame) -> Ability:
    return Ability("yes", f"{plural(len(cells), 'result')} timed")


def _or_none(text: str, why_none: str, note: str = "") -> Ability:
    return Ability(text, note) if text else Ability("", why_none)


def _their_rows(inputs: Inputs) -> list[Row]:
    here = inputs.entry["here"]
    # One of the two headings of a printed value is the framework, the other the property.
    return [
        {
            "source": PAPER,
            "lineage": inputs.frameworks[row["framework"]].lineage,
            "framework": row["framework"],
            "label": row["row"] if row["column"] in here else row["column"],
            "property": row["column"] if row["column"] in here else row["row"],
            "value": row["value"],
            "note": row["note"],
        }
        for row in inputs.printed.to_dict("records")
    ]


def _our_rows(inputs: Inputs) -> list[Row]:
    frameworks = inputs.frameworks
    return [
        {
            "source": OURS,
            "lineage": frameworks[abilities["framework"]].lineage,
            "framework": abilities["framework"],
            "label": f"{frameworks[abilities['framework']].label} {abilities['version']}".strip(),
            "environment": environment,
            "property": name,
            "value": abilities[key].text,
            "note": abilities[key].note,
        }
        for environment, abilities in read(inputs).to_dict("index").items()
        for name, key in inputs.entry["here"].items()
    ]
